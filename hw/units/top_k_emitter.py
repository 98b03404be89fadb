"""Emitter of ids in Amaranth: the lanes taken of each row, one a cycle, lowest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.units.top_k_layouts import selected_layout

if TYPE_CHECKING:
    from hw.top_k_params import TopKShardParams

__all__ = ["IdEmitter"]


class IdEmitter(wiring.Component):
    """Ids of the lanes above a threshold and of the first ``quota`` lanes that equal it.

    Overview
    --------
    Holds one row of lanes and gives out its ids, lowest first. A lane that equals the threshold is taken while the
    quota lasts; as ids ascend over the rows, these are the lowest ids of all equal ones.

    Protocol
    --------
    ``load`` sets quota, base and fault for an operation while nothing is held. A row is taken when ``row_valid`` and
    ``row_ready`` are high. ``finish`` asks for the end of the operation, once all rows were handed in; it is given out
    in the cycle in which ``finished`` is high.

    Timing
    ------
    A row is held for ``max(1, ids)`` cycles; an id is on ``selected``, which is a register, in the cycle after its own.
    The end follows the last row's cycles.

    Numerics
    --------
    An id given out is ``base`` and the id within the shard; a sum that doesn't fit sets the operation's fault.

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
    selected : ``Out(stream.Signature(selected_layout(id_bits)))``
        Ids and ends.
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
                "selected": Out(stream.Signature(selected_layout(params.id_bits))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the held row, the choice of its lowest lane and the output register."""
        m = Module()
        params = self.params
        held, row = Signal(), Signal(range(params.rows))
        above, equal = Signal(params.lanes), Signal(params.lanes)
        quota, base, fault = Signal(params.count_bits), Signal(params.id_bits), Signal()

        pending, lowest = Signal(params.lanes), Signal(params.lanes)
        lane = Signal(range(params.lanes))
        m.d.comb += [
            pending.eq(above | (equal & quota.any().replicate(params.lanes))),
        ]
        # Lanes with a pending one below them, by a tree: a difference would ripple through all lanes.
        beyond = pending << 1
        for level in range(params.lane_bits):
            beyond = beyond | beyond << (1 << level)
        m.d.comb += lowest.eq(pending & ~beyond)
        for bit in range(params.lane_bits):
            m.d.comb += lane[bit].eq(Cat(lowest[n] for n in range(params.lanes) if n >> bit & 1).any())

        free, step, spends = Signal(), Signal(), Signal()
        above_left, equal_left, quota_left = Signal(params.lanes), Signal(params.lanes), Signal(params.count_bits)
        m.d.comb += [
            free.eq(~self.selected.valid | self.selected.ready),
            step.eq(held & pending.any() & free),
            spends.eq((lowest & equal).any()),
            quota_left.eq(quota - spends),
            above_left.eq(above & ~lowest),
            equal_left.eq(equal & ~lowest),
        ]
        leaves = Signal()
        with m.If(pending.any()):
            m.d.comb += leaves.eq(free & ~(above_left.any() | (equal_left.any() & quota_left.any())))
        with m.Else():
            m.d.comb += leaves.eq(1)
        m.d.comb += self.row_ready.eq(~held | leaves)

        number = Signal(params.id_bits + 1)
        m.d.comb += [number.eq(base + Cat(lane, row)), self.finished.eq(self.finish & ~held & free)]
        with m.If(step):
            m.d.sync += [above.eq(above_left), equal.eq(equal_left), quota.eq(quota_left)]
            m.d.sync += fault.eq(fault | number[-1])
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
        with m.If(step | self.finished):
            m.d.sync += [
                self.selected.valid.eq(1),
                self.selected.payload.id.eq(Mux(self.finished, 0, number[:-1])),
                self.selected.payload.end.eq(self.finished),
                self.selected.payload.fault.eq(self.finished & fault),
            ]
        return m
