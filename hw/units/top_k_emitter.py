"""Emitter of ids in Amaranth: the lanes taken of each row, a row a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.units.top_k_layouts import selected_layout

if TYPE_CHECKING:
    from amaranth.hdl import Value

    from hw.top_k_params import TopKShardParams

__all__ = ["RowEmitter"]


class RowEmitter(wiring.Component):
    """Rows of lanes above a threshold, and of the first ``quota`` lanes that equal it.

    Overview
    --------
    Holds one row of lanes and gives out which of them are taken, all at once. A lane that equals the threshold is taken
    while the quota lasts; as ids ascend over the rows, these are the lowest ids of all equal ones. A lane's place among
    the equal ones of its row is found by a tree of prefix sums.

    Protocol
    --------
    ``load`` sets quota, base and fault for an operation while nothing is held. A row is taken when ``row_valid`` and
    ``row_ready`` are high. ``finish`` asks for the end of the operation, once all rows were handed in; it is given out
    in the cycle in which ``finished`` is high.

    Timing
    ------
    A row is held for a cycle, longer where ``selected``, which is a register, is not free for it; it is there in the
    cycle after. A row without an id is given out nowhere. The end follows the last row's cycle.

    Numerics
    --------
    An id given out is ``base`` and the id within the shard; one that doesn't fit sets the operation's fault.

    Parameters
    ----------
    params : TopKShardParams
        Sizes.

    Members
    -------
    load : In(1)
        Take ``quota``, ``base`` and ``fault`` over.
    quota : In(count_bits)
        Equal lanes to take.
    base : In(id_bits)
        Id given out for id 0.
    fault : In(1)
        The operation is faulty.
    row_valid : In(1), row_ready : Out(1)
        Handshake of a row.
    row : In(range(rows))
        Its number.
    above, equal : In(lanes)
        Its lanes beyond the threshold, and those that equal it.
    finish : In(1), finished : Out(1)
        End of the operation.
    selected : ``Out(stream.Signature(selected_layout(id_bits, lanes)))``
        Rows of ids and ends.
    """

    def __init__(self, params: TopKShardParams) -> None:
        self.params = params
        super().__init__(
            {
                "load": In(1),
                "quota": In(params.count_bits),
                "base": In(params.id_bits),
                "fault": In(1),
                "row_valid": In(1),
                "row_ready": Out(1),
                "row": In(range(params.rows)),
                "above": In(params.lanes),
                "equal": In(params.lanes),
                "finish": In(1),
                "finished": Out(1),
                "selected": Out(stream.Signature(selected_layout(params.id_bits, params.lanes))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the held row, the choice among its equal lanes and the output register."""
        m = Module()
        params = self.params
        held, row = Signal(), Signal(range(params.rows))
        above, equal = Signal(params.lanes), Signal(params.lanes)
        quota, base, fault = Signal(params.count_bits), Signal(params.id_bits), Signal()

        # No row has more equal lanes than lanes.
        quota_here, taken = Signal(range(params.lanes + 1)), Signal(params.lanes)
        m.d.comb += quota_here.eq(Mux(quota > params.lanes, params.lanes, quota))
        places = _places(m, equal)
        for lane, place in enumerate(places):
            m.d.comb += taken[lane].eq(above[lane] | (equal[lane] & (place <= quota_here)))

        free, some, leaves = Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~self.selected.valid | self.selected.ready),
            some.eq(held & taken.any()),
            leaves.eq(held & (free | ~some)),
            self.row_ready.eq(~held | leaves),
            self.finished.eq(self.finish & ~held & free),
        ]

        # A row whose first id fits may still have lanes whose ids don't.
        first = Signal(params.id_bits + 1)
        within = first[: params.lane_bits]
        beyond = Cat(taken[lane] & (within >= params.lanes - lane) for lane in range(params.lanes)).any()
        overflows = first[-1] | (first[params.lane_bits : -1].all() & beyond)
        m.d.comb += first.eq(base + (row << params.lane_bits))
        with m.If(leaves):
            m.d.sync += quota.eq(Mux(places[-1] > quota_here, 0, quota - places[-1]))
            m.d.sync += fault.eq(fault | (some & overflows))
        with m.If(self.row_ready):
            m.d.sync += [
                held.eq(self.row_valid),
                row.eq(self.row),
                above.eq(self.above),
                equal.eq(self.equal),
            ]
        with m.If(self.load):
            m.d.sync += [quota.eq(self.quota), base.eq(self.base), fault.eq(self.fault)]

        with m.If(self.selected.ready):
            m.d.sync += self.selected.valid.eq(0)
        with m.If(some & free | self.finished):
            m.d.sync += [
                self.selected.valid.eq(1),
                self.selected.payload.first.eq(Mux(self.finished, 0, first[:-1])),
                self.selected.payload.lanes.eq(Mux(self.finished, 0, taken)),
                self.selected.payload.end.eq(self.finished),
                self.selected.payload.fault.eq(self.finished & fault),
            ]
        return m


def _places(m: Module, bits: Signal) -> list[Value]:
    """Return for each bit how many are set up to it and with it, by a tree whose levels are logarithmic."""
    lanes = len(bits)
    counts: list[Value] = list(bits)
    for level in range((lanes - 1).bit_length()):
        found: list[Value] = []
        for lane, count in enumerate(counts):
            total = count
            if lane >> level & 1:
                total = Signal(level + 2, name=f"place_{level}_{lane}")
                m.d.comb += total.eq(count + counts[(lane >> level << level) - 1])
            found.append(total)
        counts = found
    return counts
