"""Rounding and the units' arithmetic in exact fractions: written from the definitions, without NumPy's floats."""

from __future__ import annotations

from fractions import Fraction

from golden.formats import FP32

__all__ = ["decode", "exact_local_state", "exact_merge", "round_to"]


def decode(fmt, code):
    """Return the number of a code as a Fraction, or "inf", "-inf", "nan"; the sign of zero is lost."""
    sign = -1 if code >> (fmt.bits - 1) else 1
    exponent = code >> fmt.significand_bits & fmt.exponent_mask
    significand = code & ((1 << fmt.significand_bits) - 1)
    if exponent == fmt.exponent_mask:
        if fmt.has_infinity:
            return "nan" if significand else ("-inf" if sign < 0 else "inf")
        if significand == (1 << fmt.significand_bits) - 1:
            return "nan"
    if exponent == 0:
        return sign * Fraction(significand, 1 << fmt.significand_bits) * Fraction(2) ** (1 - fmt.bias)
    return sign * (1 + Fraction(significand, 1 << fmt.significand_bits)) * Fraction(2) ** (exponent - fmt.bias)


def round_to(fmt, value):
    """Round a Fraction to the nearest number of the format, ties to even; it must lie within its range."""
    if value == 0:
        return Fraction(0)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, 1 - fmt.bias)
    step = Fraction(2) ** (exponent - fmt.significand_bits)
    rounded = round(value / step) * step  # Python rounds a Fraction's ties to even
    assert abs(rounded) <= Fraction(fmt.max_finite), "out of range"
    return rounded


def _f32(value):
    return round_to(FP32, value)


def _exponential(spec, x):
    if x < -Fraction(spec.fmt.max_finite):
        return Fraction(0)
    code = spec.fmt.to_codes(float(round_to(spec.fmt, x)))
    return decode(spec.fmt, int(spec.evaluate_codes(code.reshape(1))[0]))


def _pairwise(level):
    while len(level) > 1:
        level = [_f32(level[i] + level[i + 1]) for i in range(0, len(level), 2)]
    return level[0]


def _slice_sum(products, lanes):
    products = products + [Fraction(0)] * (-len(products) % lanes)
    total, *rest = (_pairwise(products[beat : beat + lanes]) for beat in range(0, len(products), lanes))
    for beat in rest:
        total = _f32(total + beat)
    return total


def exact_local_state(q, k, v, scale, spec, lanes, tile_tokens, slices=1):
    """One head of a processing unit: q (d,), k and v (n, d) of exact numbers; returns (m, l, [o])."""
    q = [Fraction(float(x)) for x in q]
    scale = _f32(Fraction(float(scale)))
    m = l = o = None
    for start in range(0, len(k), tile_tokens):
        scores = []
        for key in k[start : start + tile_tokens]:
            products = [_f32(a * Fraction(float(b))) for a, b in zip(q, key, strict=True)]
            size = len(products) // slices
            total = _pairwise([_slice_sum(products[part : part + size], lanes) for part in range(0, len(q), size)])
            scores.append(_f32(total * scale))
        new_m = max(scores if m is None else [m, *scores])
        alpha = None if m is None else _exponential(spec, _f32(m - new_m))
        l = Fraction(0) if alpha is None else _f32(l * alpha)
        for index, score in enumerate(scores):
            p = _exponential(spec, _f32(score - new_m))
            l = _f32(l + p)
            terms = [_f32(p * Fraction(float(x))) for x in v[start + index]]
            if o is None:
                o = terms
            elif index == 0:
                o = [_f32(_f32(a * alpha) + b) for a, b in zip(o, terms, strict=True)]
            else:
                o = [_f32(a + b) for a, b in zip(o, terms, strict=True)]
        m = new_m
    return m, l, o


def exact_merge(accumulator, incoming, spec):
    """Merge two states (m, l, [o]) of Fractions as the reduction unit does; None is the empty state."""
    if incoming is None or accumulator is None:
        return accumulator if incoming is None else incoming
    large, small = (incoming, accumulator) if incoming[0] > accumulator[0] else (accumulator, incoming)
    w = _exponential(spec, _f32(small[0] - large[0]))
    l = _f32(large[1] + _f32(w * small[1]))
    return large[0], l, [_f32(a + _f32(w * b)) for a, b in zip(large[2], small[2], strict=True)]
