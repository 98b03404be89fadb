"""The best polynomial with real coefficients, by Remez exchange: the bound for every rounding of coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["chebyshev_grid", "minimax"]

_GRID = 2048


def chebyshev_grid(low: float = 0.0, high: float = 1.0, points: int = _GRID + 1) -> npt.NDArray[np.float64]:
    """Return points of an interval, ascending and dense at the ends, where a minimax error turns fastest."""
    return low + (high - low) * ((1 - np.cos(np.pi * np.arange(points) / (points - 1))) / 2)


def minimax(
    target: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], x: npt.NDArray[np.float64], degree: int
) -> tuple[npt.NDArray[np.float64], float]:
    """Return the polynomial that minimises ``max |weight * (p(x) - target)|`` over a grid, by Remez exchange.

    Parameters
    ----------
    target, weight, x : ndarray of float64, shape (points,)
        Values to approach, weights of their errors, and ascending abscissae.
    degree : int
        Degree of the polynomial, at least 0 and at most ``points - 2``.

    Returns
    -------
    coefficients : ndarray of float64, shape (degree + 1,)
        Ascending powers of x.
    error : float
        The largest weighted error reached.
    """
    points = np.rint((1 - np.cos(np.pi * np.arange(degree + 2) / (degree + 1))) / 2 * (x.size - 1)).astype(int)
    powers = np.vander(x, degree + 1, increasing=True)
    signs = (-1.0) ** np.arange(degree + 2)
    best: tuple[npt.NDArray[np.float64], float] = (np.zeros(degree + 1), np.inf)
    # The exchange converges quadratically; a dozen rounds reach the grid's resolution at every degree in use.
    for _ in range(12):
        system = np.column_stack([powers[points], signs / weight[points]])
        coefficients = np.linalg.solve(system, target[points])[:-1].astype(np.float64)
        error = weight * (powers @ coefficients - target)
        largest = float(np.abs(error).max())
        if largest < best[1]:
            best = coefficients, largest
        runs = np.split(np.arange(x.size), np.flatnonzero(np.diff(np.signbit(error))) + 1)
        extremes = np.array([run[np.abs(error[run]).argmax()] for run in runs])
        while extremes.size > degree + 2:
            extremes = extremes[1:] if abs(error[extremes[0]]) < abs(error[extremes[-1]]) else extremes[:-1]
        if extremes.size < degree + 2 or np.array_equal(extremes, points):
            break
        points = extremes
    return best
