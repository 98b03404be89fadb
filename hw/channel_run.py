"""Runs operations on a Verilated channel: its sequencer, some of its bank groups, and a model of their banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hw.channel_load import load_items
from hw.channel_operation import ChannelOperation, place_operations
from hw.channel_streams import operation_streams
from hw.cosim import CosimError, StreamRecord, run_streams
from hw.device_params import ChannelBenchParams
from hw.devices.cells import with_cells
from hw.devices.channel_bench import BENCH_TOP, bench_modules
from hw.devices.commands import ColumnKind, column_command_layout, row_command_layout
from hw.devices.layouts import score_layout
from hw.layouts import head_layout
from hw.native_arithmetic import with_native
from hw.payloads import unpack, unpack_state
from hw.timing.operation import OperationKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from golden.numerics import Numerics
    from golden.partial import PartialState
    from hw.device_params import ChannelParams
    from hw.memory.kv_rows import KvRows

__all__ = ["ChannelOperation", "ChannelRun", "TokenScore", "bench_verilog", "run_channel"]


class TokenScore(NamedTuple):
    """Score of one token, an fp32 code: its query's id, its position in the walk and its part in the bank group."""

    op_id: int
    position: int
    part: int
    score: int


@dataclass(frozen=True)
class ChannelRun:
    """What a channel did; cycles are those of the memory clock from the one that follows the start.

    Parameters
    ----------
    rows : list of KvRows
        Walk of each operation.
    queries : list of int
        Queries of each operation: so many states it gives, one after another.
    kinds : list of OperationKind
        What each operation is; those of scores give no state.
    row_commands, column_commands : StreamRecord
        Commands of the two buses and the cycles in which they were issued.
    heads, bodies : list of StreamRecord
        States of each simulated group.
    scores : list of StreamRecord
        Scores of each simulated group, and the cycles in which it gave them.
    simulated_cycles : int
        Cycles that the model ran, loading of the cells included.
    first_cycle : int
        Cycle of the simulation in which cycle 0 of the others falls; the clock enable of the logic counts from reset.
    wall_s : float
        Seconds that the model ran, of the machine's time.
    """

    params: ChannelParams
    rows: list[KvRows]
    queries: list[int]
    kinds: list[OperationKind]
    row_commands: StreamRecord
    column_commands: StreamRecord
    heads: list[StreamRecord]
    bodies: list[StreamRecord]
    scores: list[StreamRecord]
    simulated_cycles: int
    first_cycle: int
    wall_s: float

    def commands(self) -> list[tuple[int, str, dict[str, Any]]]:
        """Return all commands in the order of cycles: cycle, bus (``row`` or ``column``) and fields."""
        found = [
            (int(cycle), bus, unpack(layout, payload))
            for bus, layout, record in (
                ("row", row_command_layout(self.params.organisation), self.row_commands),
                ("column", column_command_layout(self.params.organisation), self.column_commands),
            )
            for cycle, payload in zip(record.cycles, record.payloads, strict=True)
        ]
        return sorted(found, key=lambda command: command[:2])

    @property
    def read_cycles(self) -> list[int]:
        """Cycles in which a column was read into every unit."""
        layout = column_command_layout(self.params.organisation)
        record = self.column_commands
        return [
            int(cycle)
            for cycle, payload in zip(record.cycles, record.payloads, strict=True)
            if unpack(layout, payload)["kind"] == ColumnKind.MAC.value
        ]

    def states(self, group: int, numerics: Numerics) -> Iterator[PartialState]:
        """Yield the state of each query of each operation of attention that a simulated group gave."""
        state = self.params.reduction
        bodies = iter(self.bodies[group].payloads)
        walks = [
            rows
            for rows, queries, kind in zip(self.rows, self.queries, self.kinds, strict=True)
            if kind is OperationKind.ATTENTION
            for _ in range(queries)
        ]
        for rows, head in zip(walks, self.heads[group].payloads, strict=True):
            empty = unpack(head_layout(state), head)["empty"]
            beats = 0 if empty else rows.beats * self.params.processing.slices
            yield unpack_state(state, head, [next(bodies) for _ in range(beats)], numerics)

    def token_scores(self, group: int) -> list[TokenScore]:
        """Return the scores that a simulated group gave, in the order in which they came, part by part of each item."""
        layout = score_layout(self.params)
        return [
            TokenScore(item["op_id"], item["position"], part, int(item["scores"][part]))
            for item in (unpack(layout, payload) for payload in self.scores[group].payloads)
            for part in range(self.params.parts_per_group)
            if item["parts"] >> part & 1
        ]


