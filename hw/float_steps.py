"""Steps of floating-point arithmetic in hardware, from which :mod:`hw.float` and the reciprocal are put together.

Each takes the module under construction, adds combinational logic to it, and returns values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from golden.formats import FloatFormat

if TYPE_CHECKING:
    from amaranth.hdl import ValueLike

__all__ = [
    "Number",
    "leading_zeros",
    "named",
    "narrow_exponent",
    "pack",
    "require_format",
    "round_magnitude",
    "shift_left",
    "shift_right_sticky",
    "unpack",
]


class Number(NamedTuple):
    """A code taken apart; value = ``significand / 2^significand_bits * 2^(exponent - bias)`` where finite."""

    sign: Value
    exponent: Value
    significand: Value
    nan: Value
    inf: Value


def require_format(name: str, fmt: object) -> None:
    """Raise unless ``fmt`` is a format these primitives can do."""
    if not isinstance(fmt, FloatFormat):
        raise TypeError(f"{name} must be a FloatFormat, not {fmt!r}")
    if not fmt.has_infinity:
        raise ValueError(f"{name} must be a format with an infinity, not {fmt.name!r}")


def named(m: Module, name: str, value: ValueLike) -> Signal:
    """Give ``value`` a name, so that it is computed once and can be seen in a trace."""
    value = Value.cast(value)
    signal = Signal(value.shape(), name=name)
    m.d.comb += signal.eq(value)
    return signal


def unpack(m: Module, name: str, code: Value, fmt: FloatFormat) -> Number:
    """Take ``code`` apart. A subnormal has the exponent of the smallest normal and a hidden bit of 0."""
    fraction = code[: fmt.significand_bits]
    field = code[fmt.significand_bits : -1]
    normal = named(m, f"{name}_normal", field.any())
    special = named(m, f"{name}_special", field.all())
    nonzero = named(m, f"{name}_fraction", fraction.any())
    return Number(
        sign=code[-1],
        exponent=named(m, f"{name}_exponent", Cat(field[0] | ~normal, field[1:])),
        significand=named(m, f"{name}_significand", Cat(fraction, normal)),
        nan=named(m, f"{name}_nan", special & nonzero),
        inf=named(m, f"{name}_inf", special & ~nonzero),
    )


def leading_zeros(m: Module, name: str, value: Value) -> Value:
    """Count the zeros above the highest set bit; of a zero the answer means nothing (but is in range)."""
    width = 1 << (len(value) - 1).bit_length()
    groups: list[tuple[Value, Value | None]] = [(bit, None) for bit in Cat(Const(0, width - len(value)), value)]
    level = 0
    while len(groups) > 1:
        merged: list[tuple[Value, Value | None]] = []
        for index in range(0, len(groups), 2):
            (low_any, low_count), (high_any, high_count) = groups[index], groups[index + 1]
            some = named(m, f"{name}_any_{level}_{index // 2}", low_any | high_any)
            count: Value = ~high_any
            if low_count is not None and high_count is not None:
                count = Cat(Mux(high_any, high_count, low_count), ~high_any)
            merged.append((some, named(m, f"{name}_count_{level}_{index // 2}", count)))
        groups = merged
        level += 1
    total = groups[0][1]
    return Const(0, 1) if total is None else total


def shift_left(m: Module, name: str, value: Value, amount: Value) -> Value:
    """Shift within the width of ``value``, one stage a bit of ``amount``."""
    width = len(value)
    for stage in range(len(amount)):
        step = min(1 << stage, width)
        value = named(m, f"{name}_{stage}", Mux(amount[stage], Cat(Const(0, step), value[: width - step]), value))
    return value


def shift_right_sticky(m: Module, name: str, value: Value, amount: Value) -> Value:
    """Shift right; the lowest bit of the answer is the OR of itself and all that fell below it."""
    width = len(value)
    stages = (width - 1).bit_length()
    for stage in range(min(stages, len(amount))):
        step = min(1 << stage, width - 1)
        shifted = Cat(value[: step + 1].any(), value[step + 1 :], Const(0, step))
        value = named(m, f"{name}_{stage}", Mux(amount[stage], shifted, value))
    if len(amount) > stages:
        lost = Cat(value.any(), Const(0, width - 1))
        value = named(m, f"{name}_clamped", Mux(amount[stages:].any(), lost, value))
    return value


def narrow_exponent(m: Module, value: Value, low: int, high: int) -> Value:
    """Cut a computed exponent to the bits that ``low`` to ``high`` need; zero may hold any exponent."""
    width = 1 + max(high.bit_length(), (-low).bit_length())
    return named(m, "result_exponent", value[:width].as_signed())


def round_magnitude(m: Module, fmt: FloatFormat, exponent: Value, significand: Value, *, low: int, high: int) -> Value:
    """Round a finite number's magnitude to ``fmt`` and return its code without the sign.

    The number is ``significand / 2^(width - 1) * 2^(exponent - bias)``; its highest bit is 0 only for
    zero and where ``exponent`` is 1 or will be clamped to it. ``low`` and ``high`` bound the exponent of
    nonzero numbers and decide which hardware is needed.
    """
    kept = fmt.significand_bits + 1
    if len(significand) <= kept:
        significand = Cat(Const(0, kept - len(significand)), significand)
    if len(significand) > kept or low < 1:
        # One guard bit and one sticky bit below the kept ones decide every rounding.
        padded = Cat(Const(0, max(kept + 2 - len(significand), 0)), significand)
        extra = len(padded) - kept - 1
        significand = named(m, "round_significand", Cat(padded[:extra].any(), padded[extra:]))
    if low < 1:
        distance = Mux(exponent < 1, 1 - exponent, 0)
        shift = named(m, "round_shift", distance[: (1 - low).bit_length()])
        significand = shift_right_sticky(m, "round_denormal", significand, shift)
    hidden = significand[-1]
    field = Signal(fmt.exponent_bits, name="round_field")
    m.d.comb += field.eq(Mux(hidden, exponent, 0))
    magnitude: Value = Cat(significand[-kept:-1], field)
    if len(significand) > kept:
        # A carry out of the significand moves the exponent up by itself, into infinity's code at the top.
        up = significand[1] & (significand[0] | significand[2])
        magnitude = named(m, "round_magnitude", magnitude + up)[: fmt.bits - 1]
    if high >= fmt.exponent_mask:
        overflow = named(m, "round_overflow", hidden & (exponent >= fmt.exponent_mask))
        magnitude = named(m, "round_clamped", Mux(overflow, fmt.inf_code, magnitude))
    return magnitude


def pack(fmt: FloatFormat, sign: Value, magnitude: Value, *, inf: Value, nan: Value) -> Value:
    """Put a code together; infinity goes before the magnitude, NaN before everything."""
    finite = Mux(inf, Const(fmt.inf_code, fmt.bits - 1), magnitude)
    return Mux(nan, Const(fmt.nan_code, fmt.bits), Cat(finite[: fmt.bits - 1], sign))
