"""Piecewise lines and parabolas in gates: tables, then one multiplier with an adder behind it a degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.exp.segments import SegmentSpec
from hw.units.exp.datapath import Step, datapath
from hw.units.exp.frame import framed
from hw.units.exp.lookup import lookup

if TYPE_CHECKING:
    from amaranth.hdl import Module, Value

__all__: list[str] = []


def _tables(spec: SegmentSpec) -> Step:
    """Return the step that fetches the coefficients of the segment."""

    def step(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        f = values["f"]
        u, s = f[: spec.place_bits], f[spec.place_bits :]
        entries = {f"c{k}": lookup(m, s, table, name=f"table_{k}") for k, table in enumerate(spec.tables)}
        h = entries.pop(f"c{spec.degree}")
        return {"kind": values["kind"], "n": values["n"], "u": u, "h": h, **entries}

    return step


def _product(spec: SegmentSpec, k: int) -> Step:
    """Return the step that multiplies by the place in the segment and adds ``tables[k]``."""
    # The sum rises within a segment, so its values at the ends, known exactly, say how many bits hold it. The result
    # has one bit before the point, whatever it reaches.
    bits = max(1, max(spec.limits[k]).bit_length()) if k else spec.core_bits + 1

    def step(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        u = values["u"]
        product = values["h"] * u[spec.place_bits - spec.operand_bits[k] :]
        h = (product[spec.product_shift(k) :] + values[f"c{k}"])[:bits]
        kept = {name: values[name] for name in ("kind", "n", *(f"c{j}" for j in range(k)), *(["u"] if k else []))}
        return {**kept, "h": h}

    return step


@datapath.register(SegmentSpec)
def _(spec: SegmentSpec) -> list[Step]:
    return framed(spec, [_tables(spec), *(_product(spec, k) for k in reversed(range(spec.degree)))])
