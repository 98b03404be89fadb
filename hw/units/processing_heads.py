"""Output registers of the processing unit for the heads of its states."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hw.layouts import head_layout

if TYPE_CHECKING:
    from hw.params import ProcessingParams

__all__ = ["Heads"]


class Heads(wiring.Component):
    """Copy m and l of all queries of an operation at once, and send them query after query.

    The copy is made when the operation's last weight is summed and the last head of the operation before leaves, so
    that m and l are free for the next operation however long its heads are refused. Query j has the operation's id plus
    j, modulo ``2**op_id_bits``: an operation of g queries looks like g operations of one.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    final : In(1)
        From the next cycle on m and l of the operation are final.
    m, l : In(ArrayLayout(32, queries))
        They, until ``done``.
    op_id, empty, last_query : In
        The operation, until ``done``.
    fault : In(1)
        Heads that are copied now are of an operation whose scores went wrong.
    done : Out(1)
        The copy is made in this cycle.
    head : Out(stream)
        The heads.
    """

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        every_query = data.ArrayLayout(params.state_format.bits, params.queries)
        super().__init__(
            {
                "final": In(1),
                "m": In(every_query),
                "l": In(every_query),
                "op_id": In(params.op_id_bits),
                "empty": In(1),
                "last_query": In(params.query_range),
                "fault": In(1),
                "done": Out(1),
                "head": Out(stream.Signature(head_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the output register, and those of the queries that wait behind it."""
        m = Module()
        queries = self.params.queries
        head = self.head
        due = Signal()
        left = Signal(self.params.query_range)
        minus_infinity = FP32.inf_code | FP32.sign_mask
        scalars = data.StructLayout({"m": self.params.state_format.bits, "l": self.params.state_format.bits})
        waiting = [Signal(scalars, name=f"waiting_{number}", reset_less=True) for number in range(1, queries)]
        places = [head.payload, *waiting]
        m.d.comb += self.done.eq(due & (~head.valid | (head.ready & (left == 0))))
        with m.If(head.valid & head.ready):
            m.d.sync += [head.valid.eq(left != 0), left.eq(left - (left != 0))]
            if waiting:
                m.d.sync += head.payload.op_id.eq(head.payload.op_id + 1)
            for here, behind in itertools.pairwise(places):
                m.d.sync += [here.m.eq(behind.m), here.l.eq(behind.l)]
        with m.If(self.done):
            m.d.sync += [
                due.eq(0),
                left.eq(self.last_query),
                head.valid.eq(1),
                head.payload.op_id.eq(self.op_id),
                head.payload.empty.eq(self.empty),
                head.payload.fault.eq(self.fault),
            ]
            for number, place in enumerate(places):
                m.d.sync += [
                    place.m.eq(Mux(self.empty, minus_infinity, self.m[number])),
                    place.l.eq(Mux(self.empty, 0, self.l[number])),
                ]
        with m.If(self.final):
            m.d.sync += due.eq(1)
        return m
