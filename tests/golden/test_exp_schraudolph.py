"""golden.exp.schraudolph against the correctly rounded oracle over all codes, and the published figures of its kind."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.exp.fit.schraudolph import fit_correction, fit_offset
from golden.exp.schraudolph import SCHRAUDOLPH_SPECS, Correction
from golden.exp.statistics import measure
from golden.formats import FP16
from tests.helpers.exp_families import CODES, check_contract, check_figures, figures

BY_NAME = {spec.name: spec for spec in SCHRAUDOLPH_SPECS}
RAW = BY_NAME["schraudolph-bf16"]
CORRECTED = BY_NAME["schraudolph-corrected-bf16"]

# Largest relative error and share correctly rounded over every code with a normal result.
FIGURES = {
    "schraudolph-bf16": (6.44e-2, 0.897),
    "schraudolph-offset-bf16": (3.31e-2, 0.452),
    "schraudolph-corrected-bf16": (8.75e-3, 0.970),
    "schraudolph-corrected-8-bf16": (6.09e-3, 0.979),
    "schraudolph-corrected-9-bf16": (4.75e-3, 0.987),
    "schraudolph": (6.19e-2, 0.246),
    "schraudolph-offset": (3.04e-2, 0.113),
    "schraudolph-corrected-12": (1.82e-3, 0.632),
    "schraudolph-corrected-14": (7.31e-4, 0.825),
}

each = pytest.mark.parametrize("spec", SCHRAUDOLPH_SPECS, ids=BY_NAME)


@each
def test_figures_over_every_code_with_a_normal_result(spec):
    check_figures(spec, *FIGURES[spec.name])


def test_published_figures_of_the_corrected_method():
    # SoftEx's EXPU simulated for all codes: against the exact exponential largest 0.8749 %, mean 0.1963 % for a uniform
    # operand and 0.0269 % over codes, 1.184 ulp, 96.6 % correctly rounded; 0.7752 % against the rounded one.
    found = measure(CORRECTED.evaluate_codes(CODES), CORRECTED.fmt)
    assert found.normal_codes == 34_145
    assert found.max_rel == pytest.approx(0.008749, abs=1e-6)
    assert found.max_rel_rounded == pytest.approx(0.007752, abs=1e-6)
    assert found.mean_rel_uniform == pytest.approx(0.001963, abs=2e-5)
    assert found.mean_rel == pytest.approx(0.000269, abs=1.2e-5)
    assert found.max_ulp <= 1.184
    assert found.correctly_rounded >= 0.966


@each
def test_contract(spec):
    check_contract(spec)


@pytest.mark.parametrize("name", ["schraudolph-offset", "schraudolph-corrected-8-bf16"])
def test_contract_of_another_domain(name):
    spec = BY_NAME[name]
    flushed = spec.replace(domain="nonpositive", subnormals="flushed")
    check_contract(flushed)
    results = flushed.evaluate_codes(CODES)
    normal = (CODES & spec.fmt.sign_mask != 0) & (results >= 1 << spec.fmt.significand_bits)
    assert np.array_equal(results[normal], spec.evaluate_codes(CODES)[normal])


@each
def test_truncating_units_keep_the_contract(spec):
    check_contract(spec.replace(rounding="truncated"))


def mantissa(c, f):
    """Return 2^f - 1 as Correction defines it, in exact arithmetic."""
    factor, constant = Fraction(1, 2**c.factor_bits), Fraction(1, 2**c.constant_bits)
    if f < Fraction(1, 2):
        return c.lower * factor * f * (f + c.lower_constant * constant)
    return 1 - c.upper * factor * (1 - f) * (f + c.upper_constant * constant)


@pytest.mark.parametrize("spec", [spec for spec in SCHRAUDOLPH_SPECS if spec.correction], ids=lambda spec: spec.name)
def test_corrected_core_in_exact_fractions(spec):
    grid = 2**spec.frac_bits
    f = np.arange(0, grid, max(1, grid // 1000))
    exact = [1 + mantissa(spec.correction, Fraction(k, grid)) for k in f.tolist()]
    core = [Fraction(h, grid) for h in spec.core(f).tolist()]
    # Truncation costs less than a unit; the complement stands for 1 minus a fraction, but is one unit less, and so is
    # the factor 1 - f that enters the upper half's product, with a slope below 2.
    assert all(
        Fraction(-3, grid) < found - wanted <= Fraction(3, grid) for found, wanted in zip(core, exact, strict=True)
    )
    assert core == sorted(core)
    reals = spec.core_float(f / grid)
    assert np.abs(reals - np.array([float(value) for value in exact])).max() < 1e-12


def test_raw_core_is_one_plus_f():
    f = np.arange(256)
    assert (RAW.core(f) / 256).tolist() == (1 + f / 256).tolist()
    error = np.abs(RAW.evaluate_float(np.linspace(-9, 9, 9001)) / np.exp(np.linspace(-9, 9, 9001)) - 1).max()
    assert error == pytest.approx(0.0615, abs=1e-4)  # 1 + f against 2^f, at f = 1 / ln(2) - 1


def test_offset_stops_at_one():
    spec = BY_NAME["schraudolph-offset"]
    step = spec.offset / 2**spec.frac_bits
    x = np.array([-0.5, -1e-9, 0.0, 1e-3, step * math.log(2), 0.5, np.inf, -np.inf])
    found = spec.evaluate_float(x)
    assert found[1] == pytest.approx(1 - step / 2, abs=1e-6)  # just below 1 half the slope: 1 + f ends at 2
    assert found[2:5].tolist() == [1.0, 1.0, 1.0]
    assert found[6:].tolist() == [np.inf, 0.0]
    codes = spec.evaluate_codes(FP16.to_codes(x))
    assert codes[2] == codes[3] == FP16.one_code
    assert FP16.from_codes(codes[[0, 5]]).astype(float) == pytest.approx(found[[0, 5]], rel=1e-3)


@pytest.mark.parametrize("name", ["schraudolph-offset-bf16", "schraudolph-offset"])
def test_shipped_offsets_are_the_output_of_the_fit(name):
    spec = BY_NAME[name]
    offset, error = fit_offset(spec)
    assert offset == spec.offset
    assert error == pytest.approx(figures(spec).max_rel, rel=1e-12)
    # Balanced, 1 + f - offset errs by 2.98 % at best; the rounding of the operand's t and the result come on top.
    assert 0.0298 < error < 0.0298 + 2.0**-spec.fmt.significand_bits


@pytest.mark.parametrize(
    "name", ["schraudolph-corrected-bf16", "schraudolph-corrected-9-bf16", "schraudolph-corrected-12"]
)
def test_shipped_corrections_are_the_output_of_the_fit(name):
    spec = BY_NAME[name]
    found = fit_correction(spec)
    assert found.correction == spec.correction
    assert found.error == pytest.approx(figures(spec).max_rel, abs=1e-9)
    assert found.misrounded == pytest.approx((1 - figures(spec).correctly_rounded) * found.operands, abs=3)


def test_fit_with_other_word_lengths():
    found = fit_correction(RAW.replace(frac_bits=12), factor_bits=5, constant_bits=7)
    assert (found.correction.factor_bits, found.correction.constant_bits) == (5, 7)
    finer = RAW.replace(frac_bits=12, correction=found.correction)
    check_contract(finer)
    assert figures(finer).max_rel < 0.0045


def test_parameters_of_a_row():
    assert dict(CORRECTED.parameters) == {
        "correction": "two-piece quadratic",
        "offset": 0,
        "frac_bits": 8,
        "log2e_bits": 14,
    }
    assert (RAW.parameters["correction"], RAW.steps, CORRECTED.steps) == ("none", 5, 6)


GOOD = CORRECTED.correction


def correction(**changes):
    return Correction(**{**{name: getattr(GOOD, name) for name in Correction.__annotations__}, **changes})


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"lower": 0}, ValueError, "lower must be from 1 to 15, not 0"),
        ({"upper": 16}, ValueError, "upper must be from 1 to 15, not 16"),
        ({"upper_constant": 0}, ValueError, "upper_constant must be from 1 to 2047, not 0"),
        ({"lower_constant": 1.5}, TypeError, r"lower_constant must be an integer, not 1\.5"),
        ({"factor_bits": 0}, ValueError, "factor_bits must be from 1 to 16, not 0"),
        ({"constant_bits": 17}, ValueError, "constant_bits must be from 0 to 16, not 17"),
    ],
)
def test_bad_corrections(changes, error, text):
    with pytest.raises(error, match=text):
        correction(**changes)


@pytest.mark.parametrize(
    ("spec", "changes", "error", "text"),
    [
        (RAW, {"offset": -1}, ValueError, "offset must be from 0 to 255, not -1"),
        (RAW, {"offset": 256}, ValueError, "offset must be from 0 to 255, not 256"),
        (RAW, {"correction": (4, 7)}, TypeError, r"correction must be a Correction or None, not \(4, 7\)"),
        (CORRECTED, {"offset": 3}, ValueError, "offset must be 0 with a correction, .*, not 3"),
        (
            CORRECTED,
            {"correction": correction(constant_bits=9)},
            ValueError,
            "constant_bits must be at most 8, the fraction bits of t, not 9",
        ),
        (
            CORRECTED,
            {"correction": correction(lower=5)},
            ValueError,
            r"the halves of the mantissa must not fall where they meet, they go from 132 to 107",
        ),
        (
            CORRECTED,
            {"correction": correction(upper=14)},
            ValueError,
            "the halves of the mantissa must not fall where they meet, they go from 106 to -41",
        ),
    ],
)
def test_bad_specs(spec, changes, error, text):
    with pytest.raises(error, match=text):
        spec.replace(**changes)
