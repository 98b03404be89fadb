"""golden.exp.compact_polynomial: figures over all codes, its definition in exact fractions, its constants' fit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.exp.fit.compact_polynomial import fit, row_bits, shrink
from golden.exp.radix_polynomial import radix_digits
from golden.formats import BF16, FP16
from tests.helpers.exp_compact import CLOCKED, SERIAL, UNITS
from tests.helpers.exp_oracle import exact_exp, rounded_exp

CODES = np.arange(1 << 16)
COMBINATIONAL = UNITS["compact-poly6"]

every = pytest.mark.parametrize("spec", [*UNITS.values(), CLOCKED["serial-nonpositive"]], ids=lambda spec: spec.name)
bases = pytest.mark.parametrize("spec", [COMBINATIONAL, SERIAL], ids=lambda spec: spec.name)


def normal_results(spec):
    """Return which codes of the domain have a normal result."""
    normal = (exact_exp(FP16) >= FP16.min_normal) & (rounded_exp(FP16) < FP16.inf_code)
    return normal & ((spec.domain == "full") | (FP16.sign_mask <= CODES))


def cut(value, bits):
    """Round down to ``bits`` fraction bits."""
    return Fraction(math.floor(value * 2**bits), 2**bits)


def product_in_fractions(g, bits, h, h_bits, words):
    """Return ``h * g`` row by row, g in units of ``2^-bits``: inverting a row subtracts one unit of its lowest bit."""
    places = {-1: 0} | {i: g >> i & 1 for i in range(bits + 2)}
    count = (bits + 1) // 2
    total = Fraction(0)
    for j in range(count - words.digits, count):
        weight = Fraction(4**j, 2**bits)
        digit = places[2 * j - 1] + places[2 * j] - 2 * places[2 * j + 1]
        row = digit * h * weight - places[2 * j + 1] * weight / 2**h_bits
        total += cut(row, words.columns)
    return total


def in_fractions(spec, code):
    """Evaluate one in-range code as the Notes of the specs say, in exact rational arithmetic."""
    fraction, field, negative = code & 1023, code >> 10 & 31, code >= FP16.sign_mask or spec.domain == "nonpositive"
    if spec.evaluation == "serial":
        words, kept = spec.words(0), spec.accumulator_bits
        shifted = fraction << spec.frac_bits - 11
        half = product_in_fractions(shifted, spec.frac_bits, Fraction(spec.log2e, 2**kept), kept, words)
        product = 2 * cut(half + Fraction(spec.product_constant, 2**words.columns), kept)
    else:
        significand = Fraction(1024 + fraction, 1024)
        product = Fraction(spec.product_offset, 2**spec.product_columns)
        for power in spec.log2e_powers:
            row = significand if power > 0 else -significand - Fraction(1, 1024)
            product += cut(row / 2 ** (abs(power) - 1), spec.product_columns)
    t = math.floor(product * Fraction(2) ** (field - 15 + spec.frac_bits))
    t = -1 - t if negative else t
    n, f = t >> spec.frac_bits, t % 2**spec.frac_bits
    h = Fraction(spec.coefficients[6], 2 ** spec.sum_bits(6))
    for k in range(5, -1, -1):
        words = spec.words(k)
        g = f - 2 ** (spec.frac_bits - 1)
        h = product_in_fractions(g, spec.frac_bits, h, spec.sum_bits(k + 1), words)
        h = cut(h + Fraction(spec.coefficients[k], 2**words.columns), words.sum_bits)
    if n > 15:
        return FP16.inf_code
    if n < (-14 if spec.subnormals == "flushed" else -25):
        return 0
    moved = cut(h, 11) / 2 ** max(0, -14 - n)
    return (max(n + 14, 0) << 10) + math.floor(cut(moved, 11) * 1024 + Fraction(1, 2))


@every
def test_figures_over_every_code_with_a_normal_result(spec):
    codes = spec.evaluate_codes(CODES)
    normal = normal_results(spec)
    exact = exact_exp(FP16)[normal]
    relative = np.abs(FP16.from_codes(codes[normal]).astype(np.float64) / exact - 1)
    assert np.mean(codes[normal] == rounded_exp(FP16)[normal]) >= 0.95
    assert relative.max() <= 0.00078
    assert relative.mean() <= 0.000174
    assert np.abs(codes[normal].astype(int) - rounded_exp(FP16)[normal].astype(int)).max() == 1


@every
def test_monotone_and_exact_where_it_has_to_be(spec):
    codes = spec.evaluate_codes(CODES).astype(int)
    negative = codes[FP16.sign_mask | FP16.inf_code : FP16.sign_mask - 1 : -1]
    ordered = [*negative, *codes[: FP16.inf_code + 1]] if spec.domain == "full" else negative
    assert np.all(np.diff(ordered) >= 0)
    assert codes[0] == codes[FP16.sign_mask] == FP16.one_code
    assert codes[FP16.sign_mask | FP16.inf_code] == 0
    assert np.all(codes[FP16.inf_code < (CODES & 0x7FFF)] == FP16.nan_code)
    if spec.domain == "full":
        assert np.all(codes[(FP16.inf_code >= CODES) & (rounded_exp(FP16) == FP16.inf_code)] == FP16.inf_code)
        assert np.all(codes[[1, 0x3FF]] == FP16.one_code)


@every
def test_subnormal_results(spec):
    codes = spec.evaluate_codes(CODES)
    small = (exact_exp(FP16) < FP16.min_normal) & (FP16.sign_mask <= CODES)
    if spec.subnormals == "flushed":
        # A result just below the smallest normal number may have been computed as that number.
        assert set(codes[small].tolist()) <= {0, 1 << FP16.significand_bits}
        assert np.count_nonzero(codes[small]) <= 3
    else:
        assert np.abs(codes[small].astype(int) - rounded_exp(FP16)[small].astype(int)).max() <= 1
        assert np.mean(codes[small] == rounded_exp(FP16)[small]) >= 0.95


def test_nonpositive_gives_the_exponential_of_the_negative():
    spec = UNITS["compact-poly6-nonpositive"]
    codes = spec.evaluate_codes(CODES)
    assert np.array_equal(codes[: 1 << 15], codes[1 << 15 :])


@every
def test_definition_in_exact_fractions(spec):
    magnitudes = np.unique(np.concatenate((np.arange(0, 20 << 10, 997), (20 << 10) - 1 - np.arange(6))))
    codes = np.concatenate((magnitudes, magnitudes | FP16.sign_mask))
    assert spec.evaluate_codes(codes).tolist() == [in_fractions(spec, int(code)) for code in codes]


@bases
def test_no_term_vanishes(spec):
    f = np.arange(1 << spec.frac_bits)
    core = spec.core(f)
    for k in range(7):
        nearest = math.sqrt(2) * math.log(2) ** k / math.factorial(k)
        unit = spec.sum_bits(6) if k == 6 else spec.words(k).columns
        assert spec.coefficients[k] / 2**unit == pytest.approx(nearest, rel=0.5)
    # The degree is what it is called: c[6] reaches the result, if only through roundings.
    digits = spec.argument_digits()
    h = np.zeros(f.size, np.int32)
    for k in range(5, -1, -1):
        h = spec.step(k, digits, h, spec.coefficients[k])
    assert np.any(h >> spec.sum_bits(0) - 11 != core)


def test_float_model_is_the_polynomial():
    x = np.linspace(-600, 600, 20_001)
    assert np.abs(SERIAL.evaluate_float(x) / np.exp(x) - 1).max() <= 2.0**-12
    assert np.abs(COMBINATIONAL.evaluate_float(x) / np.exp(x) - 1).max() <= 2.0**-10
    assert SERIAL.evaluate_float([np.inf, -np.inf]).tolist() == [np.inf, 0.0]
    assert np.isnan(SERIAL.evaluate_float(np.nan))


@pytest.mark.parametrize("bits", [11, 14])
def test_digits_are_the_number(bits):
    g = np.arange(-(1 << bits - 1), 1 << bits - 1)
    digits = radix_digits(g, bits)
    assert len(digits) == (bits + 1) // 2
    total = sum(magnitude.astype(int) * (1 + 2 * sign) << 2 * j for j, (magnitude, sign) in enumerate(digits))
    assert np.array_equal(total, g)


def test_shapes_are_kept():
    assert SERIAL.evaluate_codes(np.zeros((2, 3), np.uint16)).shape == (2, 3)
    assert SERIAL.evaluate_codes([]).dtype == np.uint16
    assert COMBINATIONAL.evaluate_codes(np.uint16(FP16.one_code)) == FP16.to_codes(math.e)


@pytest.mark.parametrize("name", ["compact-poly6", "compact-poly6-nonpositive", "compact-poly6-serial"])
def test_shipped_constants_are_the_output_of_the_fit(name):
    spec = UNITS[name]
    found = fit(spec)
    assert found.spec == spec
    codes, normal = spec.evaluate_codes(CODES), normal_results(spec)
    assert found.operands == np.count_nonzero(normal)
    assert found.misrounded == np.count_nonzero(codes[normal] != rounded_exp(FP16)[normal])


def test_shrinking_stops_where_too_few_results_are_right():
    assert list(shrink(COMBINATIONAL, 0.99)) == []
    start = next(shrink(COMBINATIONAL, 0.95))
    assert start.share >= 0.95
    assert row_bits(start.spec) == pytest.approx(row_bits(COMBINATIONAL), abs=5)


@pytest.mark.parametrize(
    ("spec", "changes", "error", "text"),
    [
        (SERIAL, {"evaluation": "pipelined"}, ValueError, "evaluation must be one of serial, not 'pipelined'"),
        (COMBINATIONAL, {"evaluation": "serial"}, ValueError, "one of combinational, pipelined, not 'serial'"),
        (COMBINATIONAL, {"fmt": BF16}, ValueError, "fmt must be fp16, not 'bf16'"),
        (COMBINATIONAL, {"frac_bits": 17}, ValueError, "frac_bits must be from 11 to 16, not 17"),
        (SERIAL, {"frac_bits": 12}, ValueError, "frac_bits must be from 13 to 16, not 12"),
        (SERIAL, {"coefficients": [1] * 7}, TypeError, "coefficients must be a tuple"),
        (SERIAL, {"coefficients": (1,) * 6}, ValueError, "coefficients must number 7, not 6"),
        (SERIAL, {"coefficients": (1,) * 6 + (0,)}, ValueError, r"coefficients\[6\] must be from 1 to 1048575, not 0"),
        (SERIAL, {"coefficients": (92685,) + (1,) * 6}, ValueError, "core must"),
        (SERIAL, {"columns": 21}, ValueError, "columns must be from 8 to 20, not 21"),
        (SERIAL, {"log2e": 1}, ValueError, "log2e must be from 47272 to 47276, not 1"),
        (SERIAL, {"product_constant": -1}, ValueError, "product_constant must be from 0 to 65535, not -1"),
        (COMBINATIONAL, {"product_columns": 10}, ValueError, "product_columns must be from 11 to 20, not 10"),
        (COMBINATIONAL, {"product_offset": 64}, ValueError, "product_offset must be from 0 to 63, not 64"),
        (COMBINATIONAL, {"log2e_powers": (0,)}, ValueError, "log2e_powers must be from 1 to 20, not 0"),
        (COMBINATIONAL, {"step_digits": (7,) * 5}, ValueError, "step_digits must number 6, not 5"),
        (COMBINATIONAL, {"step_digits": (8, 6, 4, 2, 2, 2)}, ValueError, "step 0 must use at most 7 digits, not 8"),
        (COMBINATIONAL, {"step_digits": (7, 6, 4, 2, 2, 3)}, ValueError, "digits of step 5 must be fewer than 3"),
        (COMBINATIONAL, {"kept_bits": (16, 13, 12, 11, 12, 13, 16)}, ValueError, "sum_bits must be from 8 to 15"),
    ],
)
def test_bad_specs(spec, changes, error, text):
    with pytest.raises(error, match=text):
        spec.replace(**changes)
