"""Runs operations on a Verilated channel: its sequencer, some of its bank groups, and a model of their banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.formats import FP32
from hw.channel_load import load_items
from hw.channel_operation import ChannelOperation, place_operations
from hw.channel_selection import selection_streams
from hw.cosim import CosimError, StreamRecord, run_streams
from hw.device_params import ChannelBenchParams
from hw.devices.cells import with_cells
from hw.devices.channel_bench import BENCH_TOP, bench_modules
from hw.devices.commands import ColumnKind, column_command_layout, row_command_layout
from hw.devices.layouts import operation_layout
from hw.layouts import head_layout
from hw.memory.kv_rows import token_places
from hw.native_arithmetic import with_native
from hw.payloads import pack_vectors, unpack, unpack_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from golden.numerics import Numerics
    from golden.partial import PartialState
    from hw.channel_operation import PlacedOperation
    from hw.device_params import ChannelParams
    from hw.memory.kv_rows import KvRows

__all__ = ["ChannelOperation", "ChannelRun", "bench_verilog", "run_channel"]


@dataclass(frozen=True)
class ChannelRun:
    """What a channel did; cycles are those of the memory clock from the one that follows the start.

    Parameters
    ----------
    rows : list of KvRows
        Walk of each operation.
    queries : list of int
        Queries of each operation: so many states it gives, one after another.
    row_commands, column_commands : StreamRecord
        Commands of the two buses and the cycles in which they were issued.
    heads, bodies : list of StreamRecord
        States of each simulated group.
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
    row_commands: StreamRecord
    column_commands: StreamRecord
    heads: list[StreamRecord]
    bodies: list[StreamRecord]
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
        """Yield the state of each query of each operation that a simulated group gave."""
        state = self.params.reduction
        bodies = iter(self.bodies[group].payloads)
        walks = [rows for rows, queries in zip(self.rows, self.queries, strict=True) for _ in range(queries)]
        for rows, head in zip(walks, self.heads[group].payloads, strict=True):
            empty = unpack(head_layout(state), head)["empty"]
            beats = 0 if empty else rows.beats * self.params.processing.slices
            yield unpack_state(state, head, [next(bodies) for _ in range(beats)], numerics)


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
    first_queries = np.cumsum([0, *queries])
    verilog, top = bench_verilog(params, groups=groups, rows=rows, platform=platform)
    selections = [selection_streams(params, item) for item in placed]
    streams: dict[str, Any] = {
        "load": list(load_items(params, heads, groups=groups, rows=rows)),
        "setup": [first_refresh_cycles],
        "operation": [_operation(params, item, int(first)) for item, first in zip(placed, first_queries, strict=False)],
        "query": [
            beat for item in placed for query in item.operation.queries for beat in _columns(params, item, query)
        ],
        "append": [column for item in placed for column in _append(params, item)],
        "selection": [item for request, _ in selections for item in request],
        "words": [word for _, words in selections for word in words],
    }
    slices = params.processing.slices
    wanted: dict[str, int] = {}
    for group in range(groups):
        parts = range(group * params.parts_per_group, (group + 1) * params.parts_per_group)
        wanted[f"head__{group}"] = sum(queries)
        wanted[f"body__{group}"] = sum(
            item.walk.beats * slices * len(item.operation.queries)
            for item in placed
            if item.operation.counted_tokens[parts].any()
        )
    run = run_streams(verilog, top, streams, wanted, max_cycles=max_cycles)
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
        since("row_command"),
        since("column_command"),
        [since(f"head__{group}") for group in range(groups)],
        [since(f"body__{group}") for group in range(groups)],
        run.cycles,
        start,
        run.wall_s,
    )


def _operation(params: ChannelParams, item: PlacedOperation, number: int) -> int:
    """Return the payload of one operation, whose first query has this number among all."""
    op, walk, head = item.operation, item.walk, item.head
    last_query = len(op.queries) - 1
    word = operation_layout(params).const(
        {
            "unit": {
                "op_id": number % (1 << params.processing.op_id_bits),
                "scale": int(FP32.to_codes(op.scale)),
                "beats": walk.beats,
                "tile_tokens": walk.tile_tokens,
                "walk_tokens": walk.walk_tokens,
                "last_query": last_query,
            },
            "rows": {
                "key_row": head.key_row,
                "value_row": head.value_row,
                "tiles": walk.tiles,
                "tile_columns": walk.tile_columns,
                "last_columns": walk.last_columns,
                "token_columns": walk.beats,
                "last_query": last_query,
                "selected": op.positions is not None,
                "append": _append_place(params, item),
            },
            "tokens": [int(count) for count in op.counted_tokens],
        }
    )
    return word.as_bits()


def _append_place(params: ChannelParams, item: PlacedOperation) -> dict[str, Any]:
    """Return where the new token of an operation is written."""
    part = item.operation.append_part
    if part is None:
        return {}
    tile, column = token_places(item.walk, item.operation.tokens[part : part + 1] - 1)
    organisation = params.organisation
    group, bank = divmod(part, params.parts_per_group)
    rank, bankgroup = divmod(group, organisation.bankgroups)
    pseudochannel, rank = divmod(rank, organisation.ranks)
    return {
        "valid": 1,
        "place": {"tile": int(tile[0]), "column": int(column[0])},
        "pseudochannel": pseudochannel,
        "rank": rank,
        "bankgroup": bankgroup,
        "bank": bank,
    }


def _append(params: ChannelParams, item: PlacedOperation) -> list[int]:
    """Return the columns of the new token: its key's in every bank, then its value's; zeros where it is not known."""
    op = item.operation
    if op.append_part is None:
        return []
    if op.append_part >= len(op.keys):
        return [0] * (2 * item.walk.beats * params.processing.slices)
    return [column for kind in (op.keys, op.values) for column in _columns(params, item, kind[op.append_part][-1])]


def _columns(params: ChannelParams, item: PlacedOperation, vector: npt.NDArray[np.uint16]) -> list[int]:
    """Return the columns of a vector, bank by bank, filled with zeros to whole ones in every bank."""
    lanes = params.processing.lanes
    filled = np.zeros(item.walk.beats * lanes * params.processing.slices, np.uint16)
    filled[: len(vector)] = vector
    return pack_vectors(filled, lanes)
