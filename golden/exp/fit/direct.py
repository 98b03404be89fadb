"""Coefficients for a :class:`golden.exp.direct.DirectSpec`: the Taylor series, and a fit with word lengths in place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from golden.exp.direct import DirectSpec
from golden.exp.fit.polynomial import minimax
from golden.exp.oracle import exact_exp, rounded_exp
from golden.formats import FP16

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from golden.formats import FloatFormat

__all__ = ["DirectFit", "fit", "taylor"]

_GRID = 2048
_STEPS = (-4, -1, 1, 4)


@dataclass(frozen=True, kw_only=True)
class DirectFit:
    """Result of :func:`fit`.

    Parameters
    ----------
    coefficients : tuple of int
        As in :class:`golden.exp.direct.DirectSpec`.
    minimax_error : float
        Largest relative error over the interval of the best polynomial with p(0) = 1, real coefficients and exact
        arithmetic: the lower bound.
    error : float
        Largest relative error of the rounded results over the operands of the interval.
    misrounded : int
        Of these, those whose result is not the correctly rounded one.
    """

    coefficients: tuple[int, ...]
    minimax_error: float
    error: float
    misrounded: int


def taylor(degree: int, *, interval_bits: int, core_bits: int) -> tuple[int, ...]:
    """Return the Taylor series of exp(x) about 0, each coefficient rounded.

    Parameters
    ----------
    degree : int
        Degree.
    interval_bits, core_bits : int
        As in :class:`golden.exp.direct.DirectSpec`.
    """
    width = -(1 << interval_bits)
    return tuple(round(width**k * (1 << core_bits) / math.factorial(k)) for k in range(degree + 1))


def fit(*, degree: int, interval_bits: int, frac_bits: int, core_bits: int, fmt: FloatFormat = FP16) -> DirectFit:
    """Fit coefficients to a degree, an interval, word lengths and a format.

    The real minimax polynomial in relative error with p(0) = 1; its coefficients rounded from the highest down, the
    others refitted after each; then every step of one or two coefficients that lowers the error over the operands.
    Where the spec refuses the first polynomial, as it falls near the far end, the interval is stretched for the fit,
    by as many times 2 % as it takes to push that out of the interval.

    Parameters
    ----------
    degree : int
        Degree, from 1 to 8.
    interval_bits, frac_bits, core_bits, fmt
        As in :class:`golden.exp.direct.DirectSpec`.

    Returns
    -------
    DirectFit

    Raises
    ------
    ValueError
        If the spec refuses the start at every stretch up to 1.4, with its reason for the last: most likely its words
        are too short.
    """
    make = partial(
        DirectSpec, name="fit", interval_bits=interval_bits, frac_bits=frac_bits, core_bits=core_bits, fmt=fmt
    )
    start, bound = _start(degree, interval_bits, core_bits, 1.0)
    best = _accepted(make, [start, *(_start(degree, interval_bits, core_bits, s / 100)[0] for s in range(102, 142, 2))])
    codes = fmt.sign_mask | np.arange(best.beyond_code)
    exact, expected = exact_exp(fmt)[codes], rounded_exp(fmt)[codes]

    def cost(candidate: DirectSpec) -> tuple[float, int]:
        results = candidate.evaluate_codes(codes)
        error = float(np.abs(fmt.from_codes(results).astype(np.float64) / exact - 1).max())
        return error, int(np.count_nonzero(results != expected))

    reached = cost(best)
    free = range(1, degree + 1)
    moves = [((k, step),) for k in free for step in _STEPS]
    moves += [((i, a), (j, b)) for i in free for j in range(1, i) for a in _STEPS for b in _STEPS]
    improved = True
    while improved:
        improved = False
        for move in moves:
            trial = list(best.coefficients)
            for k, step in move:
                trial[k] += step
            try:
                candidate = make(coefficients=tuple(trial))
            except ValueError:
                continue
            if (found := cost(candidate)) < reached:
                best, reached, improved = candidate, found, True
    return DirectFit(coefficients=best.coefficients, minimax_error=bound, error=reached[0], misrounded=reached[1])


def _accepted(make: Callable[..., DirectSpec], starts: Sequence[tuple[int, ...]]) -> DirectSpec:
    """Return the first of ``starts`` as a spec that accepts it, or raise what it says to the last."""
    for coefficients in starts[:-1]:
        try:
            return make(coefficients=coefficients)
        except ValueError:
            continue
    return make(coefficients=starts[-1])


def _start(degree: int, interval_bits: int, core_bits: int, stretch: float) -> tuple[tuple[int, ...], float]:
    """Return a rounding of the minimax polynomial with p(0) = 1 for u up to ``stretch``, and the error of that one."""
    one, width = 1 << core_bits, 1 << interval_bits
    # p(u) = 1 + u r(u), so r is fitted, with u times the weight; at u = 0 nothing is left to fit.
    u = (1 - np.cos(np.pi * np.arange(1, _GRID + 1) / _GRID)) / 2 * stretch
    rest, weight = np.expm1(-width * u) / u, u * np.exp(width * u)
    bound = np.inf
    chosen: list[int] = []
    for k in range(degree - 1, -1, -1):
        coefficients, error = minimax(rest, weight, u, k)
        bound = error if k == degree - 1 else bound
        chosen.append(round(float(coefficients[k]) * one))
        rest = rest - chosen[-1] / one * u**k
    return (one, *reversed(chosen)), bound
