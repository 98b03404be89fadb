"""Processing units that hold slices of every token, with their score adder: to a bench one unit with wide payloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.layouts import body_layout, command_layout, head_layout, kv_layout, vector_layout
from hw.units.processing import ProcessingUnit
from hw.units.processing_scores import token_score_signature
from hw.units.score_adder import ScoreAdder

if TYPE_CHECKING:
    from hw.params import ProcessingParams

__all__ = ["ProcessingGroup", "processing"]


def processing(params: ProcessingParams) -> wiring.Component:
    """Return a unit of these parameters, or the group of units if they hold slices."""
    return ProcessingUnit(params) if params.slices == 1 else ProcessingGroup(params)


class ProcessingGroup(wiring.Component):
    """``params.slices`` units in lock step: every stream transfers in all of them or in none.

    One command goes to all units; payloads of the other streams stand side by side, unit 0 at the lowest bits. The
    permissions and the scores are those of unit 0, and must be the same in all.
    """

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params

        def wide(layout):
            return stream.Signature(params.slices * layout.size)

        super().__init__(
            {
                "command": In(stream.Signature(command_layout(params).size)),
                "query": In(wide(vector_layout(params))),
                "kv": In(wide(kv_layout(params))),
                "head": Out(wide(head_layout(params))),
                "body": Out(wide(body_layout(params))),
                "key_operations": Out(2),
                "value_tiles": Out(2),
                "token_score": Out(token_score_signature(params)),
                "unequal": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        units = [ProcessingUnit(self.params) for _ in range(self.params.slices)]
        for number, unit in enumerate(units):
            m.submodules[f"unit_{number}"] = unit
        m.submodules.adder = adder = ScoreAdder(self.params.slices)
        for name in ("command", "query", "kv"):
            own, parts = getattr(self, name), [getattr(unit, name) for unit in units]
            m.d.comb += own.ready.eq(Cat(part.ready for part in parts).all())
            m.d.comb += [part.valid.eq(own.valid & own.ready) for part in parts]
            payloads = [part.payload.as_value() for part in parts]
            if name == "command":
                m.d.comb += [payload.eq(own.payload) for payload in payloads]
            else:
                m.d.comb += Cat(payloads).eq(own.payload)
        for name in ("head", "body"):
            own, parts = getattr(self, name), [getattr(unit, name) for unit in units]
            m.d.comb += own.valid.eq(Cat(part.valid for part in parts).all())
            m.d.comb += own.payload.eq(Cat(part.payload.as_value() for part in parts))
            m.d.comb += [part.ready.eq(own.ready & own.valid) for part in parts]
        for unit, part in zip(units, adder.i, strict=True):
            wiring.connect(m, unit.partial, part)
            m.d.comb += [unit.score.valid.eq(adder.o.valid), unit.score.sum.eq(adder.o.sum)]
        scores = [Cat(unit.token_score.valid, unit.token_score.token) for unit in units]
        said = [Cat(unit.key_operations, unit.value_tiles, score) for unit, score in zip(units, scores, strict=True)]
        m.d.comb += [
            Cat(self.key_operations, self.value_tiles, self.token_score.valid, self.token_score.token).eq(said[0]),
            self.unequal.eq(Cat(other != said[0] for other in said).any() | adder.fault),
        ]
        return m
