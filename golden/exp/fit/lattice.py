"""Polynomials whose coefficients lie on grids: close vectors of a lattice, then a search along its short vectors.

The values of all polynomials with coefficients on the grids, at a few points and weighted, form a lattice. A
reduced basis of it (Lenstra, Lenstra and Lovasz 1982) holds the changes of coefficients that move the polynomial
least; rounding the minimax polynomial in that basis (Babai 1986) loses far less than rounding each coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from golden.exp.fit.minimax import chebyshev_grid, minimax

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["GridFit", "fit_on_grid", "short_changes"]

_POINTS = 1025
_DELTA = 0.99
_GAIN = 1e-4


@dataclass(frozen=True, kw_only=True)
class GridFit:
    """Result of :func:`fit_on_grid`.

    Parameters
    ----------
    coefficients : tuple of int
        ``c[0] .. c[degree]`` in units of ``2^-bits[k]``.
    error : float
        Largest relative error of the polynomial, evaluated exactly.
    bound : float
        That of the minimax polynomial with real coefficients.
    """

    coefficients: tuple[int, ...]
    error: float
    bound: float


def fit_on_grid(bits: Sequence[int], *, low: float = 0.0, high: float = 1.0, shift: float = 0.0) -> GridFit:
    """Fit a polynomial for ``2^(x + shift)`` whose coefficients are integers in units of ``2^-bits[k]``.

    Parameters
    ----------
    bits : sequence of int
        Fraction bits of each coefficient, ascending powers of x.
    low, high : float
        Interval of x.
    shift : float
        Added to x in the target: 1/2 for a centred variable.

    Returns
    -------
    GridFit
        The best found; not proven to be the best there is.
    """
    degree = len(bits) - 1
    x = chebyshev_grid(low, high, _POINTS)
    target, weight = 2.0 ** (x + shift), 2.0 ** -(x + shift)
    real, bound = minimax(target, weight, x, degree)
    units = 2.0 ** -np.array(bits, dtype=np.float64)
    columns = weight[:, None] * np.vander(x, degree + 1, increasing=True) * units
    goal = weight * target
    best: tuple[float, tuple[int, ...]] = (np.inf, ())
    for points in (degree + 1, degree + 2, 2 * degree + 2, 4 * degree + 4):
        # The zeros of a Chebyshev polynomial, as places on the grid.
        zeros = np.rint((2 * np.arange(points) + 1) / (2 * points) * (_POINTS - 1)).astype(int)
        basis = columns[zeros]
        transform = _reduced(basis)
        start = _closest(basis, transform, basis @ (real / units))
        changes = np.array(_combinations(transform.T, 3))
        for exponent in (8, 32, 0):
            start = _descend(columns, goal, start, changes, exponent)
        error = float(np.abs(columns @ start - goal).max())
        best = min(best, (error, tuple(int(value) for value in start)))
    return GridFit(coefficients=best[1], error=best[0], bound=bound)


def short_changes(bits: Sequence[int], *, low: float = 0.0, high: float = 1.0) -> list[tuple[int, ...]]:
    """Return changes of coefficients, in units of ``2^-bits[k]``, that move a polynomial on an interval least.

    They are the vectors of a reduced basis, their negatives, and the sums of any two of these.
    """
    degree = len(bits) - 1
    x = chebyshev_grid(low, high, 4 * degree + 5)
    basis = np.vander(x, degree + 1, increasing=True) * 2.0 ** -np.array(bits, dtype=np.float64)
    return [tuple(int(value) for value in change) for change in _combinations(_reduced(basis).T, 2)]


def _combinations(vectors: npt.NDArray[np.int64], most: int) -> list[npt.NDArray[np.int64]]:
    """Return all sums of one to ``most`` different vectors with either sign."""
    return [
        np.array(signs) @ vectors[list(chosen)]
        for count in range(1, most + 1)
        for chosen in combinations(range(len(vectors)), count)
        for signs in product((1, -1), repeat=count)
    ]


def _reduced(basis: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the integer matrix that turns the columns of ``basis`` into a reduced basis of their lattice."""
    count = basis.shape[1]
    transform = np.eye(count, dtype=np.int64)
    k = 1
    while k < count:
        for j in range(k - 1, -1, -1):
            _, r = np.linalg.qr(basis @ transform)
            multiple = round(r[j, k] / r[j, j])
            transform[:, k] -= multiple * transform[:, j]
        _, r = np.linalg.qr(basis @ transform)
        if r[k, k] ** 2 + r[k - 1, k] ** 2 >= _DELTA * r[k - 1, k - 1] ** 2:
            k += 1
        else:
            transform[:, k - 1 : k + 1] = transform[:, k - 1 : k + 1][:, ::-1].copy()
            k = max(k - 1, 1)
    return transform


def _closest(
    basis: npt.NDArray[np.float64], transform: npt.NDArray[np.int64], goal: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return integer coefficients of a vector of the lattice close to ``goal``: nearest plane after nearest plane."""
    q, r = np.linalg.qr(basis @ transform)
    rest = q.T @ goal
    chosen = np.zeros(basis.shape[1], dtype=np.int64)
    for k in range(basis.shape[1] - 1, -1, -1):
        chosen[k] = round(rest[k] / r[k, k])
        rest -= chosen[k] * r[:, k]
    return transform @ chosen


def _descend(
    columns: npt.NDArray[np.float64],
    goal: npt.NDArray[np.float64],
    start: npt.NDArray[np.int64],
    changes: npt.NDArray[np.int64],
    exponent: int,
) -> npt.NDArray[np.int64]:
    """Take the best of ``changes`` while one lowers the error: its largest value, or its mean of a high power."""

    def size(error: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        largest = np.abs(error).max(axis=-1, keepdims=True)
        if not exponent:
            return largest[..., 0]
        return largest[..., 0] * np.mean((np.abs(error) / largest) ** exponent, axis=-1) ** (1 / exponent)

    moved = changes @ columns.T
    error = columns @ start - goal
    while True:
        trials = size(error + moved)
        best = int(trials.argmin())
        # A smaller gain is not worth its step; there may be millions of them where the grid is fine.
        if trials[best] > (1 - _GAIN) * size(error):
            return start
        start = start + changes[best]
        error = columns @ start - goal
