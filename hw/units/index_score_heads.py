"""Heads of the index scoring unit: weights, the sum or the largest over heads, the scale, the largest of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hw.float import FloatAdd, FloatMax, FloatMul
from hw.float_steps import named
from hw.units.index_score_dots import delayed
from hw.units.index_score_layouts import command_layout, key_score_layout, step_layout

if TYPE_CHECKING:
    from hw.index_score_params import IndexScoreParams

__all__ = ["Heads"]

_NOTHING = FP32.sign_mask
"""-0, which leaves every sum as it is."""
_LEAST = FP32.inf_code | FP32.sign_mask
"""-inf, which is never the larger one."""


class Heads(wiring.Component):
    """From the dot products of a group of heads to the score of a block of keys.

    A group's terms are joined by a tree with a register behind each level, the groups in order behind it. Lanes beyond
    the last head have what changes no sum, or no maximum.

    Parameters
    ----------
    params : IndexScoreParams
        Sizes of the unit.

    Members
    -------
    config : In(command_layout)
        The operation.
    restart : In(1)
        An operation begins: scores are numbered from 0.
    step : In(step_layout)
        Whose dot products these are; it counts if it is the last beat of a key.
    dots, weights : In(ArrayLayout(32, head_lanes))
        fp32 codes of the group's dot products and of its weights.
    score_valid, score : Out(1), Out(key_score_layout)
        A score, not held up.
    """

    def __init__(self, params: IndexScoreParams) -> None:
        self.params = params
        lanes = data.ArrayLayout(FP32.bits, params.spec.head_lanes)
        super().__init__(
            {
                "config": In(command_layout(params)),
                "restart": In(1),
                "step": In(step_layout(params)),
                "dots": In(lanes),
                "weights": In(lanes),
                "score_valid": Out(1),
                "score": Out(key_score_layout(params)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build terms, tree, groups, scale and blocks."""
        m = Module()
        params = self.params
        steps = delayed(m, "step", self.step, params.head_levels + 3)
        terms = self._terms(m)
        for level in range(params.head_levels):
            joined = [
                self._join(m, f"{level}_{place}", *terms[2 * place : 2 * place + 2]) for place in range(len(terms) // 2)
            ]
            joined += terms[len(terms) - len(terms) % 2 :]
            terms = []
            for place, value in enumerate(joined):
                register = Signal(FP32.bits, name=f"join_{level}_{place}")
                m.d.sync += register.eq(value)
                terms.append(register)

        grouped, final = steps[params.head_levels + 1 :][:2]
        total = Signal(FP32.bits)
        together = self._join(m, "groups", total, terms[0])
        with m.If(grouped.valid & grouped.last):
            m.d.sync += total.eq(Mux(grouped.group == 0, terms[0], together))

        scaled = Signal(FP32.bits)
        m.submodules.scale = scale = FloatMul(FP32, FP32, FP32)
        m.d.comb += [scale.a.eq(total), scale.b.eq(final.scale)]
        m.d.sync += scaled.eq(scale.o)

        self._block(m, steps[-1], scaled)
        return m

    def _terms(self, m: Module) -> list[Value]:
        """Return the terms of a group, a register behind their products."""
        params, config = self.params, self.config
        wide_lanes = params.spec.wide_head_lanes
        absent = Mux(config.largest, Const(_LEAST, FP32.bits), Const(_NOTHING, FP32.bits))
        terms: list[Value] = []
        for lane in range(params.spec.head_lanes):
            dot = self.dots[lane]
            positive = ~dot[-1] & dot[:-1].any()
            m.submodules[f"weigh_{lane}"] = multiplier = FloatMul(FP32, FP32, FP32)
            m.d.comb += [
                multiplier.a.eq(Mux(config.relu & ~positive, 0, dot)),
                multiplier.b.eq(self.weights[lane]),
            ]
            present = Const(1, 1) if lane == 0 else ~self.step.final | (config.last_lane >= lane)
            if lane >= 2 * wide_lanes:
                present &= ~config.wide
            elif lane >= wide_lanes:
                present &= ~config.wide | config.shares
            term = Signal(FP32.bits, name=f"term_{lane}")
            m.d.sync += term.eq(Mux(present, multiplier.o, absent))
            terms.append(term)
        return terms

    def _join(self, m: Module, name: str, old: Value, new: Value) -> Value:
        """Return the sum of two terms, or the larger one, the old one of equals."""
        m.submodules[f"add_{name}"] = adder = FloatAdd(FP32)
        m.submodules[f"compare_{name}"] = larger = FloatMax(FP32)
        m.d.comb += [adder.a.eq(old), adder.b.eq(new), larger.a.eq(new), larger.b.eq(old)]
        return named(m, f"joined_{name}", Mux(self.config.largest, larger.o, adder.o))

    def _block(self, m: Module, step: Signal, score: Signal) -> None:
        """Give out the largest score of a block's keys."""
        best, some = Signal(FP32.bits), Signal()
        number = Signal(self.params.id_bits)
        m.submodules.block = larger = FloatMax(FP32)
        m.d.comb += [
            larger.a.eq(score),
            larger.b.eq(best),
            self.score.score.eq(Mux(some, larger.o, score)),
            self.score.id.eq(number),
        ]
        with m.If(step.valid & step.last & step.final):
            m.d.comb += self.score_valid.eq(step.ends)
            m.d.sync += [best.eq(self.score.score), some.eq(~step.ends)]
            with m.If(step.ends):
                m.d.sync += number.eq(number + 1)
        with m.If(self.restart):
            m.d.sync += number.eq(0)
