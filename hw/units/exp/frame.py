"""Range reduction and rounding in gates, around a core that computes ``2^f``.

The functions follow :class:`golden.exp.frame.ReducedSpec` line by line. Where a value is cut to fewer bits than
Amaranth gives it, the comment says why the rest is zero, or a copy of the sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Value, signed
from amaranth.lib import enum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from golden.exp.frame import ReducedSpec
    from hw.units.exp.datapath import Step

__all__ = ["Frame", "Kind", "Operand", "Scaled", "framed"]


class Kind(enum.IntEnum, shape=2):
    """What an operand demands: a computed result, or one of three constants."""

    FINITE = 0
    ZERO = 1
    INF = 2
    NAN = 3


class Operand(NamedTuple):
    """An operand taken apart: ``|x|`` is ``significand * 2^-shift`` in units that do not depend on x."""

    kind: Value
    significand: Value
    shift: Value


class Scaled(NamedTuple):
    """A result before rounding: the code is ``base * 2^S + kept``, plus one if the rest rounds up."""

    kind: Value
    base: Value
    kept: Value
    half: Value
    sticky: Value


class Frame:
    """Gates of the frame of one :class:`golden.exp.frame.ReducedSpec`.

    Parameters
    ----------
    spec : ReducedSpec
        Constants and word lengths.
    """

    def __init__(self, spec: ReducedSpec) -> None:
        self.spec = spec
        fmt = spec.fmt
        largest = fmt.bias + spec.range_bits - 1
        self._largest_field = largest
        # Where t's lowest fraction bit lies in the product of an operand with the largest field; above or below.
        self._place = spec.range_bits - 1 - fmt.significand_bits - spec.log2e_bits + spec.frac_bits

    @property
    def significand_shape(self) -> Shape:
        """Shape of :attr:`Operand.significand`: the hidden bit and a sign."""
        return signed(self.spec.fmt.significand_bits + 2)

    @property
    def shift_bits(self) -> int:
        """Width of :attr:`Operand.shift`."""
        return (self._largest_field - 1).bit_length()

    @property
    def product_shape(self) -> Shape:
        """Shape of ``significand * log2e``."""
        return signed(self.significand_shape.width + self.spec.log2e.bit_length())

    @property
    def n_shape(self) -> Shape:
        """Shape of n, the whole of what the product has above the fraction of t."""
        return signed(self.product_shape.width + self._place - self.spec.frac_bits)

    def decode(self, code: Value) -> Operand:
        """Take an operand apart. Beyond the range, significand and shift mean nothing: ``kind`` decides."""
        fmt = self.spec.fmt
        sign = Const(1) if self.spec.domain == "nonpositive" else code[-1]
        fraction, field = code[: fmt.significand_bits], code[fmt.significand_bits : -1]
        normal = field.any()
        magnitude = Cat(fraction, normal)
        limit = Mux(sign, Kind.ZERO, Kind.INF)
        kind = Mux(field.all() & fraction.any(), Kind.NAN, Mux(field > self._largest_field, limit, Kind.FINITE))
        # A subnormal has the exponent of the smallest normal. In range the difference is never negative.
        shift = (self._largest_field - Mux(normal, field, 1))[: self.shift_bits]
        return Operand(kind, Mux(sign, -magnitude, magnitude), shift)

    def split(self, product: Value, shift: Value) -> tuple[Value, Value]:
        """Return n and f of ``t``, the floor of the signed ``product`` shifted into place."""
        padded = Cat(Const(0, max(0, self._place)), product).as_signed()
        t = (padded >> shift)[max(0, -self._place) :]
        n = t[self.spec.frac_bits :].as_signed()
        assert n.shape() == self.n_shape
        return n, t[: self.spec.frac_bits]

    def scale(self, kind: Value, n: Value, h: Value) -> Scaled:
        """Move ``h * 2^n`` to where the result is rounded, and see whether it overflows."""
        fmt = self.spec.fmt
        field = n + fmt.bias
        normal = field > 0
        overflow = (kind == Kind.FINITE) & (n > fmt.bias)
        kind = Mux(overflow, Kind.INF, kind)
        lowest = self.spec.core_bits - fmt.significand_bits
        if self.spec.subnormals == "flushed":
            kind = Mux((kind == Kind.FINITE) & ~normal, Kind.ZERO, kind)
            moved = h
        else:
            # Subnormal results move down; ``deepest`` places down all that is left rounds to zero.
            deepest = fmt.significand_bits + 2
            depth = 1 - field
            drop = Mux(normal, 0, Mux(depth > deepest, deepest, depth))[: deepest.bit_length()]
            moved = Cat(Const(0, deepest), h) >> drop
            lowest += deepest
        # Unless it overflows, a normal result's field less one fits the field.
        base = Mux(normal, field - 1, 0)[: fmt.exponent_bits]
        return Scaled(kind, base, kept=moved[lowest:], half=moved[lowest - 1], sticky=moved[: lowest - 1].any())

    def round(self, scaled: Scaled) -> Value:
        """Round as the spec says and return the code; the hidden bit in ``kept`` carries into the exponent field."""
        fmt = self.spec.fmt
        up: Value = Const(0, 1)
        if self.spec.rounding == "nearest_up":
            up = scaled.half
        elif self.spec.rounding == "nearest_even":
            up = scaled.half & (scaled.sticky | scaled.kept[0])
        total = Cat(Const(0, fmt.significand_bits), scaled.base) + scaled.kept + up
        # A finite result reaches at most the code of infinity, by its carry; there is no sign.
        finite = Cat(total[: fmt.bits - 1], Const(0, 1))
        limit = Mux(scaled.kind == Kind.INF, fmt.inf_code, fmt.nan_code)
        return Mux(scaled.kind == Kind.FINITE, finite, Mux(scaled.kind == Kind.ZERO, 0, limit))


def framed(spec: ReducedSpec, core: Sequence[Step]) -> list[Step]:
    """Return the steps of ``core`` between those of its frame: product and shift before, scaling and rounding behind.

    Parameters
    ----------
    spec : ReducedSpec
        Whose datapath it is.
    core : sequence of Step
        The first is given ``kind``, ``n`` and ``f``; each hands on ``kind`` and ``n`` as they are, and the last
        leaves ``h`` beside them, unsigned and of ``core_bits + 1`` bits, or one more if the core reaches 2.
    """
    frame = Frame(spec)

    def multiply(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        operand = frame.decode(values["x"])
        return {"kind": operand.kind, "shift": operand.shift, "product": operand.significand * spec.log2e}

    def split(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        n, f = frame.split(values["product"], values["shift"])
        return {"kind": values["kind"], "n": n, "f": f}

    def scale(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        return frame.scale(values["kind"], values["n"], values["h"])._asdict()

    def round_(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        return {"y": frame.round(Scaled(**values))}

    return [multiply, split, *core, scale, round_]
