"""Integer coefficients for an :class:`golden.exp.ExpSpec`, fitted with its word lengths in place.

Three steps, all deterministic:

1. the real minimax polynomial for ``2^f`` on [0, 1) in relative error (Remez exchange on a grid), which is the
   bound that no choice of coefficients can beat;
2. coefficients rounded one at a time from the highest down, the others refitted by the same exchange after each,
   so that a lower coefficient takes up what the rounding of a higher one cost;
3. an exchange search on the integer grid around several such starts: every step that changes one or two
   coefficients is tried on all operands with the truncation of every Horner step in place, until none helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from golden.exp import horner

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from golden.exp import ExpSpec

__all__ = ["ExpFit", "fit", "minimax"]

_GRID = 2048
_TOP_OFFSETS = (0, 4, -4)
_STEPS = (-2, -1, 1, 2)


@dataclass(frozen=True, kw_only=True)
class ExpFit:
    """Result of :func:`fit`.

    Parameters
    ----------
    coefficients : tuple of int
        ``c[0] .. c[degree]`` in units of ``2^-horner_bits``.
    minimax_error : float
        Largest relative error of the best polynomial with real coefficients and exact evaluation: the lower bound.
    core_error : float
        Largest relative error of the Horner sum over every f, against ``2^f`` at the middle of the interval that f
        stands for. It holds the coefficients' rounding and the truncation of every step.
    misrounded : int
        Operands whose result is not the correctly rounded one.
    operands : int
        Operands counted: every code with a normal result.
    """

    coefficients: tuple[int, ...]
    minimax_error: float
    core_error: float
    misrounded: int
    operands: int


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


def fit(spec: ExpSpec) -> ExpFit:
    """Fit the coefficients of ``spec`` to its degree, word lengths and format.

    Parameters
    ----------
    spec : ExpSpec
        Everything but its coefficients is used; of these only the number.

    Returns
    -------
    ExpFit
        The best coefficients found, with the errors they reach.

    """
    objective = _Objective(spec)
    starts = [start for start in _free_starts(spec) if objective.allowed(start)] or [_pinned_start(spec)]
    best = min((_descend(objective, start) for start in starts), key=objective)
    x = _chebyshev_grid()
    _, bound = minimax(2.0**x, 2.0**-x, x, spec.degree)
    return ExpFit(
        coefficients=best,
        minimax_error=bound,
        core_error=_core_error(spec, best),
        misrounded=objective(best)[0],
        operands=objective.operands,
    )


class _Objective:
    """Misrounded operands and worst relative error of a choice of coefficients, lower is better."""

    def __init__(self, spec: ExpSpec) -> None:
        codes = np.arange(1 << spec.fmt.bits)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            exact = np.exp(spec.fmt.from_codes(codes).astype(np.float64))
        expected = spec.fmt.to_codes(exact)
        first = spec.fmt.min_normal
        normal = (exact >= first) & (expected < spec.fmt.inf_code)
        n, f, _ = spec.reduce_codes(codes[normal])
        self._spec = spec
        self._n, self._f = n, f
        self._expected = expected[normal]
        self._scaled = np.ldexp(exact[normal], spec.horner_bits - n)
        self._known: dict[tuple[int, ...], tuple[int, float]] = {}

    @property
    def operands(self) -> int:
        """Operands counted."""
        return self._f.size

    def allowed(self, coefficients: tuple[int, ...]) -> bool:
        """Say whether the spec would accept ``coefficients``."""
        try:
            self._spec.replace(coefficients=coefficients)
        except ValueError:
            return False
        return True

    def __call__(self, coefficients: tuple[int, ...]) -> tuple[int, float]:
        """Return the number of misrounded operands and the largest relative error before rounding."""
        if coefficients not in self._known:
            h = horner(coefficients, self._f, self._spec.frac_bits)
            misrounded = int(np.count_nonzero(self._spec.round_scaled(h, self._n) != self._expected))
            self._known[coefficients] = misrounded, float(np.abs(h / self._scaled - 1).max())
        return self._known[coefficients]


def _chebyshev_grid() -> npt.NDArray[np.float64]:
    """Return points of [0, 1], ascending and dense at the ends, where a minimax error turns fastest."""
    return (1 - np.cos(np.pi * np.arange(_GRID + 1) / _GRID)) / 2


def _wanted(spec: ExpSpec, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return what exact Horner sums should be for the truncated ones to be ``2^x`` in the mean."""
    # f is the floor of what it stands for, and every step drops half a unit in the mean.
    dropped = sum((x**k for k in range(spec.degree)), start=np.zeros_like(x)) * 2.0 ** -(spec.horner_bits + 1)
    return 2.0 ** (x + 2.0 ** -(spec.frac_bits + 1)) + dropped


