"""Cycles of a channel that works off whole rows without refresh, in closed form; of the memory clock.

The tables of :mod:`hw.tables` hold measured runs of any sizes. These formulas say where their numbers come from, and
equal every one of their points at whole rows (``tests/hw/test_device_formulas.py``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.device_params import Mapping
from hw.memory.kv_rows import kv_rows
from hw.timing.channel import streamed_row_cycles
from hw.timing.tables import ChannelCycles

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["WALK_CYCLES", "interval_cycles", "lead_cycles", "query_columns", "run_cycles", "tail_cycles"]

_STAGE_CYCLES = {Mapping.SPLIT: 2, Mapping.WHOLE: 4, Mapping.GROUP: 1}
"""Cycles of the logic between the last body beat of a processing unit and that of the group: join, reduction unit; and
the column path where there is neither."""

WALK_CYCLES = {Mapping.SPLIT: 0, Mapping.WHOLE: 0, Mapping.GROUP: 2}
"""Cycles until a walk names its first row, beyond those of one over banks in lock step: it fills a pair of rows."""


def query_columns(params: ChannelParams, head_dim: int) -> int:
    """Return the bursts of a query: a column for each beat of every slice."""
    return kv_rows(params, head_dim, 0).beats * params.processing.slices


def lead_cycles(params: ChannelParams, head_dim: int) -> int:
    """Return the cycle of the first column read of keys: bursts of command and query, then the row's activation."""
    bursts = params.command_columns + query_columns(params, head_dim)
    return params.timing.n_ccdl * bursts + params.timing.n_rcdrd - 1 + WALK_CYCLES[params.mapping]


def tail_cycles(params: ChannelParams, head_dim: int) -> int:
    """Return the cycles from the last column read to the last beat of the group's state.

    The column is n_cl cycles on its way; the unit's tree, last adder and output take ``log2(lanes) + 3`` cycles of the
    logic, join or reduction a few more, then the states of the group's units follow each other, a beat a cycle. By the
    phase of the logic's clock it is a cycle less.
    """
    unit = params.processing
    logic = unit.lanes.bit_length() - 1 + 3 + _STAGE_CYCLES[params.mapping]
    logic += params.units_per_group * kv_rows(params, head_dim, 0).beats
    return params.timing.n_cl + 1 + math.ceil(logic / params.logic_ratio)


def run_cycles(params: ChannelParams, head_dim: int, rows: int, operations: int = 1) -> ChannelCycles:
    """Return the cycles of alike operations over whole rows.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    head_dim : int
        Elements of a key.
    rows : int
        Rows of keys, and as many of values, of each operation; at least 2, for the softmax of a single one is waited
        for.
    operations : int
        Operations that follow one another.

    Raises
    ------
    TypeError, ValueError
        If a number is out of range.
    """
    require_int("rows", rows, 2)
    require_int("operations", operations, 1)
    row = kv_rows(params, head_dim, 0)
    columns = row.tile_tokens * row.beats
    all_rows = 2 * rows * operations
    busy = (all_rows - 1) * streamed_row_cycles(params, columns) + (columns - 1) * params.timing.n_ccdab
    if params.column_period is not None:
        busy = max(busy, math.ceil((all_rows * columns - params.cap_burst_columns) * params.column_period))
    first = lead_cycles(params, head_dim)
    last = first + busy
    return ChannelCycles(first_column=first, last_column=last, last_state=last + tail_cycles(params, head_dim))


def interval_cycles(params: ChannelParams, head_dim: int, rows: int) -> int:
    """Return the cycles from an operation to the next alike one, sustained; parameters as :func:`run_cycles`."""
    require_int("rows", rows, 2)
    row = kv_rows(params, head_dim, 0)
    columns = row.tile_tokens * row.beats
    capped = math.ceil(2 * rows * columns * (params.column_period or 0))
    return max(2 * rows * streamed_row_cycles(params, columns), capped)
