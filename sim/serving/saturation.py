"""Whether a server keeps up with what arrives.

A run is *saturated* when the queue grows to the end of the arrivals: more than 5 % of the requests that have come wait
at the last arrival, and in the last quarter of the arrivals' time more wait, on average over time, than in the quarter
before. What waits at the end for want of service is the share by which arrivals exceed it. Sessions that wait for their
answers can't overrun a server, and a trace without times of arrival says nothing: neither is ever saturated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from sim.serving.engine import RunLog

__all__ = ["WAITING_SHARE", "is_saturated", "mean_queue"]

WAITING_SHARE = 0.05
"""Share of the requests that may wait at the last arrival."""


def mean_queue(times_s: npt.NDArray[np.float64], waiting: npt.NDArray[np.int64], begin_s: float, end_s: float) -> float:
    """Return how many requests wait on average from ``begin_s`` to ``end_s``.

    Parameters
    ----------
    times_s, waiting : ndarray
        Moments, rising, and how many wait from each of them to the next; before the first nobody does.
    begin_s, end_s : float
        Span, above 0.
    """
    edges = np.clip(np.append(times_s, np.inf), begin_s, end_s)
    return float(np.dot(np.diff(edges), waiting)) / (end_s - begin_s)


def is_saturated(log: RunLog, arrivals_s: npt.NDArray[np.float64]) -> bool:
    """Return whether the queue grows to the end.

    Parameters
    ----------
    log : RunLog
    arrivals_s : ndarray of float64
        When requests came, in any order.
    """
    if not len(arrivals_s) or not log.steps:
        return False
    first_s, last_s = float(arrivals_s.min()), float(arrivals_s.max())
    quarter_s = (last_s - first_s) / 4
    if not quarter_s:
        return False
    times_s, waiting = np.array(log.queue_s), np.array(log.queue)
    # The step that runs at the last arrival takes from the queue what had come when it began.
    at_end = waiting[min(int(np.searchsorted(times_s, last_s)), len(waiting) - 1)]
    if at_end <= WAITING_SHARE * len(arrivals_s):
        return False
    last = mean_queue(times_s, waiting, last_s - quarter_s, last_s)
    return last > mean_queue(times_s, waiting, last_s - 2 * quarter_s, last_s - quarter_s)
