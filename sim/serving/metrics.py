"""What users of a server see.

``ttft``
    arrival to first token, queueing included;
``tbt``
    every gap between consecutive tokens of a request, all requests pooled, gaps of preemptions included;
``tpot``
    ``(last - first) / (n - 1)`` of each request of n > 1 tokens;
``queue``
    arrival to the step in which a request first runs;
``e2e``
    arrival to last token.

Percentiles interpolate linearly between order statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sim.serving.requests import RequestStates

__all__ = ["PERCENTILES", "latencies_s", "percentiles", "weighted_percentile"]

PERCENTILES = (50, 90, 99)


def latencies_s(states: RequestStates, ids: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float64]]:
    """Return each latency of ``ids``, which must be answered, by its name."""
    arrival, first, last = states.arrival_s[ids], states.first_s[ids], states.last_s[ids]
    many = states.output_tokens[ids] > 1
    return {
        "ttft": first - arrival,
        "tpot": (last - first)[many] / (states.output_tokens[ids][many] - 1),
        "queue": states.admitted_s[ids] - arrival,
        "e2e": last - arrival,
    }


def weighted_percentile(
    values: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], percent: Sequence[float]
) -> list[float]:
    """Return percentiles of ``values``, each met ``counts`` times, as if every one were written out.

    The percentile p of n sorted values is that of rank ``(n - 1) p / 100``, interpolated linearly.
    """
    order = np.argsort(values, kind="stable")
    ordered, ends = values[order], np.cumsum(counts[order])
    ranks = (int(ends[-1]) - 1) * np.asarray(percent, dtype=np.float64) / 100
    low = np.floor(ranks).astype(np.int64)
    below = ordered[np.searchsorted(ends, low, side="right")]
    above = ordered[np.searchsorted(ends, np.minimum(low + 1, int(ends[-1]) - 1), side="right")]
    return (below + (above - below) * (ranks - low)).tolist()


def percentiles(values: npt.NDArray[np.float64], counts: npt.NDArray[np.int64] | None = None) -> dict[str, Any] | None:
    """Return p50, p90 and p99 in milliseconds of values in seconds; None where there are none."""
    if not len(values):
        return None
    counts = np.ones(len(values), np.int64) if counts is None else counts
    found = weighted_percentile(values, counts, PERCENTILES)
    return {f"p{percent}": 1e3 * value for percent, value in zip(PERCENTILES, found, strict=True)}
