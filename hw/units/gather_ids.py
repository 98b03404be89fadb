"""Ids of the rows that a selection gives, one a cycle, in Amaranth: the first part of the gather unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.units.top_k_layouts import selected_layout

if TYPE_CHECKING:
    from hw.gather_params import GatherParams

__all__ = ["RowIds", "id_layout"]


def id_layout(id_bits: int) -> data.StructLayout:
    """One id taken; or, with ``end``, the end of an operation, which is no id and has the operation's ``fault``."""
    return data.StructLayout({"id": id_bits, "end": 1, "fault": 1})


class RowIds(wiring.Component):
    """Takes rows of ids apart: an id for each bit, the lowest first.

    Overview
    --------
    Holds a row, and lets its next one in while the row's last id leaves. The lowest bit is found by a tree.

    Latency and throughput
    ----------------------
    An id or end a cycle; the first of a row is on ``ids``, which is a register, two cycles after the row's transfer.

    Parameters
    ----------
    params : GatherParams
        Sizes.

    Members
    -------
    selected : ``In(stream.Signature(selected_layout(id_bits, lanes)))``
        Rows of ids and ends; a row without an id is taken and gives nothing.
    ids : ``Out(stream.Signature(id_layout(id_bits)))``
        Ids and ends.
    """

    selected: stream.Interface
    ids: stream.Interface

    def __init__(self, params: GatherParams) -> None:
        self.params = params
        super().__init__(
            {
                "selected": In(stream.Signature(selected_layout(params.id_bits, params.lanes))),
                "ids": Out(stream.Signature(id_layout(params.id_bits))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the held row, the choice of its lowest bit and the output register."""
        m = Module()
        lanes = self.params.lanes
        held = Signal()
        row = Signal(selected_layout(self.params.id_bits, lanes))

        # Bits with a set one below them, by a tree: a difference would ripple through all of them.
        beyond = row.lanes << 1
        for level in range((lanes - 1).bit_length()):
            beyond = beyond | beyond << (1 << level)
        lowest, left, lane = Signal(lanes), Signal(lanes), Signal(range(lanes))
        m.d.comb += [lowest.eq(row.lanes & ~beyond), left.eq(row.lanes & ~lowest)]
        for bit in range(len(lane)):
            m.d.comb += lane[bit].eq(Cat(lowest[n] for n in range(lanes) if n >> bit & 1).any())

        free, gives = Signal(), Signal()
        m.d.comb += [
            free.eq(~self.ids.valid | self.ids.ready),
            gives.eq(held & (row.end | row.lanes.any())),
            self.selected.ready.eq(~held | ~gives | (free & ~left.any())),
        ]
        with m.If(gives & free):
            m.d.sync += row.lanes.eq(left)
        with m.If(self.selected.ready):
            m.d.sync += [held.eq(self.selected.valid), row.eq(self.selected.payload)]

        with m.If(self.ids.ready):
            m.d.sync += self.ids.valid.eq(0)
        with m.If(gives & free):
            m.d.sync += [
                self.ids.valid.eq(1),
                self.ids.payload.id.eq(Mux(row.end, 0, row.first + lane)),
                self.ids.payload.end.eq(row.end),
                self.ids.payload.fault.eq(row.fault),
            ]
        return m
