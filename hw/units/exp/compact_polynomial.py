"""Degree 6 in few gates: radix-4 rows in column heaps, a multiplier a step or one for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from golden.exp.compact_polynomial import CompactPolynomialSpec, SerialPolynomialSpec
from golden.exp.radix_polynomial import DEGREE
from hw.heap import Heap
from hw.units.exp.compact_frame import Reduced, decode, named, pack, reduce
from hw.units.exp.datapath import Step, assign, datapath, serial_layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amaranth.lib import stream

    from golden.exp.radix_polynomial import StepWords

__all__: list[str] = []

_RESULT_BITS = 13
"""Width of the last sum in units of ``2^-11``: it may reach 2."""


class _Digit(NamedTuple):
    """A radix-4 digit: take once, take twice, invert."""

    one: Value
    two: Value
    sign: Value


def _radix_digits(m: Module, g: Value, above: Value) -> list[_Digit]:
    """Return the digits of g, lowest first; ``above`` is what stands above its top bit."""
    bits = Cat(Const(0, 1), g, above)
    digits: list[_Digit] = []
    for j in range((len(g) + 1) // 2):
        low, middle, high = bits[2 * j], bits[2 * j + 1], bits[2 * j + 2]
        one = named(m, low ^ middle, f"one_{j}")
        two = named(m, Mux(high, ~(low | middle), low & middle), f"two_{j}")
        digits.append(_Digit(one, two, high))
    return digits


def _add_rows(heap: Heap, m: Module, digits: Sequence[_Digit], h: Value, sum_bits: int, frac_bits: int) -> None:
    """Add ``h * g``: a row a digit, h in units of ``2^-sum_bits``; ``digits`` are the highest of g."""
    count = (frac_bits + 1) // 2
    once, twice = Cat(h, Const(0, 1)), Cat(Const(0, 1), h)
    for j, digit in enumerate(digits, count - len(digits)):
        weight = 2 * j - frac_bits - sum_bits
        # Only bits that reach a column are made.
        first = min(max(0, heap.lowest - weight), len(once))
        row = [
            named(m, digit.sign ^ ((digit.one & a) | (digit.two & b)), f"row_{j}")
            for a, b in zip(once[first:], twice[first:], strict=True)
        ]
        heap.add(Cat(*row, digit.sign).as_signed(), weight + first)


def _horner(
    m: Module, words: StepWords, digits: Sequence[_Digit], h: Value, sum_bits: int, frac_bits: int, c: int, width: int
) -> Value:
    """Return the lowest ``width`` bits of the next sum, the columns below ``words.sum_bits`` dropped."""
    heap = Heap(-words.columns)
    _add_rows(heap, m, digits[len(digits) - words.digits :], h, sum_bits, frac_bits)
    heap.add_constant(c, -words.columns)
    drop = words.columns - words.sum_bits
    return heap.sum(m, width + drop, name="product")[drop:]


@datapath.register(CompactPolynomialSpec)
def _(spec: CompactPolynomialSpec) -> list[Step]:
    limits = spec.limits

    def multiply(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        operand = decode(spec, values["x"])
        significand = Cat(values["x"][:10], Const(1, 1))
        heap = Heap(-spec.product_columns)
        for power in spec.log2e_powers:
            weight = -10 - (abs(power) - 1)
            if power > 0:
                heap.add(significand, weight)
            else:
                heap.subtract(significand, weight, ones=True)
        heap.add_constant(spec.product_offset, -spec.product_columns)
        return {"product": heap.sum(m, spec.product_columns + 2, name="log2e"), **operand._asdict()}

    def shift(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        whole, f = reduce(m, spec, values["product"], values["field"], values["sign"])
        return Reduced(values["sign"], values["nan"], whole, f)._asdict()

    def horner(k: int) -> Step:
        def step(m: Module, values: dict[str, Value]) -> dict[str, Value]:
            f = values["f"]
            h = values["h"] if k < DEGREE - 1 else Const(spec.coefficients[DEGREE], limits[DEGREE].bit_length())
            digits = _radix_digits(m, Cat(f[:-1], ~f[-1]), ~f[-1])
            words = spec.words(k)
            width = limits[k].bit_length()
            h = _horner(m, words, digits, h, spec.sum_bits(k + 1), spec.frac_bits, spec.coefficients[k], width)
            if k == 0:
                h = h[words.sum_bits - 11 :]
            return {**values, "h": h}

        return step

    def finish(m: Module, values: dict[str, Value]) -> dict[str, Value]:
        h = values.pop("h")
        return {"y": pack(m, spec, Reduced(**values), h)}

    return [multiply, shift, *(horner(k) for k in reversed(range(DEGREE))), finish]


@serial_layout.register(SerialPolynomialSpec)
def _(spec: SerialPolynomialSpec, m: Module, i: stream.Interface, o: stream.Interface) -> None:
    """Multiply, shift, six Horner steps; the result is packed from where it stands, while the next product is made.

    The accumulator holds the product and all sums. The fraction's register lends its low bits to the exponent field
    until the shift. Nothing is registered behind the accumulator: the next operand enters as the result leaves.
    """
    words = spec.words(0)
    kept = words.sum_bits
    # 0: idle, or the result waits, and the next product is made. 1: the shift. 2 .. 7: down to c[5] .. c[0].
    step = Signal(range(spec.interval_cycles))
    pending = Signal()
    total = Signal(kept + 2, reset_less=True)
    g = Signal(spec.frac_bits, reset_less=True)
    whole = Signal(6, reset_less=True)
    nan = Signal(reset_less=True)
    sign: Value = Const(1, 1) if spec.domain == "nonpositive" else Signal(name="sign", reset_less=True)

    start = named(m, step == 0, "start")
    accept = named(m, start & (~pending | o.ready), "accept")
    shifts = named(m, step == 1, "shifts")
    m.d.comb += i.ready.eq(accept)
    with m.If(accept):
        m.d.sync += [pending.eq(0), step.eq(i.valid)]
    with m.Elif(~start):
        m.d.sync += [pending.eq(step == spec.interval_cycles - 1), step.eq(step + 1)]

    # Beside log2(e) stands half of the significand's fraction; the hidden bit's share is a constant.
    fraction = Cat(Const(0, spec.frac_bits - 11), i.payload[:10], Const(0, 1))
    right = named(m, Mux(start, fraction, g), "right")
    left = named(m, Mux(start, Const(spec.log2e, kept + 1), total[: kept + 1]), "left")
    digits = _radix_digits(m, right, right[-1])
    addend = Signal(words.columns + 1)
    with m.Switch(step):
        for k in range(DEGREE):
            with m.Case(spec.interval_cycles - 1 - k):
                m.d.comb += assign(addend, Const(spec.coefficients[k]))
        with m.Default():
            m.d.comb += assign(addend, Const(spec.product_constant))
    heap = Heap(-words.columns)
    _add_rows(heap, m, digits, left, kept, spec.frac_bits)
    heap.add(addend, -words.columns)
    drop = words.columns - kept
    product = heap.sum(m, kept + 2 + drop, name="product")[drop:]

    operand = decode(spec, i.payload)
    # A pending result needs all of these until it is taken.
    with m.If(accept | ~start):
        m.d.sync += total.eq(Mux(shifts, spec.coefficients[DEGREE], product))
    next_whole, f = reduce(m, spec, total[: kept + 1], g[:5], sign)
    with m.If(accept | shifts):
        m.d.sync += [
            assign(g, Cat(Mux(start, operand.field, f[:5]), f[5:-1], ~f[-1])),
            assign(whole, next_whole),
        ]
    with m.If(accept):
        m.d.sync += nan.eq(operand.nan)
        if isinstance(sign, Signal):
            m.d.sync += sign.eq(operand.sign)
    result = pack(m, spec, Reduced(sign, nan, whole, g), total[kept - 11 :])
    m.d.comb += [o.valid.eq(pending), assign(o.payload, result)]