def bench_verilog(params: ChannelParams, *, groups: int, rows: int, platform: object = None) -> tuple[str, str]:
    """Return the Verilog of a channel with its memory, and the name of its top module.

    Parameters
    ----------
    params, groups, rows
        See :func:`run_channel`.
    platform : object
        None for the gates as they are synthesised, :data:`hw.native_arithmetic.NATIVE` for long runs.
    """
    bench = ChannelBenchParams(channel=params, groups=groups, rows=rows)
    text = "".join(module.text(platform) for module in bench_modules(bench))
    return with_native(with_cells(text)), BENCH_TOP


def run_channel(
    params: ChannelParams,
    operations: Sequence[ChannelOperation],
    *,
    groups: int = 1,
    rows: int | None = None,
    first_refresh_cycles: int = 0,
    max_cycles: int = 100_000_000,
    platform: object = None,
    held: Sequence[tuple[int, int]] = (),
) -> ChannelRun:
    """Run ``operations`` one after another, each as early as the channel takes it.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    operations : sequence of ChannelOperation
        Queries, and the KV heads that they read.
    groups : int
        Bank groups simulated, the first ones.
    rows : int or None
        Rows of a bank with cells; None is as many as the operations need, up to the next power of two.
    first_refresh_cycles : int
        Cycles to the first refresh, 0 for none at all.
    max_cycles : int
        Gives up after this many.
    platform : object
        What the Verilog is made for, see :func:`bench_verilog`.
    held : sequence of (cycle, bits)
        Cycles in which the scores of the groups whose bits are set are refused, from the start of the simulation.

    Raises
    ------
    ValueError
        If an operation does not fit the channel.
    hw.cosim.CosimError
        If the memory model found a rule broken, or units lost something.
    """
    placed, heads = place_operations(params, operations)
    needed = -(-heads[-1].end_row // params.turn_banks) if heads else 0
    rows = max(1 << (needed - 1).bit_length() if needed else 1, 4) if rows is None else rows
    queries = [len(item.operation.queries) for item in placed]
    verilog, top = bench_verilog(params, groups=groups, rows=rows, platform=platform)
    streams: dict[str, Any] = {
        "load": list(load_items(params, heads, groups=groups, rows=rows)),
        "setup": [first_refresh_cycles],
        **operation_streams(params, placed),
    }
    slices = params.processing.slices
    wanted: dict[str, int] = {}
    for group in range(groups):
        parts = range(group * params.parts_per_group, (group + 1) * params.parts_per_group)
        attending = [item for item in placed if item.operation.kind is OperationKind.ATTENTION]
        wanted[f"head__{group}"] = sum(len(item.operation.queries) for item in attending)
        wanted[f"body__{group}"] = sum(
            item.walk.beats * slices * len(item.operation.queries)
            for item in attending
            if item.operation.counted_tokens[parts].any()
        )
        wanted[f"score__{group}"] = sum(
            int(item.operation.marks[parts].any(axis=0).sum()) * len(item.operation.queries)
            for item in placed
            if item.operation.kind is OperationKind.SCORE
        )
    streams["hold"] = [bits for _, bits in held]
    earliest = {"hold": [cycle for cycle, _ in held]}
    run = run_streams(verilog, top, streams, wanted, earliest=earliest, max_cycles=max_cycles)
    found = run.streams
    if found["alarm"].payloads:
        cycle, payload = int(found["alarm"].cycles[0]), found["alarm"].payloads[0]
        what = "a rule of the memory was broken" if payload & 1 else "units lost what they had no room for"
        raise CosimError(f"{what}, first in cycle {cycle} of the simulation")
    start = int(found["setup"].cycles[0])

    def since(name: str) -> StreamRecord:
        return StreamRecord(found[name].cycles - np.uint64(start), found[name].payloads)

    return ChannelRun(
        params,
        [item.walk for item in placed],
        queries,
        [item.operation.kind for item in placed],
        since("row_command"),
        since("column_command"),
        [since(f"head__{group}") for group in range(groups)],
        [since(f"body__{group}") for group in range(groups)],
        [since(f"score__{group}") for group in range(groups)],
        run.cycles,
        start,
        run.wall_s,
    )
