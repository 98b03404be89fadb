"""Runs operations on a Verilated channel: its sequencer, some of its bank groups, and a model of their banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.formats import FP32
from hw.cosim import CosimError, StreamRecord, run_streams
from hw.device_params import ChannelBenchParams
from hw.devices.cells import with_cells
from hw.devices.channel_bench import BENCH_TOP, bench_modules
from hw.devices.commands import ColumnKind, column_command_layout, row_command_layout
from hw.devices.layouts import operation_layout
from hw.layouts import head_layout
from hw.memory.kv_rows import KvRows, kv_rows, row_images
from hw.payloads import pack_vectors, unpack, unpack_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from golden.numerics import Numerics
    from golden.partial import PartialState
    from hw.device_params import ChannelParams

__all__ = ["ChannelOperation", "ChannelRun", "bench_verilog", "run_channel"]


@dataclass(frozen=True, kw_only=True)
class ChannelOperation:
    """One query over the tokens of one KV head in one channel.

    Parameters
    ----------
    query : ndarray of uint16, shape (head_dim,)
        Codes of q.
    keys, values : sequence of ndarray of uint16, shape (tokens, head_dim)
        Codes of the tokens of each simulated part; a part may have none.
    tokens : ndarray of int, shape (parts,)
        Token counts of all parts of the channel; those of the simulated ones are the lengths of ``keys``.
    scale : float
        Factor of the scores.
    """

    query: npt.NDArray[np.uint16]
    keys: Sequence[npt.NDArray[np.uint16]]
    values: Sequence[npt.NDArray[np.uint16]]
    tokens: npt.NDArray[np.int64]
    scale: float


@dataclass(frozen=True)
class ChannelRun:
    """What a channel did; cycles are those of the memory clock from the one that follows the start.

    Parameters
    ----------
    rows : list of KvRows
        Rows of each operation.
    row_commands, column_commands : StreamRecord
        Commands of the two buses and the cycles in which they were issued.
    heads, bodies : list of StreamRecord
        States of each simulated group.
    simulated_cycles : int
        Cycles that the model ran, loading of the cells included.
    """

    params: ChannelParams
    rows: list[KvRows]
    row_commands: StreamRecord
    column_commands: StreamRecord
    heads: list[StreamRecord]
    bodies: list[StreamRecord]
    simulated_cycles: int

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
        """Cycles in which a column of all banks was read into the units."""
        layout = column_command_layout(self.params.organisation)
        record = self.column_commands
        return [
            int(cycle)
            for cycle, payload in zip(record.cycles, record.payloads, strict=True)
            if unpack(layout, payload)["kind"] == ColumnKind.MAC.value
        ]

    def states(self, group: int, numerics: Numerics) -> Iterator[PartialState]:
        """Yield the state of each operation that a simulated group gave."""
        state = self.params.reduction
        bodies = iter(self.bodies[group].payloads)
        for rows, head in zip(self.rows, self.heads[group].payloads, strict=True):
            empty = unpack(head_layout(state), head)["empty"]
            beats = 0 if empty else rows.beats * self.params.processing.slices
            yield unpack_state(state, head, [next(bodies) for _ in range(beats)], numerics)


def bench_verilog(params: ChannelParams, *, groups: int, rows: int) -> tuple[str, str]:
    """Return the Verilog of a channel with its memory, and the name of its top module."""
    bench = ChannelBenchParams(channel=params, groups=groups, rows=rows)
    return with_cells("".join(module.text() for module in bench_modules(bench))), BENCH_TOP


def run_channel(
    params: ChannelParams,
    operations: Sequence[ChannelOperation],
    *,
    groups: int = 1,
    rows: int | None = None,
    first_refresh_cycles: int = 0,
    max_cycles: int = 100_000_000,
) -> ChannelRun:
    """Run ``operations`` one after another, each as early as the channel takes it.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    operations : sequence of ChannelOperation
        Every operation has rows of its own.
    groups : int
        Bank groups simulated, the first ones.
    rows : int or None
        Rows of a bank with cells; None is as many as the operations need, up to the next power of two.
    first_refresh_cycles : int
        Cycles to the first refresh, 0 for none at all.
    max_cycles : int
        Gives up after this many.

    Raises
    ------
    ValueError
        If an operation does not fit the channel.
    hw.cosim.CosimError
        If the memory model found a rule broken, or units lost something.
    """
    plans = [kv_rows(params, len(op.query), int(op.tokens.max(initial=0))) for op in operations]
    needed = sum(2 * plan.tiles for plan in plans)
    rows = max(1 << (needed - 1).bit_length() if needed else 1, 4) if rows is None else rows
    verilog, top = bench_verilog(params, groups=groups, rows=rows)
    first_rows = np.cumsum([0, *(2 * plan.tiles for plan in plans)])
    streams: dict[str, Any] = {
        "load": list(_load(params, operations, plans, groups=groups, rows=rows)),
        "setup": [first_refresh_cycles],
        "operation": [
            _operation(params, op, plan, int(first), number)
            for number, (op, plan, first) in enumerate(zip(operations, plans, first_rows, strict=False))
        ],
        "query": [beat for op, plan in zip(operations, plans, strict=True) for beat in _query(params, op, plan)],
    }
    slices = params.processing.slices
    wanted: dict[str, int] = {}
    for group in range(groups):
        parts = range(group * params.parts_per_group, (group + 1) * params.parts_per_group)
        wanted[f"head__{group}"] = len(operations)
        wanted[f"body__{group}"] = sum(
            plan.beats * slices for op, plan in zip(operations, plans, strict=True) if op.tokens[parts].any()
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
        plans,
        since("row_command"),
        since("column_command"),
        [since(f"head__{group}") for group in range(groups)],
        [since(f"body__{group}") for group in range(groups)],
        run.cycles,
    )


def _operation(params: ChannelParams, op: ChannelOperation, plan: KvRows, first_row: int, number: int) -> int:
    """Return the payload of one operation whose keys start at ``first_row`` and whose values follow them."""
    word = operation_layout(params).const(
        {
            "unit": {
                "op_id": number % (1 << params.processing.op_id_bits),
                "scale": int(FP32.to_codes(op.scale)),
                "beats": plan.beats,
                "tile_tokens": plan.tile_tokens,
                "walk_tokens": plan.walk_tokens,
            },
            "rows": {
                "key_row": first_row,
                "value_row": first_row + plan.tiles,
                "tiles": plan.tiles,
                "tile_columns": plan.tile_columns,
                "last_columns": plan.last_columns,
            },
            "tokens": [int(count) for count in op.tokens],
        }
    )
    return word.as_bits()


def _query(params: ChannelParams, op: ChannelOperation, plan: KvRows) -> list[int]:
    """Return the beats of a query, filled with zeros to whole beats in every bank."""
    lanes = params.processing.lanes
    filled = np.zeros(plan.beats * lanes * params.processing.slices, np.uint16)
    filled[: len(op.query)] = op.query
    return pack_vectors(filled, lanes)


def _load(
    params: ChannelParams, operations: Sequence[ChannelOperation], plans: Sequence[KvRows], *, groups: int, rows: int
) -> Iterator[int]:
    """Yield the items that fill the cells of the simulated banks, row by row, column by column."""
    organisation = params.organisation
    lanes, slices = params.processing.lanes, params.processing.slices
    row_bits = (rows - 1).bit_length()
    column_bits = (organisation.columns - 1).bit_length()
    row = 0
    for op, plan in zip(operations, plans, strict=True):
        for vectors in (op.keys, op.values):
            images = [row_images(plan, part, lanes=lanes, slices=slices) for part in vectors]
            # Axes: bank of the channel, tile, column, element.
            banks = np.concatenate(images)
            if len(banks) != groups * organisation.banks:
                raise ValueError(
                    f"keys and values must be those of {groups * params.parts_per_group} parts, not {len(op.keys)}"
                )
            for tile in range(plan.tiles):
                for column in range(plan.tile_columns):
                    cells = int.from_bytes(banks[:, tile, column].astype("<u2").tobytes(), "little")
                    yield row | column << row_bits | cells << (row_bits + column_bits)
                row += 1
