"""Correctly rounded reciprocal by digit recurrence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.float_steps import (
    leading_zeros,
    narrow_exponent,
    pack,
    require_format,
    round_magnitude,
    shift_left,
    unpack,
)
from hw.timing.finish import RECIPROCAL_BITS_PER_CYCLE, reciprocal_iterations

if TYPE_CHECKING:
    from amaranth.hdl import ShapeLike, Value

    from golden.formats import FloatFormat

__all__ = ["Reciprocal", "reciprocal_layout"]


def reciprocal_layout(fmt: FloatFormat, tag: ShapeLike) -> data.StructLayout:
    """Describe a number of ``fmt`` and what travels with it."""
    return data.StructLayout({"value": fmt.bits, "tag": tag})


class Reciprocal(wiring.Component):
    """Reciprocal of one number: ``o.value = round(1 / i.value)``; the tag comes along.

    Overview
    --------
    Restoring division of 1 by the significand, two quotient bits a cycle, two bits beyond the last kept one; what is
    left of the dividend decides between them. Rounding shares its cycle with the load of the next operand.

    Timing
    ------
    fp32, digits in cycles 1 to 13, rounding in cycle 14::

        cycle     0  1  ... 13 14 15
        i.valid   A  B      B  B  .
        i.ready   1  0      0  1  0
        o.valid   .  .      .  .  A

    Latency and throughput
    ----------------------
    :func:`hw.timing.finish.reciprocal_latency_cycles`, 15 for fp32, from the transfer of an operand to the first
    cycle of its result; one operand every :func:`hw.timing.finish.reciprocal_interval_cycles`, 14 for fp32. A result
    that waits holds the next one before its rounding.

    Numerics
    --------
    Round to nearest, ties to even, subnormal operands and results kept, the reciprocal of a zero is the infinity of its
    sign and the reverse, that of a NaN the canonical NaN. ``tests/rtl/test_reciprocal.py`` compares it with NumPy's
    division.

    Parameters
    ----------
    fmt : FloatFormat
        Format of operand and result.
    tag : ShapeLike
        Shape of what travels with them.

    Members
    -------
    i : ``In(stream.Signature(reciprocal_layout(fmt, tag)))``
        Operands; ``i.ready`` follows ``o.ready`` combinationally.
    o : ``Out(stream.Signature(reciprocal_layout(fmt, tag)))``
        Results, registered.

    Raises
    ------
    TypeError, ValueError
        If ``fmt`` is no FloatFormat or has no infinity.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, fmt: FloatFormat, tag: ShapeLike) -> None:
        require_format("fmt", fmt)
        self.fmt = fmt
        self.tag = tag
        layout = stream.Signature(reciprocal_layout(fmt, tag))
        super().__init__({"i": In(layout), "o": Out(layout)})

    def elaborate(self, platform: object) -> Module:
        """Build the recurrence and the rounding."""
        m = Module()
        fmt = self.fmt
        width = fmt.significand_bits + 1
        iterations = reciprocal_iterations(fmt)

        # step: 0 while idle or loading, 1 to iterations while digits are made, then one more to round.
        step = Signal(range(iterations + 2))
        rounding = step == iterations + 1
        leave = Signal()
        load = Signal()
        m.d.comb += [
            leave.eq(rounding & (~self.o.valid | self.o.ready)),
            self.i.ready.eq((step == 0) | leave),
            load.eq(self.i.valid & self.i.ready),
        ]

        number = unpack(m, "i", self.i.payload.value, fmt)
        shift = leading_zeros(m, "zeros", number.significand)
        normal = shift_left(m, "normal", number.significand, shift)
        # Exponent of 1 / 1.0 as fmt biases it; the quotient's highest bit may stand one place lower.
        low = 2 * fmt.bias - fmt.exponent_mask + 1
        high = 2 * fmt.bias - 1 + fmt.significand_bits
        kind_layout = data.StructLayout({"sign": 1, "nan": 1, "inf": 1, "zero": 1, "tag": self.tag})
        kind = Signal(kind_layout)
        exponent = Signal(signed(1 + high.bit_length()))
        divisor = Signal(width)
        remainder = Signal(width)
        quotient = Signal(RECIPROCAL_BITS_PER_CYCLE * iterations)
        with m.If(load):
            m.d.sync += [
                step.eq(1),
                kind.sign.eq(number.sign),
                kind.nan.eq(number.nan),
                kind.inf.eq(~number.significand.any()),
                kind.zero.eq(number.inf),
                kind.tag.eq(self.i.payload.tag),
                exponent.eq(2 * fmt.bias - number.exponent + shift),
                divisor.eq(normal),
                # Half of 1.0: a step doubles first.
                remainder.eq(1 << (width - 2)),
            ]
        with m.Elif(leave):
            m.d.sync += step.eq(0)
        with m.Elif((step != 0) & ~rounding):
            rest: Value = remainder
            digits: list[Value] = []
            for place in range(RECIPROCAL_BITS_PER_CYCLE):
                doubled = Cat(Const(0, 1), rest)
                difference = Signal(width + 2, name=f"difference_{place}")
                m.d.comb += difference.eq(doubled - divisor)
                fits = ~difference[-1]
                digits.insert(0, fits)
                rest = Mux(fits, difference, doubled)[:width]
            m.d.sync += [step.eq(step + 1), remainder.eq(rest), quotient.eq(Cat(*digits, quotient))]

        one = quotient[-1]
        digits_in_place = Mux(one, quotient, quotient << 1)[: len(quotient)]
        magnitude = round_magnitude(
            m,
            fmt,
            narrow_exponent(m, exponent - ~one, low - 1, high),
            Cat(remainder.any(), digits_in_place),
            low=low - 1,
            high=high,
        )
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(leave):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.value.eq(pack(fmt, kind.sign, Mux(kind.zero, 0, magnitude), inf=kind.inf, nan=kind.nan)),
                self.o.payload.tag.eq(kind.tag),
            ]
        return m
