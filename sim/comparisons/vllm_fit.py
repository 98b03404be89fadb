"""Fits the server's factors to every second request of one recording, within the bounds of ``calibration.toml``.

What is minimised is the sum of squares of ``ln(ours / recorded)`` of each request's TPOT, and of its TTFT plus a
second: a second added keeps requests that hardly waited from counting more than those that did. Gauss-Newton steps,
each factor measured in the width of its bounds, with derivatives by differences of 2 % of it; a step that betters
nothing is halved, and a factor that would leave its bounds stays at the bound while the others are solved for again.
Nothing is drawn.
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

__all__ = ["bounded_step", "fit_factors", "residuals"]

_TTFT_OFFSET_S = 1.0
_DIFFERENCE = 0.02
_STEPS = 8
_HALVINGS = 4
_ENOUGH = 1e-3


def residuals(ours: Times, recorded: Times) -> Vector:
    """Return the logarithms that the fit squares, of every second request in the order of arrival."""
    half = slice(0, None, 2)
    tpot = np.log(ours.tpot_s[half] / recorded.tpot_s[half])
    ttft = np.log((ours.ttft_s[half] + _TTFT_OFFSET_S) / (recorded.ttft_s[half] + _TTFT_OFFSET_S))
    return np.concatenate([tpot, ttft])


def bounded_step(slopes: Vector, values: Vector, point: Vector) -> Vector:
    """Return where ``values + slopes (x - point)`` is least in squares, ``x`` from 0 to 1.

    Factors that leave their bounds are put at them, one round after the other, and the rest solved for again.

    Parameters
    ----------
    slopes : ndarray, shape (residuals, factors)
    values : ndarray, shape (residuals,)
        Residuals at ``point``.
    point : ndarray, shape (factors,)
    """
    found = point.copy()
    free = np.ones(len(point), np.bool_)
    while free.any():
        held = values + slopes[:, ~free] @ (found - point)[~free]
        found[free] = point[free] - np.linalg.lstsq(slopes[:, free], held, rcond=None)[0]
        outside = free & ((found < 0.0) | (found > 1.0))
        if not outside.any():
            break
        found = np.clip(found, 0.0, 1.0)
        free &= ~outside
    return found


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
        Told what each step reached.
    """
    used = [factors()[name] for name in SERVER_FACTORS]
    low = np.array([factor.bounds[0] for factor in used])
    width = np.array([factor.bounds[1] for factor in used]) - low

    def values(point: Vector) -> Vector:
        return residuals(simulate(entry, requests, ServerFactors(*(low + width * point).tolist())), recorded)

    point = (np.array([factor.default for factor in used]) - low) / width
    now = values(point)
    for number in range(_STEPS):
        # A factor at its upper bound is varied downwards.
        signs = np.where(point + _DIFFERENCE > 1.0, -_DIFFERENCE, _DIFFERENCE)
        slopes = np.stack(
            [(values(point + np.eye(len(point))[i] * sign) - now) / sign for i, sign in enumerate(signs)], 1
        )
        wanted = bounded_step(slopes, now, point)
        for halving in range(_HALVINGS):
            candidate = point + (wanted - point) / 2**halving
            then = values(candidate)
            if then @ then < now @ now:
                break
        else:
            break
        gain = 1.0 - (then @ then) / (now @ now)
        point, now = candidate, then
        say(f"step {number + 1}: rms {_rms(now):.5f}")
        if gain < _ENOUGH:
            break
    return ServerFactors(*(low + width * point).tolist()), _rms(now)


def _rms(values: Vector) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(values**2)))
