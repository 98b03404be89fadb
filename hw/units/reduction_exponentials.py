"""Exponentials of the reduction unit: from two maxima to the weight of the smaller one's side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from hw.float import FloatAdd, FloatRound
from hw.timing.reduction_recurrence import weight_queue_depth
from hw.units.exp import ExpUnit

if TYPE_CHECKING:
    from hw.params import ReductionParams

__all__ = ["ReductionExponentials", "places"]


def places(count: int) -> range:
    """Return the range of a counter of ``count`` places; one place has a bit too, which stays 0."""
    return range(max(count, 2))


class ReductionExponentials(wiring.Component):
    """Weights ``exp(small - large)``, in order, by ``num_exp`` exponential units in turn.

    The difference is rounded to the units' format, ``params.weight_format``.

    A register each for the pair, the difference and the operand; then the units; then a queue. Whoever uses this
    starts no more than the queue's depth of weights that it has not taken, so the results are never held up.

    Parameters
    ----------
    params : ReductionParams
        Sizes of the unit.

    Members
    -------
    i : In(stream.Signature(StructLayout({"small": 32, "large": 32})))
        Pairs of maxima, fp32 codes.
    o : Out(stream.Signature(params.weight_format.bits))
        Weights.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, params: ReductionParams) -> None:
        self.params = params
        bits = params.state_format.bits
        pair = data.StructLayout({"small": bits, "large": bits})
        super().__init__({"i": In(stream.Signature(pair)), "o": Out(stream.Signature(params.weight_format.bits))})

    def elaborate(self, platform: object) -> Module:
        """Build the subtractor, the rounder, the exponential units and the queue."""
        m = Module()
        params = self.params
        fmt = params.state_format

        pair_valid, pair_ready = Signal(), Signal()
        difference_valid, difference_ready = Signal(), Signal()
        operand_valid, operand_ready = Signal(), Signal()
        issue_ready = Signal()
        pair = Signal(self.i.payload.shape())
        difference = Signal(fmt.bits)
        operand = Signal(params.weight_format.bits)
        m.submodules.subtract = subtract = FloatAdd(fmt)
        m.submodules.round = rounder = FloatRound(fmt, params.weight_format)
        m.d.comb += [
            subtract.a.eq(pair.small),
            subtract.b.eq(pair.large ^ fmt.sign_mask),
            rounder.i.eq(difference),
            operand_ready.eq(~operand_valid | issue_ready),
            difference_ready.eq(~difference_valid | operand_ready),
            pair_ready.eq(~pair_valid | difference_ready),
            self.i.ready.eq(pair_ready),
        ]
        with m.If(pair_ready):
            m.d.sync += [pair_valid.eq(self.i.valid), pair.eq(self.i.payload)]
        with m.If(difference_ready):
            m.d.sync += [difference_valid.eq(pair_valid), difference.eq(subtract.o)]
        with m.If(operand_ready):
            m.d.sync += [operand_valid.eq(difference_valid), operand.eq(rounder.o)]

        m.submodules.weights = weights = SyncFIFO(width=params.weight_format.bits, depth=weight_queue_depth(params))
        issue_turn = Signal(places(params.num_exp))
        result_turn = Signal(places(params.num_exp))
        for number in range(params.num_exp):
            exp = ExpUnit(params.exp)
            m.submodules[f"exp_{number}"] = exp
            m.d.comb += exp.i.payload.eq(operand)
            with m.If(issue_turn == number):
                m.d.comb += [exp.i.valid.eq(operand_valid), issue_ready.eq(exp.i.ready)]
            with m.If(result_turn == number):
                m.d.comb += [exp.o.ready.eq(1), weights.w_en.eq(exp.o.valid), weights.w_data.eq(exp.o.payload)]
        for turn, step in ((issue_turn, operand_valid & issue_ready), (result_turn, weights.w_en)):
            with m.If(step):
                m.d.sync += turn.eq(Mux(turn == params.num_exp - 1, 0, turn + 1))
        m.d.comb += [self.o.valid.eq(weights.r_rdy), self.o.payload.eq(weights.r_data), weights.r_en.eq(self.o.ready)]
        return m
