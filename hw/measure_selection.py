"""Measures what attention to selected tokens costs a channel whose banks are read in lock step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from hw.channel_run import run_channel
from hw.devices.commands import RowKind
from hw.measure import MEASURED_ROWS, RunSizes, column_read_cycles, random_operations
from hw.native_arithmetic import NATIVE

if TYPE_CHECKING:
    from golden.selection import Selected
    from hw.device_params import ChannelParams

__all__ = ["SelectionRun", "measure_selection"]


@dataclass(frozen=True, kw_only=True)
class SelectionRun:
    """One operation over selected tokens, without refresh.

    Parameters
    ----------
    columns : int
        Columns of all banks that were read.
    openings : int
        Rows that were opened for them.
    last_column, last_state : int
        Cycles from the start to the last column read, and to the last beat of the first group's state.
    """

    columns: int
    openings: int
    last_column: int
    last_state: int


def measure_selection(
    params: ChannelParams, selected: Selected, *, part_tokens: int, head_dim: int = 128, seed: int = 0
) -> SelectionRun:
    """Run one operation on one bank group of a Verilated channel.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    selected : Selected
        Positions, and what each part of the channel wants of them.
    part_tokens : int
        Tokens that every part has.
    head_dim : int
        Elements of a key.
    seed : int
        Seed of the random keys, values and query, which change no cycle.

    Raises
    ------
    ValueError
        If the selection has no position, or does not fit the parts.
    hw.cosim.CosimError
        If a rule of the memory was broken, or units lost something.

    Notes
    -----
    Parts are alike, so they are numbered anew such that the one that wants the last position is simulated: no other
    makes the channel wait longer.
    """
    require_int("part_tokens", part_tokens, 1)
    if not selected.wanted.any():
        raise ValueError("selected must hold a token that some part wants, it holds none")
    base = random_operations(params, RunSizes(head_dim, part_tokens, 1), seed=seed)[0]
    ends = (selected.wanted * np.arange(1, len(selected.positions) + 1)).max(axis=1, initial=0)
    wanted = np.roll(selected.wanted, -int(np.argmax(ends)), axis=0)
    run = run_channel(
        params, [replace(base, positions=selected.positions, wanted=wanted)], rows=MEASURED_ROWS, platform=NATIVE
    )
    reads = column_read_cycles(run)
    return SelectionRun(
        columns=len(reads),
        openings=sum(bus == "row" and RowKind(fields["kind"]) is RowKind.ACT for _, bus, fields in run.commands()),
        last_column=int(reads[-1]),
        last_state=int(run.bodies[0].cycles[-1]),
    )
