"""The row that is being read, and the one behind it, which is opened ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.devices.group_walk import visit_layout

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["RowPair"]


class RowPair(wiring.Component):
    """Hold two rows of a walk, front and ahead, and know which of them are open.

    The front row is opened first, then the one ahead. When the front row is through, the one ahead takes its place, and
    the next row of the walk the place ahead: a cycle later each, which the distance of two columns hides.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    visits : In(stream of visit_layout)
        The walk.
    front : Out(visit_layout)
        The front row.
    readable : Out(1)
        It is open, and a column of it is left to be read: ``column``.
    column : Out
        Columns of it read so far.
    begin : Out(1)
        The front row of the next cycle is the first one of an operation.
    wanted : Out(1)
        A row is to be opened: ``wanted_row`` of ``wanted_bank``.
    wanted_bank, wanted_row : Out
        Its address.
    kept : Out(banks)
        Banks whose open row is one of the two; a row open in another bank is through.
    opened : In(1)
        The wanted row is being opened; only while ``wanted``.
    read : In(1)
        A column of the front row is being read; only while ``readable``.
    all_closed : In(1)
        All rows are being closed; only while ``readable``. They are wanted anew.
    """

    visits: stream.Interface
    front: data.View
    readable: Signal
    column: Signal
    begin: Signal
    wanted: Signal
    wanted_bank: Signal
    wanted_row: Signal
    kept: Signal
    opened: Signal
    read: Signal
    all_closed: Signal

    def __init__(self, params: ChannelParams) -> None:
        self.params = params
        organisation = params.organisation
        super().__init__(
            {
                "visits": In(stream.Signature(visit_layout(params))),
                "front": Out(visit_layout(params)),
                "readable": Out(1),
                "column": Out(range(organisation.columns + 1)),
                "begin": Out(1),
                "wanted": Out(1),
                "wanted_bank": Out(range(organisation.banks)),
                "wanted_row": Out(range(organisation.rows)),
                "kept": Out(organisation.banks),
                "opened": In(1),
                "read": In(1),
                "all_closed": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the two places."""
        m = Module()
        front, ahead = self.front, Signal(visit_layout(self.params))
        front_here, front_open, ahead_here, ahead_open = (
            Signal(name=name) for name in ("front_here", "front_open", "ahead_here", "ahead_open")
        )
        through, step, open_front = Signal(), Signal(), Signal()
        m.d.comb += [
            through.eq(front_here & (self.column == front.columns)),
            step.eq(ahead_here & (~front_here | through)),
            self.readable.eq(front_open & ~through),
            self.begin.eq(step & ahead.first),
            open_front.eq(front_here & ~front_open),
            self.wanted.eq(open_front | (front_open & ahead_here & ~ahead_open & ~step)),
            self.wanted_bank.eq(Mux(open_front, front.bank, ahead.bank)),
            self.wanted_row.eq(Mux(open_front, front.row, ahead.row)),
            self.kept.eq(
                Cat(
                    (self.readable & (front.bank == bank)) | (ahead_open & (ahead.bank == bank))
                    for bank in range(self.params.organisation.banks)
                )
            ),
            self.visits.ready.eq(~ahead_here),
        ]
        with m.If(self.read):
            m.d.sync += self.column.eq(self.column + 1)
        with m.If(self.opened):
            m.d.sync += [front_open.eq(1), ahead_open.eq(~open_front)]
        with m.If(self.all_closed):
            m.d.sync += [front_open.eq(0), ahead_open.eq(0)]
        with m.If(self.visits.valid & self.visits.ready):
            m.d.sync += [ahead.eq(self.visits.payload), ahead_here.eq(1)]
        with m.If(through):
            m.d.sync += [front_here.eq(0), front_open.eq(0), self.column.eq(0)]
        with m.If(step):
            m.d.sync += [
                front.eq(ahead),
                front_here.eq(1),
                front_open.eq(ahead_open),
                ahead_here.eq(0),
                ahead_open.eq(0),
            ]
        return m
