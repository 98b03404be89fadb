"""Dot products of the index scoring unit: exact ones of E4M3 numbers, and rounded ones of 16-bit numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP8_E4M3, FP32
from hw.float import FloatAdd, FloatMul
from hw.float_steps import leading_zeros, named, pack, round_magnitude, shift_left
from hw.units.index_score_layouts import step_layout
from hw.units.processing_queries import store

if TYPE_CHECKING:
    from amaranth.hdl import ShapeLike

    from hw.index_score_params import IndexScoreParams

__all__ = ["ExactDot", "RoundDot", "WideDot", "delayed", "exact_layout"]


class _Element(NamedTuple):
    """An E4M3 number taken apart: ``significand * 2^shift`` steps of 2^-9."""

    sign: Value
    significand: Value
    shift: Value
    nan: Value


def exact_layout(params: IndexScoreParams) -> data.StructLayout:
    """Exact dot product: steps of 2^-18, and whether an element was NaN."""
    return data.StructLayout({"steps": signed(params.dot_bits), "nan": 1})


def delayed(m: Module, name: str, value: Signal, cycles: int) -> list[Signal]:
    """Return ``value`` and what it was 1 to ``cycles`` cycles ago."""
    found = [value]
    for cycle in range(1, cycles + 1):
        later = Signal.like(value, name=f"{name}_{cycle}")
        m.d.sync += later.eq(found[-1])
        found.append(later)
    return found


class _Dot(wiring.Component):
    """Members of a dot product of one head, whatever the elements are.

    Parameters
    ----------
    params : IndexScoreParams
        Sizes of the unit.
    dot : ShapeLike
        Shape of the dot product.
    more : dict, optional
        Further members.

    Members
    -------
    step : In(step_layout)
        The beat's turn.
    counted : In(step_layout)
        The same in the cycle in which the beat's sum is there.
    bounds : In(1)
        An element counts in the beats of largest elements where q is not negative, in the others where it is.
    query, key : In(params.beat_bits)
        Elements of the head and of the key.
    dot : Out(dot)
        The sum so far, in the cycle after ``counted``.
    """

    def __init__(self, params: IndexScoreParams, dot: ShapeLike, more: dict[str, wiring.Member] | None = None) -> None:
        self.params = params
        super().__init__(
            {
                "step": In(step_layout(params)),
                "counted": In(step_layout(params)),
                "bounds": In(1),
                "query": In(params.beat_bits),
                "key": In(params.beat_bits),
                "dot": Out(dot),
                **(more or {}),
            }
        )


class ExactDot(_Dot):
    """``q . k`` of one head over E4M3 beats, as an integer: no order and no width changes it.

    Two significands of four bits multiply to eight, which are shifted to their place. A tree adds the products of a
    beat, with a register behind every second level, the first one's behind two levels and the products
    (``params.exact_stages``); then the beats of a key are added, those of each group of heads apart.

    Parameters
    ----------
    params : IndexScoreParams
        Sizes of the unit.

    Members
    -------
    dot : Out(exact_layout)
        The sum so far; the others as of every dot product.
    """

    def __init__(self, params: IndexScoreParams) -> None:
        super().__init__(params, exact_layout(params))

    def elaborate(self, platform: object) -> Module:
        """Build products, tree and sums."""
        m = Module()
        params = self.params
        products: list[Value] = []
        nans: list[Value] = []
        for place in range(params.spec.beat_bytes):
            q = _element(m, f"q{place}", self.query.word_select(place, 8))
            k = _element(m, f"k{place}", self.key.word_select(place, 8))
            counts = named(m, f"counts{place}", ~self.bounds | (q.sign ^ self.step.high))
            product = named(m, f"product{place}", q.significand * (k.significand & counts.replicate(4)))
            number = Mux(q.sign ^ k.sign, -product, product)
            shifted = named(m, f"shifted{place}", number << (q.shift + k.shift))
            products.append(shifted[: params.product_bits].as_signed())
            nans.append(q.nan | (k.nan & counts))

        # The first register stands behind the products and two levels.
        level, terms, nan = 0, products, Cat(*nans).any()
        while len(terms) > 1:
            terms = [
                named(m, f"sum_{level}_{place}", terms[2 * place] + terms[2 * place + 1])
                for place in range(len(terms) // 2)
            ]
            level += 1
            if level % 2 == 0 or len(terms) == 1:
                kept = [Signal(term.shape(), name=f"kept_{level}_{place}") for place, term in enumerate(terms)]
                m.d.sync += [register.eq(term) for register, term in zip(kept, terms, strict=True)]
                later = Signal(name=f"nan_{level}")
                m.d.sync += later.eq(nan)
                terms, nan = list(kept), later

        sums = Signal(data.ArrayLayout(exact_layout(params), params.max_groups))
        before, total = sums[self.counted.group], Signal(exact_layout(params))
        m.d.comb += [
            total.steps.eq(Mux(self.counted.first, 0, before.steps) + terms[0]),
            total.nan.eq((~self.counted.first & before.nan) | nan),
        ]
        m.d.sync += self.dot.eq(total)
        with m.If(self.counted.valid):
            store(m, sums, self.counted.group, total)
        return m


def _element(m: Module, name: str, code: Value) -> _Element:
    """Take an E4M3 code apart; a subnormal has the shift of the least normal numbers."""
    fraction, field = code[: FP8_E4M3.significand_bits], code[FP8_E4M3.significand_bits : -1]
    normal = field.any()
    return _Element(
        sign=code[-1],
        significand=named(m, f"{name}_significand", Cat(fraction, normal)),
        shift=named(m, f"{name}_shift", (field - normal)[: FP8_E4M3.exponent_bits]),
        nan=code[:-1] == FP8_E4M3.nan_code,
    )


class RoundDot(wiring.Component):
    """An exact dot product rounded to fp32: nearest, ties to even; zero is +0.

    Parameters
    ----------
    params : IndexScoreParams
        Sizes of the unit.

    Members
    -------
    i : In(exact_layout)
        The dot product.
    o : Out(32)
        Its fp32 code, combinational.
    """

    def __init__(self, params: IndexScoreParams) -> None:
        self.params = params
        super().__init__({"i": In(exact_layout(params)), "o": Out(FP32.bits)})

    def elaborate(self, platform: object) -> Module:
        """Build the magnitude, the shift and the rounding."""
        m = Module()
        params = self.params
        width = params.dot_bits
        sign = self.i.steps[-1]
        magnitude = named(m, "magnitude", abs(self.i.steps))
        zeros = leading_zeros(m, "zeros", magnitude)
        normal = shift_left(m, "normal", magnitude, zeros)
        # Exponent of the highest bit, width - 1, where nothing is shifted.
        top = FP32.bias + width - 1 - params.dot_fraction_bits
        exponent = named(m, "exponent", Const(top, FP32.exponent_bits) - zeros)[: FP32.exponent_bits]
        rounded = round_magnitude(m, FP32, exponent, normal, low=FP32.bias - params.dot_fraction_bits, high=top)
        m.d.comb += self.o.eq(pack(FP32, sign, rounded, inf=Const(0, 1), nan=self.i.nan))
        return m


class WideDot(_Dot):
    """``q . k`` of one head over beats of 16-bit elements in fp32: products, a tree over a beat, beats in order.

    A register stands behind the products and behind each level of the tree, ``params.wide_stages`` in all. Two heads
    may share a beat: then each half of it has a sum of its own, and a key has no further beat.

    Parameters
    ----------
    params : IndexScoreParams
        Sizes of the unit.

    Members
    -------
    shares : In(1)
        The halves of a beat are summed apart.
    dot : Out(32)
        fp32 code of the sum so far, or of the lower half's; the others as of every dot product.
    upper : Out(32)
        fp32 code of the upper half's sum, at the same time.
    """

    shares: Signal
    upper: Signal

    def __init__(self, params: IndexScoreParams) -> None:
        super().__init__(params, FP32.bits, {"shares": In(1), "upper": Out(FP32.bits)})

    def elaborate(self, platform: object) -> Module:
        """Build products, tree and sums."""
        m = Module()
        params = self.params
        fmt = params.spec.wide_format
        terms: list[Value] = []
        for place in range(params.spec.beat_bytes // fmt.bytes):
            q, k = (codes.word_select(place, fmt.bits) for codes in (self.query, self.key))
            m.submodules[f"multiply_{place}"] = multiplier = FloatMul(fmt, fmt, FP32)
            m.d.comb += [multiplier.a.eq(q), multiplier.b.eq(k)]
            product = Signal(FP32.bits, name=f"product_{place}")
            m.d.sync += product.eq(Mux(~self.bounds | (q[-1] ^ self.step.high), multiplier.o, 0))
            terms.append(product)
        level = 0
        upper = Signal(FP32.bits)
        while len(terms) > 1:
            if len(terms) == 2:
                # A sum of its own has +0 added to it, as one of a beat filled up with zeros.
                m.d.sync += upper.eq(Mux(terms[1] == FP32.sign_mask, 0, terms[1]))
                terms[1] = Mux(self.shares, 0, terms[1])
            sums = [_sum(m, f"{level}_{place}", *terms[2 * place : 2 * place + 2]) for place in range(len(terms) // 2)]
            terms = []
            for place, total in enumerate(sums):
                register = Signal(FP32.bits, name=f"sum_{level}_{place}")
                m.d.sync += register.eq(total)
                terms.append(register)
            level += 1

        kept = Signal(data.ArrayLayout(FP32.bits, params.max_groups))
        added = _sum(m, "beats", kept[self.counted.group], terms[0])
        total = named(m, "total", Mux(self.counted.first, terms[0], added))
        m.d.sync += [self.dot.eq(total), self.upper.eq(upper)]
        with m.If(self.counted.valid):
            store(m, kept, self.counted.group, total)
        return m


def _sum(m: Module, name: str, left: Value, right: Value) -> Value:
    """Return the sum of two fp32 codes."""
    m.submodules[f"add_{name}"] = adder = FloatAdd(FP32)
    m.d.comb += [adder.a.eq(left), adder.b.eq(right)]
    return adder.o
