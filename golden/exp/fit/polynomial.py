"""Integer coefficients for a :class:`golden.exp.PolynomialSpec`, fitted with its word lengths in place.

All deterministic:

1. the real minimax polynomial for ``2^f`` on [0, 1) in relative error, which is the bound that no choice of
   coefficients can beat;
2. starts on the grid of the coefficients: rounded one at a time from the highest down, the others refitted after
   each, so that a lower coefficient takes up what the rounding of a higher one cost; and the close lattice vector of
   :mod:`golden.exp.fit.lattice`;
3. a search on the grid from these: changes of one or two coefficients by a few units, and the short changes of the
   lattice, are tried on all operands with every truncation in place, until none helps.

:func:`naive` and :func:`taylor` are what the fit is worth: coefficients rounded with no thought.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from golden.exp.fit.lattice import fit_on_grid, short_changes
from golden.exp.fit.minimax import chebyshev_grid, minimax
from golden.exp.fit.operands import AnyPolynomial, operands, result_bits

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


__all__ = ["ExpFit", "Method", "fit", "naive", "taylor"]

Method = Literal["units", "lattice"]
"""Starts and changes of the search: of one coefficient at a time, or those and the lattice's."""

_TOP_OFFSETS = (0, 4, -4)
_STEPS = (-2, -1, 1, 2)


@dataclass(frozen=True, kw_only=True)
class ExpFit:
    """Result of :func:`fit`.

    Parameters
    ----------
    coefficients : tuple of int
        ``c[0] .. c[degree]`` in units of ``2^-sums[k]``.
    minimax_error : float
        Largest relative error of the best polynomial with real coefficients and exact evaluation: the lower bound.
    core_error : float
        Largest relative error of the core over every f, against ``2^f`` at the middle of the interval that f
        stands for. It holds the coefficients' rounding and the truncation of every step.
    misrounded : int
        Operands whose result is not the correctly rounded one.
    operands : int
        Operands counted: every code of the domain with a normal result; in fixed point, with one that is neither 0 nor
        the largest code.
    """

    coefficients: tuple[int, ...]
    minimax_error: float
    core_error: float
    misrounded: int
    operands: int


def fit(spec: AnyPolynomial, method: Method = "units") -> ExpFit:
    """Fit the coefficients of ``spec`` to its degree, word lengths and format.

    Parameters
    ----------
    spec : AnyPolynomial
        Everything but its coefficients is used; of these only the number.
    method : {"units", "lattice"}
        ``lattice`` finds at least as good ones, and takes longer.

    Returns
    -------
    ExpFit
        The best coefficients found, with the errors they reach.
    """
    objective = _Objective(spec)
    starts = list(_free_starts(spec))
    moves = _moves(spec.degree + 1)
    if method == "lattice":
        low, high = (-0.5, 0.5) if spec.centred else (0.0, 1.0)
        starts.append(fit_on_grid(spec.sums, low=low, high=high, shift=0.5 if spec.centred else 0.0).coefficients)
        moves += [tuple(enumerate(change)) for change in short_changes(spec.sums, low=low, high=high)]
    starts = [start for start in starts if objective.allowed(start)] or [_pinned_start(spec)]
    best = min((_descend(objective, start, moves) for start in starts), key=objective)
    x = chebyshev_grid()
    _, bound = minimax(2.0**x, 2.0**-x, x, spec.degree)
    return ExpFit(
        coefficients=best,
        minimax_error=bound,
        core_error=objective.core_error(best),
        misrounded=objective(best)[0],
        operands=objective.operands,
    )


def naive(spec: AnyPolynomial) -> tuple[int, ...]:
    """Return the real minimax polynomial's coefficients, each rounded to its own grid."""
    x = chebyshev_grid(*((-0.5, 0.5) if spec.centred else (0.0, 1.0)))
    f = x + 0.5 if spec.centred else x
    real, _ = minimax(2.0**f, 2.0**-f, x, spec.degree)
    return tuple(round(value * 2.0**bits) for value, bits in zip(real.tolist(), spec.sums, strict=True))


def taylor(spec: AnyPolynomial) -> tuple[int, ...]:
    """Return the coefficients of the Taylor series of ``2^f`` about 0 (centred: 1/2), each rounded to its own grid."""
    first = math.sqrt(2) if spec.centred else 1.0
    return tuple(round(first * math.log(2) ** k / math.factorial(k) * 2.0**bits) for k, bits in enumerate(spec.sums))


