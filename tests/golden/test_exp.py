"""golden.exp against a correctly rounded oracle over all codes, and against its own definition in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.exp import POLY6, POLY6_SERIAL, horner
from golden.formats import BF16, FP8_E4M3, FP16, FP32
from tests.helpers.exp_bench import VARIANTS
from tests.helpers.exp_oracle import exact_exp, rounded_exp

CODES = np.arange(1 << 16)

DEGREE_1, DEGREE_3, DEGREE_8, POLY6_BF16 = VARIANTS


def evaluated(spec):
    """Return codes and float64 values of the results over all codes."""
    codes = spec.evaluate_codes(CODES)
    with np.errstate(invalid="ignore"):  # ml_dtypes' NaN
        return codes, spec.fmt.from_codes(codes).astype(np.float64)


def normal_results(fmt):
    """Return which codes have a result that is a normal number."""
    exact = exact_exp(fmt)
    return (exact >= fmt.min_normal) & (rounded_exp(fmt) < fmt.inf_code)


def in_fractions(spec, code):
    """Evaluate one in-range code as the Notes of ExpSpec say, in exact rational arithmetic."""
    fmt = spec.fmt
    x = Fraction(float(fmt.from_codes(code)))
    grid = 2**spec.frac_bits
    t = math.floor(x * Fraction(spec.log2e, 2**spec.log2e_bits) * grid)
    n, f = t // grid, Fraction(t % grid, grid)
    total = Fraction(spec.coefficients[-1])
    for coefficient in spec.coefficients[-2::-1]:
        total = math.floor(total * f) + Fraction(coefficient)
    value = total / 2**spec.core_bits * Fraction(2) ** n
    exponent = max(math.frexp(float(value))[1] - 1, 1 - fmt.bias)
    significand = round(value * Fraction(2) ** (fmt.significand_bits - exponent))  # Python rounds half to even
    return min((exponent + fmt.bias - 1 << fmt.significand_bits) + significand, fmt.inf_code)


@pytest.mark.parametrize("spec", [POLY6, POLY6_SERIAL], ids=lambda spec: spec.name)
def test_figures_over_every_code_with_a_normal_result(spec):
    codes, values = evaluated(spec)
    normal = normal_results(FP16)
    exact = exact_exp(FP16)[normal]
    relative = np.abs(values[normal] / exact - 1)
    ulp = 2.0 ** (np.floor(np.log2(exact)) - FP16.significand_bits)
    assert np.count_nonzero(normal) == 37_479
    assert relative.max() <= 0.000502  # the rounding of fp16 alone gives 0.000488
    assert relative.mean() <= 0.0001701
    assert (np.abs(values[normal] - exact) / ulp).max() <= 0.531
    assert np.mean(codes[normal] == rounded_exp(FP16)[normal]) >= 0.993


def test_every_finite_result_is_correctly_rounded_or_its_neighbour():
    assert np.abs(POLY6.evaluate_codes(CODES).astype(int) - rounded_exp(FP16).astype(int)).max() == 1


def test_subnormal_results_are_rounded_not_flushed():
    subnormal = (exact_exp(FP16) < FP16.min_normal) & (rounded_exp(FP16) > 0) & (rounded_exp(FP16) < FP16.inf_code)
    codes = POLY6.evaluate_codes(CODES)[subnormal]
    assert np.count_nonzero(subnormal) == 891
    assert np.mean(codes == rounded_exp(FP16)[subnormal]) >= 0.99


@pytest.mark.parametrize("spec", [POLY6, DEGREE_1, DEGREE_3, POLY6_BF16], ids=lambda spec: spec.name)
def test_monotone_over_all_codes(spec):
    _, values = evaluated(spec)
    # Codes from -infinity up to -0, then from +0 to +infinity.
    sign, inf = spec.fmt.sign_mask, spec.fmt.inf_code
    ordered = values[np.concatenate((np.arange(sign | inf, sign - 1, -1), np.arange(inf + 1)))]
    assert np.all(ordered[1:] >= ordered[:-1])
    assert ordered[0] == 0
    assert ordered[-1] == np.inf


@pytest.mark.parametrize("fmt", [FP16, BF16], ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("spec", [POLY6, DEGREE_1, DEGREE_3], ids=lambda spec: spec.name)
def test_special_codes(spec, fmt):
    unit = spec.replace(fmt=fmt)
    sign, inf = fmt.sign_mask, fmt.inf_code
    operands = [0, sign, 1, sign | 1, inf, sign | inf, inf | 1, sign | inf | 1, sign - 1, 2 * sign - 1, fmt.nan_code]
    one, nan = fmt.one_code, fmt.nan_code
    below = unit.evaluate_codes(sign | 1)  # the floor of a tiny negative t is a whole step below 0
    assert one - below == (24 if spec is DEGREE_1 else 0) >> (FP16.significand_bits - fmt.significand_bits)
    assert unit.evaluate_codes(operands).tolist() == [one, one, one, below, inf, 0, nan, nan, nan, nan, nan]


def test_range_ends_of_fp16():
    x = np.array([11.0859375, 11.09375, -17.328125, -17.34375, 31.984375, 32.0, -31.984375, -32.0, 65504, -65504])
    results = FP16.from_codes(POLY6.evaluate_codes(FP16.to_codes(x))).tolist()
    assert results == [65248.0, np.inf, 2.0**-24, 0, np.inf, np.inf, 0, 0, np.inf, 0]


def test_bf16_is_faithful_over_all_codes():
    spec = POLY6_BF16
    assert np.abs(spec.evaluate_codes(CODES).astype(int) - rounded_exp(BF16).astype(int)).max() <= 1
    normal = normal_results(BF16)
    assert np.mean(spec.evaluate_codes(CODES)[normal] == rounded_exp(BF16)[normal]) >= 0.998


@pytest.mark.parametrize(
    "spec",
    [POLY6, DEGREE_1, DEGREE_3, DEGREE_8, POLY6_BF16],
    ids=lambda spec: spec.name,
)
def test_definition_in_exact_fractions(spec):
    limit = spec.fmt.to_codes(2.0**spec.range_bits)
    magnitudes = np.unique(np.concatenate((np.arange(0, limit, 37), limit - 1 - np.arange(20))))
    codes = np.concatenate((magnitudes, magnitudes | spec.fmt.sign_mask))
    assert spec.evaluate_codes(codes).tolist() == [in_fractions(spec, int(code)) for code in codes]


def test_shapes_are_kept():
    assert POLY6.evaluate_codes(np.zeros((2, 3), np.uint16)).shape == (2, 3)
    assert POLY6.evaluate_codes(np.array([], np.uint16)).shape == (0,)
    assert POLY6.evaluate_codes(np.uint16(FP16.one_code)) == FP16.to_codes(math.e)
    assert POLY6.evaluate_codes([]).dtype == np.uint16
    assert POLY6.evaluate_float(np.zeros((2, 0))).shape == (2, 0)
    assert POLY6.evaluate_float(1.0).shape == ()


def test_float_model_has_only_the_error_of_the_polynomial():
    x = np.linspace(-700, 700, 100_001)
    relative = POLY6.evaluate_float(x) / np.exp(x) - 1
    assert np.abs(relative).max() <= 3.2e-5
    exact = POLY6.evaluate_float(exact_minimax_arguments := np.array([0.0, math.log(2), -math.log(2)]))
    assert np.allclose(exact, np.exp(exact_minimax_arguments) * POLY6.coefficients[0] / 2**16, rtol=3e-5, atol=0)


def test_float_model_takes_every_float():
    x = np.array([np.inf, -np.inf, np.nan, 1e308, -1e308, 710.0, -746.0, 5e-324])
    results = POLY6.evaluate_float(x)
    assert results[:2].tolist() == [np.inf, 0.0]
    assert np.isnan(results[2])
    assert results[3:7].tolist() == [np.inf, 0.0, np.inf, 0.0]
    assert results[7] == POLY6.coefficients[0] / 2**16


def test_horner_truncates_every_product():
    f = np.array([0, 1, 3])
    # ((5 f >> 2) + 3) f >> 2) + 1 by hand.
    assert horner([1, 3, 5], f, 2).tolist() == [1, 1 + (4 * 1 >> 2), 1 + (6 * 3 >> 2)]


@pytest.mark.parametrize(
    ("spec", "degree", "latency", "interval"),
    [
        (POLY6, 6, 10, 1),
        (POLY6_SERIAL, 6, 10, 8),
        (DEGREE_1, 1, 5, 1),
        (DEGREE_3.replace(evaluation="serial"), 3, 7, 5),
    ],
)
def test_cycles(spec, degree, latency, interval):
    assert (spec.degree, spec.latency_cycles, spec.interval_cycles) == (degree, latency, interval)


@pytest.mark.parametrize(("fmt", "bits"), [(FP16, 5), (BF16, 7)], ids=["fp16", "bf16"])
def test_range_bits_cover_every_result(fmt, bits):
    spec = POLY6.replace(fmt=fmt)
    assert spec.range_bits == bits
    assert math.exp(2.0**bits) > fmt.max_finite
    assert math.exp(-(2.0**bits)) < fmt.min_normal * 2.0 ** -(fmt.significand_bits + 1)


def test_serial_is_the_same_unit():
    assert POLY6_SERIAL.replace(name=POLY6.name, evaluation="pipelined") == POLY6


WITHOUT = (65536, 0)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        (
            {"evaluation": "systolic"},
            ValueError,
            "evaluation must be one of combinational, pipelined, serial, not 'systolic'",
        ),
        ({"evaluation": None}, ValueError, "evaluation must be one of combinational, pipelined, serial, not None"),
        ({"fmt": FP32}, ValueError, "fmt must be fp16 or bf16, not 'fp32'"),
        ({"fmt": FP8_E4M3}, ValueError, "fmt must be fp16 or bf16, not 'fp8_e4m3'"),
        ({"fmt": "fp16"}, TypeError, "fmt must be a number format, not 'fp16'"),
        ({"frac_bits": 10}, ValueError, "frac_bits must be from 11 to 20, not 10"),
        ({"frac_bits": 25}, ValueError, "frac_bits must be from 11 to 20, not 25"),
        ({"frac_bits": 16.0}, TypeError, r"frac_bits must be an integer, not 16\.0"),
        ({"guard_bits": -1}, ValueError, "guard_bits must be from 0 to 8, not -1"),
        ({"guard_bits": True}, TypeError, "guard_bits must be an integer, not True"),
        ({"log2e_bits": 31}, ValueError, "log2e_bits must be from 4 to 30, not 31"),
        ({"log2e": 1 << 18}, ValueError, "log2e must be from 189096 to 189097, not 262144"),
        ({"log2e": 1}, ValueError, "log2e must be from 189096 to 189097, not 1"),
        ({"coefficients": list(WITHOUT)}, TypeError, r"coefficients must be a tuple, not \[65536, 0\]"),
        ({"coefficients": (65536,)}, ValueError, "coefficients must number from 2 to 9, not 1"),
        ({"coefficients": (65536,) + (0,) * 9}, ValueError, "coefficients must number from 2 to 9, not 10"),
        ({"coefficients": (65536, -1)}, ValueError, r"coefficients\[1\] must be from 0 to 131071, not -1"),
        ({"coefficients": (65536, 1 << 17)}, ValueError, r"coefficients\[1\] must be from 0 to 131071, not 131072"),
        ({"coefficients": (65536, 0.5)}, TypeError, r"coefficients\[1\] must be an integer, not 0\.5"),
        ({"coefficients": (65535, 0)}, ValueError, r"core\(0\) must be from 65536 to 65567 .*, not 65535"),
        ({"coefficients": (65568, 0)}, ValueError, r"core\(0\) must be from 65536 to 65567 .*, not 65568"),
        ({"coefficients": (65536, 65538)}, ValueError, "the core must stay below 131072, it reaches 131072"),
    ],
)
def test_bad_specs(changes, error, text):
    with pytest.raises(error, match=text):
        POLY6.replace(**changes)
