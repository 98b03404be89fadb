"""Cycles of :class:`hw.units.top_k.TopK`, its shards and their merge.

Everything here equals the RTL to the cycle: the closed form of :func:`select_cycles` without stalls, the recurrence of
:func:`predict` with any stalls on any stream (``tests/hw/test_top_k.py``, ``tests/rtl/test_top_k.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from hw.timing.handshake import Sink, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from hw.timing.trace import StreamTrace
    from hw.top_k_params import TopKParams, TopKShardParams

__all__ = ["ShardWork", "counts_latency_cycles", "digit_cycles", "merge_interval_cycles", "merge_latency_cycles"]
__all__ += ["predict", "select_cycles"]

_STORED = 3  # from a score to its digit in a bin: digits, ones, bin
_SWEPT = 4  # one more: the store's output
_SHARED = 3  # from the transfer of the equal ones to the first read of shard 0: equal ones, share, its transfer
_SEEN = 2  # from the read of a row to the cycle in which it is held: the store's output, the row


@dataclass(frozen=True)
class ShardWork:
    """What an operation asks of one shard.

    Parameters
    ----------
    count : int
        Scores.
    taken : tuple of bool
        Whether ids are taken of each row that is swept: the rows up to that of the highest id, one row if there is no
        score.
    """

    count: int
    taken: tuple[bool, ...]

    @classmethod
    def of(cls, params: TopKShardParams, ids: npt.NDArray[np.integer], selected: npt.NDArray[np.integer]) -> ShardWork:
        """Return the work of scores with these ids, of which ``selected`` are taken; ids are those in the shard."""
        rows = 1 + (int(ids.max()) // params.lanes if len(ids) else 0)
        return cls(len(ids), tuple(np.isin(np.arange(rows), selected // params.lanes).tolist()))

    @property
    def rows(self) -> int:
        """Rows a sweep reads."""
        return len(self.taken)


def counts_latency_cycles(count: int) -> int:
    """Cycles from a scan to the first number of a shard: ``count + 3``, and 2 where no score comes."""
    require_int("count", count, 0)
    return count + _STORED if count else 2


def digit_cycles(params: TopKParams, rows: int) -> int:
    """Cycles from the first numbers of a digit to those of the next: ``rows + 2**digit_bits + levels + 4``.

    Parameters
    ----------
    params : TopKParams
    rows : int
        Most rows that a shard sweeps.
    """
    require_int("rows", rows, 1, params.shard.rows)
    return rows + params.shard.bins + params.levels + _SWEPT


def merge_latency_cycles(params: TopKParams) -> int:
    """Cycles from a command to the merge's first digit, numbers offered at once: ``2**digit_bits + levels + 1``."""
    return 1 + params.shard.bins + params.levels


def merge_interval_cycles(params: TopKParams) -> int:
    """Cycles from command to command of a merge whose shards answer at once.

    ``digits * (2**digit_bits + levels + 1)``, then the equal ones and their shares: ``shards + 3``.
    """
    return params.shard.digits * (params.shard.bins + params.levels + 1) + params.shards + 3


def select_cycles(params: TopKParams, rows: int, shard: int, own_rows: int) -> int:
    """Cycles from the transfer of the last score to that of the end at a shard, nothing stalled.

    Which scores are taken, and where they lie, makes no difference.

    Parameters
    ----------
    params : TopKParams
    rows : int
        Most rows that any shard sweeps.
    shard : int
        Number of the shard.
    own_rows : int
        Rows that this one sweeps.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or out of range.
    """
    require_int("shard", shard, 0, params.shards - 1)
    require_int("own_rows", own_rows, 1, rows)
    last_digit = _STORED + (params.shard.digits - 1) * digit_cycles(params, rows) + params.shard.bins + params.levels
    return last_digit + 1 + _SHARED + shard + _SEEN + own_rows + 1


def predict(
    params: TopKParams, work: Sequence[Sequence[ShardWork]], traces: Mapping[str, StreamTrace] | None = None
) -> dict[str, npt.NDArray[np.int64]]:
    """Predict every transfer of a run from what its environment did.

    Parameters
    ----------
    params : TopKParams
    work : sequence of sequence of ShardWork
        By operation and shard.
    traces : mapping of str to StreamTrace, optional
        Recorded handshakes by stream, named as in the Verilog; of inputs the first offers are used, of outputs
        ``ready``. A stream that is not named is never idle and never stalls.

    Returns
    -------
    dict of str to ndarray of int64
        Cycles of the transfers on ``command``, and on ``scan__s``, ``scores__s`` and ``selected__s`` of each shard s;
        counted from the end of reset.

    Raises
    ------
    ValueError
        If a trace ends before the operations do.

    Notes
    -----
    For each operation, with B, L, R as in :class:`hw.units.top_k.TopK`::

        sent[s]  = last score + 3, or scan + 2 without one
        first    = max(command + 1, max over s of sent[s])     first numbers of the first digit
        chosen   = first + B + L
        first    = chosen + R + 4                              of each further digit
        read[s]  = last chosen + 4 + s                         first row of the last sweep
        held     = read[s] + 2 of the first row, then the cycle after that of the row before
        row      = held, but if it has ids, not before the output register is free
        end      = as a row with ids, in the cycle after the last row's
    """
    traces = traces or {}
    shard = params.shard
    streams = range(params.shards)
    commands = Source(traces.get("command"))
    scans = [Source(traces.get(f"scan__{s}")) for s in streams]
    scores = [Source(traces.get(f"scores__{s}")) for s in streams]
    selected = [Sink(traces.get(f"selected__{s}")) for s in streams]
    merge_idle, idle = 0, [shard.rows] * params.shards
    for operation in work:
        first = commands.take(merge_idle) + 1
        for s, part in enumerate(operation):
            cycle = scans[s].take(idle[s])
            sent = cycle + counts_latency_cycles(0)
            for _ in range(part.count):
                cycle = scores[s].take(cycle + 1)
                sent = cycle + _STORED
            first = max(first, sent)
        first += (shard.digits - 1) * digit_cycles(params, max(part.rows for part in operation))
        equal = first + shard.bins + params.levels + 1
        merge_idle = equal + 2 + params.shards
        for s, part in enumerate(operation):
            held = equal + _SHARED + s + _SEEN
            for taken in part.taken:
                held = (selected[s].put(held) if taken else held) + 1
            idle[s] = selected[s].put(held) + 1
    named = {"command": commands.transfers}
    for s in streams:
        named |= {f"scan__{s}": scans[s].transfers, f"scores__{s}": scores[s].transfers}
        named[f"selected__{s}"] = selected[s].transfers
    return named
