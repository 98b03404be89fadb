"""Schraudolph's exponential in gates: t is the result, but for what is done to its fraction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Mux

from golden.exp.schraudolph import SchraudolphSpec
from hw.units.exp.datapath import Step, datapath
from hw.units.exp.frame import framed

if TYPE_CHECKING:
    from amaranth.hdl import Module, Value

    from golden.exp.schraudolph import Correction

__all__: list[str] = []


def _plain(spec: SchraudolphSpec) -> list[Step]:
    """Return the step that subtracts the offset."""

    def subtract(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        n, f = values["n"], values["f"]
        if spec.offset:
            t = Cat(f, n).as_signed()
            moved = t - spec.offset
            t = Mux(~t[-1] & moved[-1], 0, moved)
            n, f = t[spec.frac_bits :].as_signed(), t[: spec.frac_bits]
        return {"kind": values["kind"], "n": n, "h": Cat(f, Const(1, 1))}

    return [subtract]


def _corrected(spec: SchraudolphSpec, c: Correction) -> list[Step]:
    """Return the two steps of a correction: product of f, or its complement, with f and a constant; then the factor."""
    place = spec.frac_bits - c.constant_bits

    def multiply(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        f = values["f"]
        upper = f[-1]
        # The leading bit of f below 1/2, and of its complement from there on, is 0.
        near = f[:-1] ^ upper.replicate(spec.frac_bits - 1)
        moved = f + Mux(upper, c.upper_constant << place, c.lower_constant << place)
        return {"kind": values["kind"], "n": values["n"], "upper": upper, "product": near * moved}

    def scale(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        upper = values["upper"]
        scaled = values["product"] * Mux(upper, c.upper, c.lower)
        # What is left fits the mantissa: the spec has been checked at either end of both halves.
        mantissa = scaled[spec.frac_bits + c.factor_bits :][: spec.frac_bits] ^ upper.replicate(spec.frac_bits)
        return {"kind": values["kind"], "n": values["n"], "h": Cat(mantissa, Const(1, 1))}

    return [multiply, scale]


@datapath.register(SchraudolphSpec)
def _(spec: SchraudolphSpec) -> list[Step]:
    return framed(spec, _plain(spec) if spec.correction is None else _corrected(spec, spec.correction))
