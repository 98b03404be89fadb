"""Fits the server's factors to every second request of one recording, within the bounds of ``calibration.toml``.

What is minimised is the sum of squares of ``ln(ours / recorded)`` of each request's TPOT, and of its TTFT plus a
second: a second added keeps requests that hardly waited from counting more than those that did. Which request runs
when changes with the factors, so that the sum has steps and slopes lead astray: a simplex is moved instead (Nelder and
Mead), each factor measured in the width of its bounds, from the middle of the bounds. Nothing is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.calibration import factors
from sim.comparisons.vllm import simulate
from sim.serving.host import SERVER_FACTORS, ServerFactors

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sim.comparisons.vllm import Times, VllmRun
    from sim.traces import TraceRequest

    Vector = npt.NDArray[np.float64]

__all__ = ["fit_factors", "least", "residuals"]

_TTFT_OFFSET_S = 1.0
_SIZE = 0.2
_ROUNDS = 60
_ENOUGH = 1e-3


def residuals(ours: Times, recorded: Times) -> Vector:
    """Return the logarithms that the fit squares, of every second request in the order of arrival."""
    half = slice(0, None, 2)
    tpot = np.log(ours.tpot_s[half] / recorded.tpot_s[half])
    ttft = np.log((ours.ttft_s[half] + _TTFT_OFFSET_S) / (recorded.ttft_s[half] + _TTFT_OFFSET_S))
    return np.concatenate([tpot, ttft])


def least(function: Callable[[Vector], float], start: Vector, *, rounds: int) -> tuple[Vector, float]:
    """Return where in the unit cube a function is least, and its value there, by Nelder's and Mead's simplex.

    The worst corner is reflected at the mean of the others, twice as far where that is the best so far, half as far
    where it is still the worst; if that betters nothing, all corners move half way to the best. Corners outside the
    cube are put on its faces. It ends after ``rounds``, or when the simplex is smaller than a thousandth.
    """
    corners = np.clip(start + _SIZE * np.vstack([np.zeros(len(start)), np.eye(len(start))]), 0.0, 1.0)
    values = np.array([function(corner) for corner in corners])
    for _ in range(rounds):
        order = np.argsort(values, kind="stable")
        corners, values = corners[order], values[order]
        if np.ptp(corners, axis=0).max() < _ENOUGH:
            break
        centre = corners[:-1].mean(axis=0)
        away = centre - corners[-1]
        point, value = _tried(function, centre + away)
        if value < values[0]:
            further = _tried(function, centre + 2.0 * away)
            if further[1] < value:
                point, value = further
        elif value >= values[-2]:
            point, value = _tried(function, centre - 0.5 * away)
        if value < values[-1]:
            corners[-1], values[-1] = point, value
        else:
            corners = (corners + corners[0]) / 2
            values = np.array([values[0], *(function(corner) for corner in corners[1:])])
    best = int(values.argmin())
    return corners[best], float(values[best])


def _tried(function: Callable[[Vector], float], point: Vector) -> tuple[Vector, float]:
    """Return a point put into the unit cube, and the function's value there."""
    inside = np.clip(point, 0.0, 1.0)
    return inside, function(inside)


def fit_factors(
    entry: VllmRun, requests: list[TraceRequest], recorded: Times, *, say: Callable[[str], None]
) -> tuple[ServerFactors, float]:
    """Return the factors that fit best, and the root mean square of what is left.

    Parameters
    ----------
    entry : VllmRun
    requests : list of TraceRequest
    recorded : Times
        What the requests of the recording saw.
    say : callable
        Told what each try gave.
    """
    used = [factors()[name] for name in SERVER_FACTORS]
    low = np.array([factor.bounds[0] for factor in used])
    width = np.array([factor.bounds[1] for factor in used]) - low

    def of(point: Vector) -> ServerFactors:
        return ServerFactors(*(low + width * point).tolist())

    def rms(point: Vector) -> float:
        left = residuals(simulate(entry, requests, of(point)), recorded)
        found = float(np.sqrt(np.mean(left**2)))
        say(f"{of(point)}: rms {found:.5f}")
        return found

    point, found = least(rms, np.full(len(used), 0.5), rounds=_ROUNDS)
    return of(point), found
