"""Cycles of an operation of scores in a channel, without refresh, in closed form; of the memory clock.

Equal to the RTL (``tests/rtl/test_channel_scores.py``). Refresh: :func:`hw.timing.channel.with_refresh`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.memory.kv_rows import key_rows
from hw.timing.channel import row_cycles, streamed_row_cycles
from hw.timing.channel_runs import WALK_CYCLES
from hw.timing.score_queue import queued_cycles

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["QUEUE_CYCLES", "ScoreRunCycles", "score_run_cycles", "score_tail_cycles"]

QUEUE_CYCLES = 2
"""Cycles of a score through an empty queue."""


@dataclass(frozen=True, kw_only=True)
class ScoreRunCycles:
    """An operation of scores from the start on.

    Parameters
    ----------
    columns, rows : int
        Columns of all units that are read, and rows that are opened for them.
    first_column, last_column, last_score : int
        Cycles of the first and the last column read, and of the last score out of a bank group. By the phase of the
        logic's clock a score is up to a cycle of the logic, less one of the memory, earlier.
    """

    columns: int
    rows: int
    first_column: int
    last_column: int
    last_score: int


def score_tail_cycles(params: ChannelParams, queries: int = 1) -> int:
    """Return the cycles from the last column read to the last score out of a group whose scores are taken at once.

    The first of the cycles that :func:`hw.timing.score_queue.queued_cycles` has of the logic is the one that is waited
    for, and counts from the next of the memory's on.
    """
    return queued_cycles(params, queries) - 1 + QUEUE_CYCLES


def score_run_cycles(params: ChannelParams, head_dim: int, part_tokens: int, *, queries: int = 1) -> ScoreRunCycles:
    """Return the cycles of one operation over the first ``part_tokens`` positions of every part.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    head_dim : int
        Elements of a key, from 1 on; filled with zeros to whole columns in every bank that holds a slice.
    part_tokens : int
        Tokens of the longest part, 1 or more.
    queries : int
        Queries that use every column.

    Raises
    ------
    TypeError, ValueError
        If a number is out of range.

    Notes
    -----
    With b columns a token, t tokens a row, c the distance of two columns and R the row time for as many columns::

        first = n_ccdl * (command_columns + queries * b * slices) + n_rcdrd - 1
        last  = first + (rows - 1) * R(t * b) + (columns of the last row - 1) * c
        last  = max(last, first + ceil((columns - cap_burst_columns) * column_period))
    """
    require_int("part_tokens", part_tokens, 1)
    require_int("queries", queries, 1, params.processing.queries)
    rows = key_rows(params, head_dim, part_tokens)
    bursts = params.command_columns + queries * rows.beats * params.processing.slices
    first = params.timing.n_ccdl * bursts + params.timing.n_rcdrd - 1 + WALK_CYCLES[params.mapping]
    columns = part_tokens * rows.beats
    row = row_cycles if params.turn_banks == 1 else streamed_row_cycles
    busy = (rows.tiles - 1) * row(params, rows.tile_columns, queries=queries)
    busy += (rows.last_columns - 1) * params.column_cycles(queries)
    if params.column_period is not None:
        busy = max(busy, math.ceil((columns - params.cap_burst_columns) * params.column_period))
    last = first + busy
    return ScoreRunCycles(
        columns=columns,
        rows=rows.tiles,
        first_column=first,
        last_column=last,
        last_score=last + score_tail_cycles(params, queries),
    )
