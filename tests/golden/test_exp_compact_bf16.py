"""golden.exp.compact_bf16 against a correctly rounded oracle over all codes, and against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.exp.compact_bf16_units import COMPACT_BF16, COMPACT_BF16_ACCURATE, COMPACT_BF16_SPECS
from golden.formats import BF16, FP16
from tests.helpers.exp_oracle import exact_exp, rounded_exp

SPECS = {spec.name: spec for spec in COMPACT_BF16_SPECS}
each = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)

CODES = np.arange(1 << 16)
NEGATIVE = np.arange(BF16.sign_mask | BF16.inf_code, BF16.sign_mask - 1, -1)
POSITIVE = np.arange(BF16.inf_code + 1)

# Largest error, mean error of a uniform operand, share correctly rounded.
SMALL, BALANCED, ACCURATE = (0.00875, 0.00196, 0.966), (0.0066, 0.00176, 0.98), (0.0045, 0.0016, 0.99)
FIGURES = {
    "compact-bf16": SMALL,
    "compact-bf16-balanced": BALANCED,
    "compact-bf16-accurate": ACCURATE,
    "compact-bf16-nonpositive": SMALL,
    "compact-bf16-accurate-nonpositive": ACCURATE,
}


def domain(spec):
    """Return the codes of the spec's domain, from -infinity upwards; +0 belongs to both."""
    return np.concatenate((NEGATIVE, POSITIVE[:1] if spec.domain == "nonpositive" else POSITIVE))


def numbers(codes):
    """Return what codes stand for."""
    return BF16.from_codes(codes).astype(np.float64)


@each
def test_figures_over_every_code_with_a_normal_result(spec):
    max_rel, _, correctly_rounded = FIGURES[spec.name]
    exact, oracle = exact_exp(BF16), rounded_exp(BF16)
    normal = domain(spec)[((exact >= BF16.min_normal) & (oracle < BF16.inf_code))[domain(spec)]]
    results = spec.evaluate_codes(normal)
    assert normal.size == {"full": 34_145, "nonpositive": 17_072}[spec.domain]
    assert np.abs(numbers(results) / exact[normal] - 1).max() <= max_rel
    assert np.mean(results == oracle[normal]) >= correctly_rounded


@each
def test_mean_error_of_a_uniform_operand(spec):
    x = np.linspace(-87, 0 if spec.domain == "nonpositive" else 88, 1_000_001)
    codes = BF16.to_codes(x)
    relative = np.abs(numbers(spec.evaluate_codes(codes)) / exact_exp(BF16)[codes] - 1)
    assert relative.mean() <= FIGURES[spec.name][1]


@each
def test_monotone_over_all_codes(spec):
    results = numbers(spec.evaluate_codes(domain(spec)))
    assert np.all(results[1:] >= results[:-1])
    assert results[0] == 0
    assert results[-1] == (1 if spec.domain == "nonpositive" else np.inf)


@each
def test_special_codes(spec):
    sign, inf, one, nan = BF16.sign_mask, BF16.inf_code, BF16.one_code, BF16.nan_code
    assert spec.evaluate_codes([0, sign, 1, sign | 1, 127, sign | 127]).tolist() == [one] * 6
    assert spec.evaluate_codes([sign | inf]).tolist() == [0]
    nans = np.concatenate((np.arange(inf + 1, sign), np.arange(sign + inf + 1, 2 * sign)))
    assert set(spec.evaluate_codes(nans).tolist()) == {nan}


@each
def test_ends_of_the_range(spec):
    exact = np.exp(-87.0)
    results = numbers(spec.evaluate_codes(BF16.to_codes([-87.0, -87.5, -88.0, -1e30])))
    assert abs(results[0] / exact - 1) < 0.009
    assert results[1:].tolist() == [0, 0, 0]
    if spec.domain == "full":
        results = numbers(spec.evaluate_codes(BF16.to_codes([88.5, 89.0, 128.0, 1e30, np.inf])))
        assert abs(results[0] / np.exp(88.5) - 1) < 0.009
        assert np.all(results[1:] == np.inf)


@each
def test_subnormal_results_are_zero_and_overflow_is_infinity(spec):
    exact, oracle = exact_exp(BF16), rounded_exp(BF16)
    codes = domain(spec)
    results = spec.evaluate_codes(codes)
    below = exact[codes] < BF16.min_normal
    assert np.all(results[below] == 0)
    assert np.array_equal(results == BF16.inf_code, oracle[codes] == BF16.inf_code)


@pytest.mark.parametrize("spec", [s for s in COMPACT_BF16_SPECS if s.domain == "nonpositive"], ids=lambda s: s.name)
def test_nonpositive_takes_every_operand_for_negative(spec):
    positive = CODES[: BF16.inf_code]
    assert np.array_equal(spec.evaluate_codes(positive), spec.evaluate_codes(positive | BF16.sign_mask))