def _free_starts(spec: ExpSpec) -> Iterator[tuple[int, ...]]:
    """Yield roundings of the minimax polynomial that differ in their highest coefficient."""
    unit = 2.0**-spec.horner_bits
    x = _chebyshev_grid()
    for offset in _TOP_OFFSETS:
        rest = _wanted(spec, x)
        chosen: list[int] = []
        for k in range(spec.degree, -1, -1):
            coefficients, _ = minimax(rest, 2.0**-x, x, k)
            value = max(0, round(float(coefficients[k]) / unit) + (offset if k == spec.degree else 0))
            chosen.append(value)
            rest = rest - value * unit * x**k
        yield tuple(reversed(chosen))


def _pinned_start(spec: ExpSpec) -> tuple[int, ...]:
    """Return a rounding of the best polynomial with p(0) = 1 and p(1) = 2, which every spec accepts.

    It is ``1 + x + x * (1 - x) * r(x)``, for a degree so low that the free minimax polynomial misses the ends by more
    than exp(0) = 1 and monotony allow.
    """
    one = 1 << spec.horner_bits
    real = np.zeros(spec.degree + 1)
    real[:2] = 1.0
    if spec.degree > 1:
        x = _chebyshev_grid()[1:-1]
        bow = x * (1 - x)
        r, _ = minimax((_wanted(spec, x) - 1 - x) / bow, bow * 2.0**-x, x, spec.degree - 2)
        real[1:-1] += r
        real[2:] -= r
    integers = [one, *(max(0, round(value * one)) for value in real[1:].tolist())]
    f = np.array([(1 << spec.frac_bits) - 1])
    while (top := int(horner(integers, f, spec.frac_bits)[0])) >= 2 * one:
        integers[1] -= top - 2 * one + 1
    return tuple(integers)


def _moves(count: int) -> list[tuple[tuple[int, int], ...]]:
    """Return every change of one or two of ``count`` coefficients by at most two units each."""
    singles: list[tuple[tuple[int, int], ...]] = [((k, step),) for k in range(count) for step in _STEPS]
    pairs: list[tuple[tuple[int, int], ...]] = [
        ((i, a), (j, b)) for i, j in combinations(range(count), 2) for a in _STEPS for b in _STEPS
    ]
    return singles + pairs


def _descend(objective: _Objective, start: tuple[int, ...]) -> tuple[int, ...]:
    """Take every improving move, in a fixed order, until a whole round brings none."""
    best = start
    moves = _moves(len(start))
    improved = True
    while improved:
        improved = False
        for move in moves:
            trial = list(best)
            for k, step in move:
                trial[k] += step
            candidate = tuple(trial)
            if objective.allowed(candidate) and objective(candidate) < objective(best):
                best, improved = candidate, True
    return best


def _core_error(spec: ExpSpec, coefficients: tuple[int, ...]) -> float:
    """Return the largest relative error of the Horner sum over every f."""
    f = np.arange(1 << spec.frac_bits)
    centre = (f + 0.5) * 2.0**-spec.frac_bits
    h = horner(coefficients, f, spec.frac_bits) * 2.0**-spec.horner_bits
    return float(np.abs(h / 2.0**centre - 1).max())
