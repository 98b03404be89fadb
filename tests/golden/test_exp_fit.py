"""golden.exp.fit.polynomial: the shipped constants are its output, and its bounds are the known ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from golden.exp import POLY6, POLY6_SERIAL, horner
from golden.exp.fit.minimax import minimax
from golden.exp.fit.polynomial import fit
from tests.helpers.exp_oracle import exact_exp, rounded_exp


@cache
def fitted():
    """Fit the shipped spec once for all tests."""
    return fit(POLY6)


GRID = (1 - np.cos(np.pi * np.arange(2049) / 2048)) / 2

# Relative minimax error of degree 1 to 8 on an interval ln(2) wide, computed with mpmath at 60 digits.
MINIMAX = (2.98e-2, 1.73e-3, 7.48e-5, 2.59e-6, 7.49e-8, 1.86e-9, 4.02e-11, 7.7e-13)


def test_shipped_constants_are_the_output_of_the_fit():
    found = fitted()
    assert found.coefficients == POLY6.coefficients == POLY6_SERIAL.coefficients
    assert found.operands == 37_479
    assert found.misrounded == 253


def test_fit_depends_on_the_word_lengths_alone():
    start = POLY6.replace(name="other", coefficients=(65536, 0, 0, 0, 0, 0, 0), evaluation="serial")
    assert fit(start) == fitted()


def test_bounds_reported():
    found = fitted()
    assert found.minimax_error == pytest.approx(MINIMAX[5], rel=0.01)
    # The core also holds half a step of f, ln(2) / 2^17, and the truncation of six products.
    assert np.log(2) / 2**17 < found.core_error < 1.7e-5


def test_misrounded_is_what_the_oracle_counts():
    found = fitted()
    normal = (exact_exp(POLY6.fmt) >= POLY6.fmt.min_normal) & (rounded_exp(POLY6.fmt) < POLY6.fmt.inf_code)
    differs = POLY6.evaluate_codes(np.arange(1 << 16)) != rounded_exp(POLY6.fmt)
    assert found.misrounded == np.count_nonzero(differs & normal)


@pytest.mark.parametrize("degree", range(1, 9))
def test_minimax_of_two_to_the_f(degree):
    coefficients, error = minimax(2.0**GRID, 2.0**-GRID, GRID, degree)
    assert error == pytest.approx(MINIMAX[degree - 1], rel=0.01)
    fine = np.linspace(0, 1, 100_001)
    achieved = np.abs(np.polynomial.polynomial.polyval(fine, coefficients) / 2.0**fine - 1).max()
    assert achieved == pytest.approx(error, rel=1e-3, abs=1e-15)


def test_minimax_of_a_constant_is_midway():
    coefficients, error = minimax(GRID, np.ones_like(GRID), GRID, 0)
    assert coefficients == pytest.approx([0.5])
    assert error == pytest.approx(0.5)


def test_minimax_of_a_polynomial_is_itself():
    coefficients, error = minimax(1 + 2 * GRID - GRID**2, np.ones_like(GRID), GRID, 3)
    assert coefficients == pytest.approx([1, 2, -1, 0], abs=1e-12)
    assert error < 1e-14


@pytest.mark.parametrize(("degree", "frac_bits", "guard_bits"), [(2, 14, 0), (3, 14, 2), (5, 12, 1)])
def test_fit_beats_the_naive_rounding(degree, frac_bits, guard_bits):
    unit = 1 << (frac_bits + guard_bits)
    spec = POLY6.replace(coefficients=(unit, *(0,) * degree), frac_bits=frac_bits, guard_bits=guard_bits)
    found = fit(spec)
    assert found.core_error >= found.minimax_error
    real, _ = minimax(2.0**GRID, 2.0**-GRID, GRID, degree)
    naive = [round(c * unit) for c in real]
    codes = np.arange(1 << 16)
    normal = (exact_exp(spec.fmt) >= spec.fmt.min_normal) & (rounded_exp(spec.fmt) < spec.fmt.inf_code)
    n, f, _ = spec.reduce_codes(codes[normal])
    wrong = spec.round_scaled(horner(naive, f, frac_bits), n) != rounded_exp(spec.fmt)[normal]
    assert found.misrounded < np.count_nonzero(wrong)


def test_fit_of_a_line_keeps_its_ends():
    found = fit(POLY6.replace(coefficients=(65536, 0)))
    assert sum(found.coefficients) == pytest.approx(2 << 16, abs=32)
    assert found.core_error == pytest.approx(0.0615, abs=2e-4)  # 1 + f against 2^f, at f = 1 / ln(2) - 1
