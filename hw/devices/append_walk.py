"""The columns of a new token that are written before an operation reads them."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.device_params import ChannelParams
from hw.devices.layouts import append_layout

__all__ = ["AppendWalk"]


class AppendWalk(wiring.Component):
    """Name the columns that the row being walked lacks: those of the new token's key, or value, bank by bank.

    Each is owed once an operation, in the first opening of its row.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    begin : In(1)
        An operation begins; from the next cycle on ``append`` and ``token_columns`` are its own.
    append : In(append_layout)
        Where its new token lies.
    token_columns : In
        Columns of a token in each bank.
    is_value, tile : In
        The row being walked.
    due : Out(1)
        A column of it is to be written; ``bank`` and ``column`` say which.
    bank, column : Out
        Its address.
    written : In(1)
        It is being written; only while ``due``.
    """

    begin: Signal
    append: data.View
    token_columns: Signal
    is_value: Signal
    tile: Signal
    due: Signal
    bank: Signal
    column: Signal
    written: Signal

    def __init__(self, params: ChannelParams) -> None:
        require_type("params", params, ChannelParams)
        self.params = params
        organisation = params.organisation
        super().__init__(
            {
                "begin": In(1),
                "append": In(append_layout(params)),
                "token_columns": In(range(organisation.columns + 1)),
                "is_value": In(1),
                "tile": In(range(params.part_rows)),
                "due": Out(1),
                "bank": Out(range(organisation.banks)),
                "column": Out(range(organisation.columns)),
                "written": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the counters of banks and columns, and what has been written."""
        m = Module()
        slices = self.params.processing.slices
        done = Signal(2)
        bank = Signal(range(max(slices, 2)))  # a signal of no bits is no Verilog
        index = Signal(range(self.params.organisation.columns))
        bank_last = index == self.token_columns - 1
        last = bank_last & (bank == slices - 1)
        m.d.comb += [
            self.due.eq(self.append.valid & (self.tile == self.append.place.tile) & ~done.bit_select(self.is_value, 1)),
            self.bank.eq(self.append.bank + bank),
            self.column.eq(self.append.place.column + index),
        ]
        with m.If(self.written):
            m.d.sync += index.eq(Mux(bank_last, 0, index + 1))
            with m.If(bank_last):
                m.d.sync += bank.eq(Mux(last, 0, bank + 1))
            with m.If(last):
                m.d.sync += done.eq(done | Cat(~self.is_value, self.is_value))
        with m.If(self.begin):
            m.d.sync += done.eq(0)
        return m
