"""Cycles of :class:`hw.units.index_score.IndexScore`.

Everything here equals the RTL to the cycle: the closed forms without stalls, the recurrence of :func:`predict` with any
stalls on any stream (``tests/hw/test_index_score.py``, ``tests/rtl/test_index_score.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hw.timing.handshake import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from hw.index_score_params import IndexScoreParams, ScoreWork
    from hw.timing.trace import StreamTrace

__all__ = ["held_scores", "load_cycles", "operation_cycles", "predict", "scan_cycles", "score_latency_cycles"]

_ROUNDED = 2  # from the sum of a beat to an exact dot product as fp32: the sum over beats, the rounding
_CHOSEN = 2  # the same of a 16-bit one: the sum over beats, the choice between the two kinds
_REST = 4  # term, sum over groups, scale, queue; the levels of the tree over heads are apart


def score_latency_cycles(params: IndexScoreParams, *, wide: bool) -> int:
    """Cycles from a key's last turn at the multipliers to its score on offer.

    ``stages + ceil(log2(head_lanes)) + 6``; the stages are ``ceil(log2(beat_bytes) / 2)`` of E4M3 and
    ``log2(beat_bytes)`` of 16-bit numbers.
    """
    inside = params.wide_stages + _CHOSEN if wide else params.exact_stages + _ROUNDED
    return inside + params.head_levels + _REST


def held_scores(params: IndexScoreParams) -> int:
    """Scores under way or waiting: as many as one key a cycle needs where nothing stalls."""
    return max(score_latency_cycles(params, wide=wide) for wide in (False, True)) + 2


def load_cycles(params: IndexScoreParams, work: ScoreWork) -> int:
    """Cycles in which the query comes: ``heads * vector_beats``."""
    return work.heads * work.vector_beats(params)


def scan_cycles(params: IndexScoreParams, work: ScoreWork) -> int:
    """Cycles that the keys take: one a beat of scales, and for each beat of a key one a group of heads.

    A beat of two keys takes as long as two.
    """
    return work.scale_beats(params) + work.keys * work.key_beats(params) * work.groups(params)


def operation_cycles(params: IndexScoreParams, work: ScoreWork) -> int:
    """Cycles from a command to the next one, nothing stalled.

    ``load + scan + latency + 3``, the last score leaving two cycles before; ``load + 1`` without keys.
    """
    if not work.keys:
        return load_cycles(params, work) + 1
    latency = score_latency_cycles(params, wide=work.mode.wide)
    return load_cycles(params, work) + scan_cycles(params, work) + latency + 3


def predict(
    params: IndexScoreParams, work: Sequence[ScoreWork], traces: Mapping[str, StreamTrace] | None = None
) -> dict[str, npt.NDArray[np.int64]]:
    """Predict every transfer of a run from what its environment did.

    Parameters
    ----------
    params : IndexScoreParams
    work : sequence of ScoreWork
        The operations.
    traces : mapping of str to StreamTrace, optional
        Recorded handshakes by stream; of inputs the first offers are used, of ``scores`` ``ready``. A stream that is
        not named is never idle and never stalls.

    Returns
    -------
    dict of str to ndarray of int64
        Cycles of the transfers on ``command``, ``query``, ``keys`` and ``scores``, from the end of reset.

    Raises
    ------
    ValueError
        If a trace ends before the operations do.

    Notes
    -----
    With G groups, and H = :func:`held_scores`::

        query   = max(offered, the transfer before + 1)
        scales  = max(offered, free)                         free = scales + 1
        beat    = max(offered, free)                         free = beat + G
        score n = last beat + G + latency on offer, or the cycle after score n - 1 left

    where the second key of a beat is taken from within, as soon as it may be.

    and the first beat of the key that ends block n not before the cycle after score n - H left. The next command is
    taken two cycles after the last score, or the cycle after the query where there are no keys.
    """
    traces = traces or {}
    commands, query, keys = (Source(traces.get(name)) for name in ("command", "query", "keys"))
    out = traces.get("scores")
    scores: list[int] = []
    held, idle = held_scores(params), 0
    for operation in work:
        free = commands.take(idle) + 1
        for _ in range(load_cycles(params, operation)):
            free = query.take(free) + 1
        idle = free
        groups, beats, together = operation.groups(params), operation.key_beats(params), operation.beat_keys(params)
        latency = score_latency_cycles(params, wide=operation.mode.wide)
        before = len(scores)
        for key in range(operation.keys):
            if operation.mode.scaled and key % params.spec.scales_per_beat == 0:
                free = keys.take(free) + 1
            ends = (key + 1) % operation.mode.block_keys == 0 or key == operation.keys - 1
            # Of an operation before, every score has left.
            if ends and len(scores) - before >= held:
                free = max(free, scores[-held] + 1)
            for _ in range(beats):
                free = (free if key % together else keys.take(free)) + groups
            if ends:
                offered = max(free + latency, scores[-1] + 1 if scores else 0)
                scores.append(offered if out is None else out.next_ready(offered))
                idle = scores[-1] + 2
    return {
        "command": commands.transfers,
        "query": query.transfers,
        "keys": keys.transfers,
        "scores": np.array(scores, dtype=np.int64),
    }
