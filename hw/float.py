"""Combinational IEEE 754 arithmetic on codes: add, multiply, round, maximum.

Every primitive is exact to the last bit: round to nearest, ties to even, subnormals kept, infinities
and signed zeros as IEEE 754 has them, and every NaN the one positive quiet NaN ``nan_code``. There is
no clock and no state; whoever instantiates one chooses where the registers stand. Any format of
:mod:`golden.formats` with an infinity will do. ``tests/hw/test_float.py`` and
``tests/rtl/test_float*.py`` prove them equal to NumPy's arithmetic.

Hardware is left out where the formats prove it unneeded: a product of two fp16 numbers is a normal
fp32 number or zero, so that multiplier has neither rounding nor a shifter for subnormal results. One of
two bf16 numbers has both: bf16 has fp32's exponents, and products leave fp32's range at both ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Instance, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.float_steps import (
    leading_zeros,
    named,
    narrow_exponent,
    pack,
    require_format,
    round_magnitude,
    shift_left,
    shift_right_sticky,
    unpack,
)
from hw.native_arithmetic import native_module

if TYPE_CHECKING:
    from golden.formats import FloatFormat

__all__ = ["FloatAdd", "FloatMax", "FloatMul", "FloatRound"]


class FloatAdd(wiring.Component):
    """Sum of two numbers of one format: ``o = round(a + b)``.

    One path: the smaller magnitude is aligned under the larger with guard, round and sticky bit, one
    adder sums or subtracts, one shifter normalises, one increment rounds. An exact zero of unlike signs
    is +0.

    Parameters
    ----------
    fmt : FloatFormat
        Format of all three ports.

    Members
    -------
    a, b : In(fmt.bits)
        Codes of the operands.
    o : Out(fmt.bits)
        Code of the sum, combinational.

    Raises
    ------
    TypeError, ValueError
        If ``fmt`` is no :class:`FloatFormat` or has no infinity.
    """

    a: Signal
    b: Signal
    o: Signal

    def __init__(self, fmt: FloatFormat) -> None:
        require_format("fmt", fmt)
        self.fmt = fmt
        super().__init__({"a": In(fmt.bits), "b": In(fmt.bits), "o": Out(fmt.bits)})

    def elaborate(self, platform: object) -> Module:
        """Build the adder."""
        m = Module()
        native = native_module(platform, "add", (self.fmt, self.fmt), self.fmt)
        if native is not None:
            m.submodules.native = Instance(native, i_a=self.a, i_b=self.b, o_o=self.o)
            return m
        fmt = self.fmt
        a = unpack(m, "a", self.a, fmt)
        b = unpack(m, "b", self.b, fmt)
        swap = named(m, "swap", self.a[:-1] < self.b[:-1])
        sign = named(m, "large_sign", Mux(swap, b.sign, a.sign))
        exponent = named(m, "large_exponent", Mux(swap, b.exponent, a.exponent))
        large = named(m, "large", Mux(swap, b.significand, a.significand))
        small = named(m, "small", Mux(swap, a.significand, b.significand))
        distance = named(m, "distance", exponent - Mux(swap, a.exponent, b.exponent))[: fmt.exponent_bits]
        unlike = named(m, "unlike", a.sign ^ b.sign)

        guard = Const(0, 3)
        aligned = shift_right_sticky(m, "align", Cat(guard, small), distance)
        width = len(aligned) + 1
        # large - aligned as large + ~aligned + 1: one carry chain serves both signs.
        operand = named(m, "operand", Cat(aligned, Const(0, 1)) ^ unlike.replicate(width))
        total = named(m, "total", (Cat(guard, large, Const(0, 1)) + operand + unlike)[:width])

        # A mark where the exponent would reach 1 keeps the shift from going below the subnormals.
        mark = Cat(exponent == width - 1 - place for place in range(width))
        shift = leading_zeros(m, "zeros", named(m, "marked", total | mark))
        normal = shift_left(m, "normal", total, shift)
        result = named(m, "result_exponent", exponent + 1 - shift)[: fmt.exponent_bits]
        magnitude = round_magnitude(m, fmt, result, normal, low=1, high=fmt.exponent_mask)

        m.d.comb += self.o.eq(
            pack(
                fmt,
                sign & ~(unlike & ~total.any()),
                magnitude,
                inf=a.inf | b.inf,
                nan=a.nan | b.nan | (a.inf & b.inf & unlike),
            )
        )
        return m


class FloatMul(wiring.Component):
    """Product of two numbers, each of its own format: ``o = round(a * b)``, rounded once.

    Parameters
    ----------
    fmt_a, fmt_b, fmt_out : FloatFormat
        Formats of the operands and of the product.

    Members
    -------
    a : In(fmt_a.bits)
        Code of one operand.
    b : In(fmt_b.bits)
        Code of the other.
    o : Out(fmt_out.bits)
        Code of the product, combinational. Zero times infinity is NaN.

    Raises
    ------
    TypeError, ValueError
        If a format is no :class:`FloatFormat` or has no infinity.
    """

    a: Signal
    b: Signal
    o: Signal

    def __init__(self, fmt_a: FloatFormat, fmt_b: FloatFormat, fmt_out: FloatFormat) -> None:
        for name, fmt in (("fmt_a", fmt_a), ("fmt_b", fmt_b), ("fmt_out", fmt_out)):
            require_format(name, fmt)
        self.fmt_a, self.fmt_b, self.fmt_out = fmt_a, fmt_b, fmt_out
        super().__init__({"a": In(fmt_a.bits), "b": In(fmt_b.bits), "o": Out(fmt_out.bits)})

    def elaborate(self, platform: object) -> Module:
        """Build the multiplier."""
        m = Module()
        native = native_module(platform, "mul", (self.fmt_a, self.fmt_b), self.fmt_out)
        if native is not None:
            m.submodules.native = Instance(native, i_a=self.a, i_b=self.b, o_o=self.o)
            return m
        fmt_a, fmt_b, fmt = self.fmt_a, self.fmt_b, self.fmt_out
        a = unpack(m, "a", self.a, fmt_a)
        b = unpack(m, "b", self.b, fmt_b)
        product = named(m, "product", a.significand * b.significand)
        shift = leading_zeros(m, "zeros", product)
        normal = shift_left(m, "normal", product, shift)

        # Exponents of the product's highest bit as fmt_out biases them, over all nonzero operands.
        rebias = fmt.bias + 1 - fmt_a.bias - fmt_b.bias
        low = 1 - fmt_a.significand_bits + 1 - fmt_b.significand_bits + rebias - 1
        high = fmt_a.exponent_mask - 1 + fmt_b.exponent_mask - 1 + rebias
        exponent = narrow_exponent(m, a.exponent + b.exponent + Const(rebias, signed(16)) - shift, low, high)
        magnitude = round_magnitude(m, fmt, exponent, normal, low=low, high=high)

        zero = named(m, "zero", ~product.any())
        m.d.comb += self.o.eq(
            pack(
                fmt,
                a.sign ^ b.sign,
                magnitude,
                inf=a.inf | b.inf,
                nan=a.nan | b.nan | ((a.inf | b.inf) & zero),
            )
        )
        return m


class FloatRound(wiring.Component):
    """Conversion between formats: ``o = round(i)``; exact where ``dst`` holds every number of ``src``.

    Parameters
    ----------
    src, dst : FloatFormat
        Formats of the operand and of the result.

    Members
    -------
    i : In(src.bits)
        Code of the operand.
    o : Out(dst.bits)
        Code of the result, combinational. Too large a number becomes infinity of its sign.

    Raises
    ------
    TypeError, ValueError
        If a format is no :class:`FloatFormat` or has no infinity.
    """

    i: Signal
    o: Signal

    def __init__(self, src: FloatFormat, dst: FloatFormat) -> None:
        require_format("src", src)
        require_format("dst", dst)
        self.src, self.dst = src, dst
        super().__init__({"i": In(src.bits), "o": Out(dst.bits)})

    def elaborate(self, platform: object) -> Module:
        """Build the converter."""
        m = Module()
        src, dst = self.src, self.dst
        number = unpack(m, "i", self.i, src)
        rebias = dst.bias - src.bias
        exponent = number.exponent + Const(rebias, signed(16))
        significand = number.significand
        low, high = 1 + rebias, src.exponent_mask - 1 + rebias
        if low > -dst.significand_bits - 1 and src.exponent_bits != dst.exponent_bits:
            # Only where subnormals of src don't all round to zero do they have to be normalised.
            shift = leading_zeros(m, "zeros", significand)
            significand = shift_left(m, "normal", significand, shift)
            exponent = exponent - shift
            low -= src.significand_bits
        exponent = narrow_exponent(m, exponent, low, high)
        magnitude = round_magnitude(m, dst, exponent, significand, low=low, high=high)
        m.d.comb += self.o.eq(pack(dst, number.sign, magnitude, inf=number.inf, nan=number.nan))
        return m


class FloatMax(wiring.Component):
    """Maximum of two numbers: ``o = a > b ? a : b``, NaN if either is.

    On equal operands ``o`` is ``b``, and -0 equals +0: pass the older value as ``b``.

    Parameters
    ----------
    fmt : FloatFormat
        Format of the operands.

    Members
    -------
    a, b : In(fmt.bits)
        Codes of the operands.
    o : Out(fmt.bits)
        Code of the maximum, combinational.
    gt : Out(1)
        ``a > b``; false if either is NaN.

    Raises
    ------
    TypeError, ValueError
        If ``fmt`` is no :class:`FloatFormat` or has no infinity.
    """

    a: Signal
    b: Signal
    o: Signal
    gt: Signal

    def __init__(self, fmt: FloatFormat) -> None:
        require_format("fmt", fmt)
        self.fmt = fmt
        super().__init__({"a": In(fmt.bits), "b": In(fmt.bits), "o": Out(fmt.bits), "gt": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the comparator."""
        m = Module()
        a, b = self.a, self.b
        nan = named(m, "nan", (a[:-1] > self.fmt.inf_code) | (b[:-1] > self.fmt.inf_code))
        zeros = named(m, "zeros", ~(a[:-1].any() | b[:-1].any()))
        above = named(m, "above", a[:-1] > b[:-1])
        below = named(m, "below", a[:-1] < b[:-1])
        # Unlike signs decide alone, else the magnitudes do, the other way round below zero.
        greater = Mux(a[-1] ^ b[-1], b[-1], Mux(a[-1], below, above))
        m.d.comb += [
            self.gt.eq(greater & ~zeros & ~nan),
            self.o.eq(Mux(nan, self.fmt.nan_code, Mux(self.gt, a, b))),
        ]
        return m
