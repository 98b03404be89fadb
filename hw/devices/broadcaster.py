"""Sends commands and queries to the units of a channel, ahead of the keys."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.device_params import ChannelParams
from hw.devices.layouts import operation_layout, rows_layout
from hw.devices.spacing import Spacing
from hw.layouts import vector_layout

__all__ = ["Broadcaster"]


class Broadcaster(wiring.Component):
    """Send each operation's command and query over the channel's data bus, and hand its rows on.

    The command takes ``params.command_columns`` bursts, each of its queries one for every beat; bursts are n_ccdl
    apart, and one is sent only when every unit has room for it. A query is cut over the banks of every group where the
    head dimension is, else all banks get all of it. The rows follow when the queries have been sent, so that a
    sequencer never reads keys that nobody expects.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    operation : In(stream of operation_layout)
        Operations.
    query : In(stream of vector_layout)
        Their queries, one behind the other: ``beats`` beats for every bank that holds a slice.
    rows : Out(stream of rows_layout)
        Rows of an operation whose command and query have been sent.
    wanted : Out(1)
        A burst could go out in this cycle.
    granted : In(1)
        It does; only while ``wanted``.
    is_command : Out(1)
        It is one of a command, else of a query.
    command_last : Out(1)
        It is the last of a command, with which the command counts as delivered.
    banks : Out
        Banks that the beat of a query is for.
    command_free, query_free : In(1)
        Every unit has room for a command, for a beat of a query.
    """

    operation: stream.Interface
    query: stream.Interface
    rows: stream.Interface
    wanted: Signal
    granted: Signal
    is_command: Signal
    command_last: Signal
    banks: Signal
    command_free: Signal
    query_free: Signal

    def __init__(self, params: ChannelParams) -> None:
        require_type("params", params, ChannelParams)
        self.params = params
        super().__init__(
            {
                "operation": In(stream.Signature(operation_layout(params))),
                "query": In(stream.Signature(vector_layout(params.processing))),
                "rows": Out(stream.Signature(rows_layout(params))),
                "wanted": Out(1),
                "granted": In(1),
                "is_command": Out(1),
                "command_last": Out(1),
                "banks": Out(params.organisation.banks),
                "command_free": In(1),
                "query_free": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the two phases of an operation and the register of its rows."""
        m = Module()
        params = self.params
        slices = params.processing.slices
        operation = self.operation.payload
        m.submodules.spacing = spacing = Spacing(params.timing.n_ccdl)

        querying = Signal()
        command_index = Signal(range(params.command_columns))
        beat = Signal(range(params.processing.beats))
        bank = Signal(range(max(slices, 2)))  # a signal of no bits is no Verilog
        bank_last = beat == operation.unit.beats - 1
        query = Signal(params.processing.query_range)
        query_end = bank_last & (bank == slices - 1)
        query_last = query_end & (query == operation.unit.last_query)
        handing = Signal()
        m.d.comb += [
            self.is_command.eq(~querying),
            self.command_last.eq(command_index == params.command_columns - 1),
            self.banks.eq(1 << bank if slices > 1 else -1),
            self.wanted.eq(
                spacing.ready
                & self.operation.valid
                & ~handing
                & Mux(querying, self.query.valid & self.query_free, self.command_free)
            ),
            spacing.event.eq(self.granted),
            self.query.ready.eq(self.granted & querying),
            self.rows.valid.eq(handing),
            self.rows.payload.eq(operation.rows),
            self.operation.ready.eq(handing & self.rows.ready),
        ]
        with m.If(self.granted & ~querying):
            m.d.sync += [command_index.eq(Mux(self.command_last, 0, command_index + 1)), querying.eq(self.command_last)]
        with m.If(self.granted & querying):
            m.d.sync += beat.eq(Mux(bank_last, 0, beat + 1))
            with m.If(bank_last):
                m.d.sync += bank.eq(Mux(query_end, 0, bank + 1))
            with m.If(query_end):
                m.d.sync += query.eq(Mux(query_last, 0, query + 1))
            with m.If(query_last):
                m.d.sync += [querying.eq(0), handing.eq(1)]
        with m.If(self.operation.ready):
            m.d.sync += handing.eq(0)
        return m
