"""golden.exp.fit.lattice: coefficients on a grid, against the best that an independent lattice program found."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.fit.lattice import fit_on_grid, short_changes

# Relative error for 2^f on [0, 1] with all coefficients of so many fraction bits: Sollya's fpminimax, fixed point.
BEST = {
    (2, 8): 2.3e-3,
    (3, 8): 1.1e-4,
    (3, 14): 9.2e-5,
    (4, 8): 8.7e-5,
    (4, 12): 7.6e-6,
    (5, 10): 1.1e-5,
    (5, 16): 3.0e-7,
    (6, 8): 4.3e-5,
    (6, 12): 1.6e-6,
    (6, 16): 7.1e-8,
    (6, 24): 2.9e-9,
}
CENTRED = {(6, 8): 2.0e-4, (6, 16): 2.6e-7}


def reached(coefficients, bits, low, high, shift):
    """Return the largest relative error over a fine grid."""
    x = np.linspace(low, high, 20_001)
    value = np.polynomial.polynomial.polyval(x, np.array(coefficients) * 2.0**-bits)
    return np.abs(value / 2.0 ** (x + shift) - 1).max()


@pytest.mark.parametrize(("degree", "bits"), BEST)
def test_as_good_as_the_best_known(degree, bits):
    found = fit_on_grid((bits,) * (degree + 1))
    assert found.error == pytest.approx(reached(found.coefficients, bits, 0, 1, 0), rel=0.01)
    assert found.bound <= found.error <= 1.05 * BEST[degree, bits]


@pytest.mark.parametrize(("degree", "bits"), CENTRED)
def test_centred_variable(degree, bits):
    found = fit_on_grid((bits,) * (degree + 1), low=-0.5, high=0.5)
    assert found.error == pytest.approx(reached(found.coefficients, bits, -0.5, 0.5, 0), rel=0.01)
    assert found.error <= 1.05 * CENTRED[degree, bits]


def test_shifted_target_is_a_multiple():
    found = fit_on_grid((12,) * 5, low=-0.5, high=0.5, shift=0.5)
    assert found.error == pytest.approx(reached(found.coefficients, 12, -0.5, 0.5, 0.5), rel=0.01)
    assert found.coefficients[0] == pytest.approx(np.sqrt(2) * 2**12, abs=1)


def test_a_grid_of_its_own_for_each_coefficient():
    bits = (12, 10, 8)
    found = fit_on_grid(bits)
    real = [c * 2.0**-b for c, b in zip(found.coefficients, bits, strict=True)]
    x = np.linspace(0, 1, 1001)
    assert np.abs(np.polynomial.polynomial.polyval(x, real) / 2.0**x - 1).max() == pytest.approx(found.error, rel=0.01)
    # No neighbour is better.
    for k in range(3):
        for step in (-1, 1):
            trial = list(real)
            trial[k] += step * 2.0 ** -bits[k]
            assert np.abs(np.polynomial.polynomial.polyval(x, trial) / 2.0**x - 1).max() > found.error


def test_a_fine_grid_reaches_the_bound():
    found = fit_on_grid((30,) * 4)
    assert found.error == pytest.approx(found.bound, rel=1e-3)


def test_short_changes_move_little_and_span_all():
    changes = short_changes((12,) * 4)
    x = np.linspace(0, 1, 201)
    sizes = [np.abs(np.polynomial.polynomial.polyval(x, change)).max() for change in changes]
    # In units of the grid: the Chebyshev polynomial of degree 3 is 1/32 of a polynomial with integer coefficients.
    assert min(sizes) < 1 <= max(abs(value) for change in changes for value in change)
    singles = changes[:8:2]
    assert abs(round(np.linalg.det(np.array(singles)))) == 1
    assert {tuple(-value for value in change) for change in changes} == set(changes)
