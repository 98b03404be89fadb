"""The steps of the exponential as combinational functions, for an evaluation to lay out in time.

They follow :meth:`golden.exp.ExpSpec.evaluate_codes` line by line. Where a value is cut to fewer bits than
Amaranth gives it, the comment says why the rest is zero, or a copy of the sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from amaranth.hdl import Cat, Const, Mux, Shape, Signal, Value, signed
from amaranth.lib import enum

if TYPE_CHECKING:
    from golden.exp import ExpSpec

__all__ = ["ExpSteps", "Kind", "Operand", "Scaled", "assign"]


def assign(target: Signal, value: Value) -> Any:
    """Return ``target.eq(value)``, which would cut silently, after checking that nothing is cut."""
    have, want = value.shape(), target.shape()
    need = have.width + (want.signed and not have.signed)
    if need > want.width or (have.signed and not want.signed):
        raise ValueError(f"{target.name} must hold {have!r}, not {want!r}")
    return target.eq(value)


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


class ExpSteps:
    """Steps of one :class:`golden.exp.ExpSpec`.

    Parameters
    ----------
    spec : ExpSpec
        Constants and word lengths.
    """

    def __init__(self, spec: ExpSpec) -> None:
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

    @property
    def horner_widths(self) -> tuple[int, ...]:
        """Width of every Horner sum, index k after adding ``c[k]``."""
        return tuple(max(1, limit.bit_length()) for limit in self.spec.horner_limits)

    def decode(self, code: Value) -> Operand:
        """Take an operand apart. Beyond the range, significand and shift mean nothing: ``kind`` decides."""
        fmt = self.spec.fmt
        fraction, field, sign = code[: fmt.significand_bits], code[fmt.significand_bits : -1], code[-1]
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

    def coefficient(self, k: int) -> Const:
        """Return ``c[k]`` in the width of its Horner sum."""
        return Const(self.spec.coefficients[k], self.horner_widths[k])

    def horner(self, product: Value, coefficient: Value, bits: int) -> Value:
        """Return the next Horner sum from the unsigned product of the last one and f.

        The sum rises with f, so its value at the largest f, known exactly, says how many ``bits`` hold it:
        :attr:`horner_widths` of this sum, or the largest of them.
        """
        return (product[self.spec.frac_bits :] + coefficient)[:bits]

    def scale(self, kind: Value, n: Value, h: Value) -> Scaled:
        """Move ``h * 2^n`` to where the result is rounded, and see whether it overflows."""
        fmt = self.spec.fmt
        deepest = fmt.significand_bits + 2
        field = n + fmt.bias
        normal = field > 0
        depth = 1 - field
        # Subnormal results move down; ``deepest`` places down all that is left rounds to zero.
        drop = Mux(normal, 0, Mux(depth > deepest, deepest, depth))[: deepest.bit_length()]
        moved = Cat(Const(0, deepest), h) >> drop
        lowest = self.spec.horner_bits + 2
        overflow = (kind == Kind.FINITE) & (n > fmt.bias)
        # Unless it overflows, a normal result's field less one fits the field.
        base = Mux(normal, field - 1, 0)[: fmt.exponent_bits]
        return Scaled(
            kind=Mux(overflow, Kind.INF, kind),
            base=base,
            kept=moved[lowest:],
            half=moved[lowest - 1],
            sticky=moved[: lowest - 1].any(),
        )

    def round(self, scaled: Scaled) -> Value:
        """Round to nearest even and return the code; the hidden bit in ``kept`` carries into the exponent field."""
        fmt = self.spec.fmt
        up = scaled.half & (scaled.sticky | scaled.kept[0])
        total = Cat(Const(0, fmt.significand_bits), scaled.base) + scaled.kept + up
        # A finite result reaches at most the code of infinity, by its carry; there is no sign.
        finite = Cat(total[: fmt.bits - 1], Const(0, 1))
        limit = Mux(scaled.kind == Kind.INF, fmt.inf_code, fmt.nan_code)
        return Mux(scaled.kind == Kind.FINITE, finite, Mux(scaled.kind == Kind.ZERO, 0, limit))