def in_fractions(spec, code):
    """Evaluate one operand below 128 as the Notes of CompactBf16Spec say, in exact rational arithmetic."""
    x = Fraction(float(BF16.from_codes(code)))
    exponent = math.frexp(float(abs(x)))[1] - 1
    if exponent < spec.lowest_exponent:
        p = Fraction(0)
    else:
        m = int((abs(x) / Fraction(2) ** exponent - 1) * 128)
        entries = len(spec.low)
        p = Fraction(spec.high[m // entries] + spec.low[m % entries], 2**spec.product_bits) * Fraction(2) ** exponent
    grid = 2**spec.frac_bits
    t = math.floor(p * grid)
    if x < 0:
        t = -t - 1
    n, f = t // grid, t % grid
    if Fraction(f, grid) >= Fraction(255, 256):
        n, y = n + 1, 0
    else:
        correction = spec.correction[f * len(spec.correction) // grid]
        y = math.floor(Fraction(f + spec.rounding - correction, grid) * 128)
    value = (1 + Fraction(y, 128)) * Fraction(2) ** n
    return 0 if value < Fraction(2) ** -126 or n < -126 else int(BF16.to_codes(float(value)))


@each
def test_definition_in_exact_fractions(spec):
    magnitudes = np.arange(1 << 7, int(BF16.to_codes(87.0)) + 1, 41)
    codes = magnitudes | BF16.sign_mask
    if spec.domain == "full":
        codes = np.concatenate((codes, magnitudes))
    assert spec.evaluate_codes(codes).tolist() == [in_fractions(spec, int(code)) for code in codes]


def test_shapes_are_kept():
    assert COMPACT_BF16.evaluate_codes(np.zeros((2, 3), np.uint16)).shape == (2, 3)
    assert COMPACT_BF16.evaluate_codes([]).dtype == np.uint16
    assert COMPACT_BF16.evaluate_float(np.zeros((2, 0))).shape == (2, 0)


@each
def test_float_model_has_only_the_error_of_the_pieces(spec):
    x = np.linspace(-700, 700, 100_001)
    # In half a piece 2^f - 1 - f moves by at most half a piece times its slope, 2 ln 2 - 1 at f = 1 and ln 2 - 1 at 0.
    limit = (1 - math.log(2)) / (2 * len(spec.correction))
    assert 0.7 * limit < np.abs(spec.evaluate_float(x) / np.exp(x) - 1).max() <= 1.02 * limit
    special = spec.evaluate_float([np.inf, -np.inf, np.nan])
    assert special[:2].tolist() == [np.inf, 0]
    assert np.isnan(special[2])


def test_parameters_and_cycles():
    spec = COMPACT_BF16
    assert spec.parameters["correction_entries"] == len(spec.correction)
    assert (spec.evaluation, spec.latency_cycles, spec.interval_cycles) == ("combinational", 0, 1)
    assert spec.replace(evaluation="pipelined").latency_cycles == spec.steps == 4
    assert spec.replace(evaluation="pipelined", registers=2).latency_cycles == 2


HIGH = COMPACT_BF16.high
LIMIT = 4 << COMPACT_BF16.product_bits
CORRECTION = COMPACT_BF16.correction


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"fmt": FP16}, ValueError, "fmt must be bf16, not 'fp16'"),
        ({"subnormals": "rounded"}, ValueError, "subnormals must be flushed, not 'rounded'"),
        ({"evaluation": "serial"}, ValueError, "evaluation must be one of combinational, pipelined, not 'serial'"),
        ({"frac_bits": 7}, ValueError, "frac_bits must be from 8 to 12, not 7"),
        ({"product_bits": 7}, ValueError, "product_bits must be from 8 to 20, not 7"),
        ({"lowest_exponent": -8}, ValueError, "lowest_exponent must be -7 or -15, not -8"),
        ({"rounding": 2}, ValueError, "rounding must be from 0 to 1, not 2"),
        ({"high": list(HIGH)}, TypeError, r"high must be a tuple, not \["),
        ({"high": HIGH[:-1]}, ValueError, "high must have a power of two of entries, not 7"),
        ({"high": HIGH[:4]}, ValueError, "high and low must have 128 entries multiplied, not 4 and 16"),
        ({"correction": (0,) * 512}, ValueError, "correction must have at most 256 entries, not 512"),
        ({"high": (-1, *HIGH[1:])}, ValueError, r"high\[0\] must be from 0 to \d+, not -1"),
        ({"high": (*HIGH[:-1], LIMIT - 1)}, ValueError, "high and low must add up to less than 4, not to"),
        ({"correction": (1, *CORRECTION[1:])}, ValueError, r"correction\[0\] must be from 0 to 0, not 1"),
        ({"correction": (*CORRECTION[:8], 40, *CORRECTION[9:])}, ValueError, r"correction\[8\] must be from 0 to 32"),
        ({"correction": (*CORRECTION[:32], 29, *CORRECTION[33:])}, ValueError, "must not fall as x rises, it does at"),
        (
            {"high": tuple(entry + 200 for entry in HIGH)},
            ValueError,
            r"product must pass 128 from x = 88\.5 to 89\.0, not go from 12[89]\.\d+ to",
        ),
    ],
)
def test_bad_specs(changes, error, text):
    with pytest.raises(error, match=text):
        COMPACT_BF16.replace(**changes)


def test_accurate_unit_is_faithful_over_all_codes():
    normal = (exact_exp(BF16) >= BF16.min_normal) & (rounded_exp(BF16) <= BF16.inf_code)
    results = COMPACT_BF16_ACCURATE.evaluate_codes(CODES)[normal].astype(int)
    assert np.abs(results - rounded_exp(BF16)[normal]).max() <= 1
