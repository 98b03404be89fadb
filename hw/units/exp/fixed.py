"""Range reduction and rounding in gates for fixed-point operands: no shift before the core, one behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Value

from golden.exp.fixed import FixedPolynomialSpec
from hw.units.exp.datapath import Step, datapath
from hw.units.exp.polynomial import core_steps

if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []


@datapath.register(FixedPolynomialSpec)
def _(spec: FixedPolynomialSpec) -> list[Step]:
    result = spec.result

    def multiply(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        product = values["x"].as_signed() * spec.log2e
        place = spec.frac_bits - spec.fmt.fraction_bits - spec.log2e_bits
        t = Cat(Const(0, max(0, place)), product)[max(0, -place) :]
        return {"n": t[spec.frac_bits :].as_signed(), "f": t[: spec.frac_bits]}

    def scale(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        n = values["n"]
        deepest = spec.core_bits + 2 - spec.smallest_drop
        depth = result.integer_bits - 1 - n
        saturated = n >= result.integer_bits
        # Where it is below zero the result is the largest code, whatever comes out of the shift.
        down = Mux(depth > deepest, deepest, depth)[: deepest.bit_length()]
        moved = Cat(Const(0, deepest), values["h"]) >> down
        lowest = deepest + spec.smallest_drop
        return {
            "saturated": saturated,
            "kept": moved[lowest:],
            "half": moved[lowest - 1],
            "sticky": moved[: lowest - 1].any(),
        }

    def round_(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        kept = values["kept"]
        up: dict[str, Callable[[], Value]] = {
            "nearest_even": lambda: values["half"] & (values["sticky"] | kept[0]),
            "nearest_up": lambda: values["half"],
            "truncated": lambda: Const(0, 1),
        }
        total = kept + up[spec.rounding]()
        largest = values["saturated"] | total[result.bits :].any()
        return {"y": Mux(largest, result.max_code, total[: result.bits])}

    return [multiply, *core_steps(spec, ("n",)), scale, round_]