class _Objective:
    """Misrounded operands and worst relative error of a choice of coefficients, lower is better."""

    def __init__(self, spec: AnyPolynomial) -> None:
        counted = operands(spec)
        self._spec = spec
        # The fractions that occur, with the largest there is; most of them in several operands.
        self._fractions = np.unique(np.append(counted.every, (1 << spec.frac_bits) - 1))
        self._where = np.searchsorted(self._fractions, counted.f)
        self._scaled, self._low, self._high = counted.exact, counted.low, counted.high
        self._known: dict[tuple[int, ...], tuple[int, float]] = {}

    @property
    def operands(self) -> int:
        """Operands counted."""
        return self._where.size

    def allowed(self, coefficients: tuple[int, ...]) -> bool:
        """Say whether the spec would accept ``coefficients``, all but the last test of a truncating core."""
        spec = self._spec
        one = 1 << spec.core_bits
        if coefficients[-1] == 0:  # else it is a polynomial of a lower degree
            return False
        if not all((-2 * one if spec.centred else 0) <= value < 2 * one for value in coefficients):
            return False
        unit = one >> result_bits(spec)
        truncated = spec.rounding == "truncated"
        if not spec.centred and not one <= coefficients[0] < one + (unit if truncated else unit >> 1):
            return False
        h = _core(spec, coefficients, self._fractions)
        if not one <= h[0] < one + (unit if truncated else unit >> 1):
            return False
        return bool(h.max() < 2 * one + (unit if truncated else 0) and np.all(h[1:] >= h[:-1]))

    def __call__(self, coefficients: tuple[int, ...]) -> tuple[int, float]:
        """Return the number of misrounded operands and the largest relative error before rounding."""
        if coefficients not in self._known:
            h = _core(self._spec, coefficients, self._fractions)[self._where]
            misrounded = int(np.count_nonzero((h < self._low) | (h > self._high)))
            self._known[coefficients] = misrounded, float(np.abs(h / self._scaled - 1).max())
        return self._known[coefficients]

    def core_error(self, coefficients: tuple[int, ...]) -> float:
        """Return the largest relative error of the core over every f."""
        every = np.arange(1 << self._spec.frac_bits)
        centre = (every + 0.5) * 2.0**-self._spec.frac_bits
        h = _core(self._spec, coefficients, every) * 2.0**-self._spec.core_bits
        return float(np.abs(h / 2.0**centre - 1).max())


def _core(spec: AnyPolynomial, coefficients: tuple[int, ...], f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the core of ``spec`` with other coefficients, without the checks of a spec."""
    plan = spec.plan_of(coefficients)
    return plan.evaluate(f)[plan.result]


def _wanted(spec: AnyPolynomial, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return what exact sums should be for the truncated ones to be ``2^f`` in the mean; x is f, or f - 1/2."""
    f = x + 0.5 if spec.centred else x
    # f is the floor of what it stands for, and every truncated step drops half a unit in the mean.
    dropped = np.zeros_like(x)
    if spec.products == "truncated":
        dropped = sum((x**k * 2.0 ** -(spec.sums[k] + 1) for k in range(spec.degree)), start=dropped)
    # A result that is cut instead of rounded wants half of its unit on top.
    half = 2.0 ** -(result_bits(spec) + 1) if spec.rounding == "truncated" else 0.0
    return 2.0 ** (f + 2.0 ** -(spec.frac_bits + 1)) + dropped + half


def _free_starts(spec: AnyPolynomial) -> Iterator[tuple[int, ...]]:
    """Yield roundings of the minimax polynomial that differ in their highest coefficient."""
    low, high = (-0.5, 0.5) if spec.centred else (0.0, 1.0)
    x = chebyshev_grid(low, high)
    weight = 2.0**-x
    for offset in _TOP_OFFSETS:
        rest = _wanted(spec, x)
        chosen: list[int] = []
        for k in range(spec.degree, -1, -1):
            unit = 2.0 ** -spec.sums[k]
            coefficients, _ = minimax(rest, weight, x, k)
            value = round(float(coefficients[k]) / unit) + (offset if k == spec.degree else 0)
            value = value if spec.centred else max(int(k == spec.degree), value)
            chosen.append(value)
            rest = rest - value * unit * x**k
        yield tuple(reversed(chosen))


def _pinned_start(spec: AnyPolynomial) -> tuple[int, ...]:
    """Return a rounding of the best polynomial with p(0) = 1 and p(1) = 2, which every spec accepts.

    It is ``1 + x + x * (1 - x) * r(x)``, for a degree so low that the free minimax polynomial misses the ends by more
    than exp(0) = 1 and monotony allow.

    Raises
    ------
    ValueError
        If ``spec`` is centred: there is none for it.
    """
    if spec.centred:
        raise ValueError(f"spec must have a polynomial within its limits, {spec.name!r} has none")
    real = np.zeros(spec.degree + 1)
    real[:2] = 1.0
    if spec.degree > 1:
        x = chebyshev_grid()[1:-1]
        bow = x * (1 - x)
        r, _ = minimax((_wanted(spec, x) - 1 - x) / bow, bow * 2.0**-x, x, spec.degree - 2)
        real[1:-1] += r
        real[2:] -= r
    integers = [1 << spec.core_bits]
    integers += [max(0, round(value * 2.0**bits)) for value, bits in zip(real[1:].tolist(), spec.sums[1:], strict=True)]
    last = np.array([(1 << spec.frac_bits) - 1])
    while int(_core(spec, tuple(integers), last)[0]) >= 2 << spec.core_bits:
        integers[1] -= 1
    return tuple(integers)


def _moves(count: int) -> list[tuple[tuple[int, int], ...]]:
    """Return every change of one or two of ``count`` coefficients by at most two units each."""
    singles: list[tuple[tuple[int, int], ...]] = [((k, step),) for k in range(count) for step in _STEPS]
    pairs: list[tuple[tuple[int, int], ...]] = [
        ((i, a), (j, b)) for i, j in combinations(range(count), 2) for a in _STEPS for b in _STEPS
    ]
    return singles + pairs


def _descend(
    objective: _Objective, start: tuple[int, ...], moves: list[tuple[tuple[int, int], ...]]
) -> tuple[int, ...]:
    """Take every improving move, in a fixed order, until a whole round brings none."""
    best = start
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
