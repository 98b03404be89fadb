"""Cycles of a tier's channels as their RTL takes them, where a table of them applies to what is asked.

A channel works off one operation after another, each over all its tokens. Where the power limit counts bytes, the ``g``
query heads that share a KV head are one operation, whose columns are read and paid for once; a table speaks for them if
operations of as many queries were measured. Where it counts operations of arithmetic they are ``g`` passes over the
same columns.

Refreshes are added as the mean over their phase (:meth:`hw.timing.tables.TableCycles.mean_refresh_cycles`): a layer's
attention begins at any time of a refresh interval, and a step has many layers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hw.memory.kv_rows import kv_rows
from hw.presets import MEMORY_PRESETS
from hw.presets.devices import DEVICE_PRESETS
from hw.tables import TableError, load_table
from hw.timing.channel import streamed_row_cycles
from sim.provenance import Part

if TYPE_CHECKING:
    from hw.presets import MemoryDevice
    from hw.tables import DeviceTable
    from sim.models import Attention

__all__ = [
    "ChannelTime",
    "channel_parts",
    "channel_table",
    "channel_time",
    "shared_queries",
    "table_sha256",
    "why_not_measured",
]

_MEASURED_NUMBERS = (
    "channels",
    "units_per_channel",
    "units_per_group",
    "unit_clock_hz",
    "unit_column_bytes",
    "unit_column_s",
    "access_s",
    "cap_bytes_per_s",
    "cap_flops_per_s",
)
"""Numbers of a memory that its RTL was made with."""


@dataclass(frozen=True, kw_only=True)
class ChannelTime:
    """Time of one channel over alike operations, by its RTL; state of the bank groups is the last thing in it.

    Parameters
    ----------
    access_s : float
        Start to first column, commands and queries of the first operation included.
    stream_s : float
        First to last column, refreshes included.
    tail_s : float
        Last column to last state out of a bank group.
    rows_s, cap_s : float
        What the rows alone, without refresh, and the power limit alone would make of the stream.
    free_cycles : int
        Start to last state without refresh, in cycles of the memory clock: what was measured.
    refresh_cycles : float
        What refresh adds.
    """

    access_s: float
    stream_s: float
    tail_s: float
    rows_s: float
    cap_s: float
    free_cycles: int
    refresh_cycles: float


def why_not_measured(device: MemoryDevice, attention: Attention, *, power_cap: str, fraction: float) -> str:
    """Return why no table speaks for this attention on this memory; empty where one does.

    Parameters
    ----------
    device : MemoryDevice
    attention : Attention
    power_cap : {"bytes", "flops"}
        How the power limit is read.
    fraction : float
        Part of the tokens that is attended to.
    """
    if device.channel_preset is None:
        return "no channel of it is in RTL"
    published = dict(MEMORY_PRESETS[device.name].values())
    for name, value in device.values():
        if (name in _MEASURED_NUMBERS or name.startswith("timing.")) and value.value != published[name].value:
            return f"its RTL was made for {name} {published[name].value:g}, not {value.value:g}"
    if attention.kv_lora_rank:
        return "its RTL has no multi-head latent attention"
    if fraction < 1.0:
        return "selected tokens lie scattered, measured are whole rows"
    try:
        table = load_table(device.channel_preset)
    except TableError as error:
        return str(error)
    head_dim = max(attention.head_dim, attention.v_head_dim)
    measured = table.cycles.measured_queries(head_dim)
    if not measured:
        return f"head dimension {head_dim} is not in the table of {device.channel_preset}"
    queries = shared_queries(attention, power_cap=power_cap)
    if queries not in measured:
        return f"operations of {queries} query heads are not in the table of {device.channel_preset}"
    return ""


def shared_queries(attention: Attention, *, power_cap: str) -> int:
    """Return the query heads that share a pass: all of a KV head where a limit of bytes is paid once for all, else 1.

    A limit of operations is paid for every query head, be a column read once or not.
    """
    return attention.group if power_cap == "bytes" else 1


def table_sha256(device: MemoryDevice) -> str | None:
    """Return the hash of the Verilog that a memory's table was measured on; None where there is no table."""
    if device.channel_preset is None:
        return None
    try:
        return load_table(device.channel_preset).verilog_sha256
    except TableError:
        return None


def channel_table(device: MemoryDevice) -> DeviceTable:
    """Return the table of a memory whose channel is in RTL."""
    assert device.channel_preset is not None
    return load_table(device.channel_preset)


def channel_time(
    device: MemoryDevice, attention: Attention, tokens: int, operations: int, queries: int = 1
) -> ChannelTime:
    """Return the time of one channel of a memory that a table speaks for.

    Parameters
    ----------
    device : MemoryDevice
    attention : Attention
    tokens : int
        Tokens of each operation in the channel, dealt to its parts in turn; at least 1.
    operations : int
        Operations, one after another.
    queries : int
        Query heads of each operation, which share its column reads.
    """
    head_dim = max(attention.head_dim, attention.v_head_dim)
    return _channel_time(channel_table(device).name, head_dim, tokens, operations, queries)


@cache
def _channel_time(preset: str, head_dim: int, tokens: int, operations: int, queries: int) -> ChannelTime:
    table, params = load_table(preset), DEVICE_PRESETS[preset].channel
    walk_tokens = math.ceil(tokens / params.parts)
    cycles = table.cycles.cycles(head_dim, walk_tokens, operations, queries=queries)
    refresh = float(table.cycles.mean_refresh_cycles(head_dim, walk_tokens, operations, queries=queries))
    row = kv_rows(params, head_dim, 0)
    full, rest = divmod(walk_tokens - 1, row.tile_tokens)
    rows = full * streamed_row_cycles(params, row.tile_tokens * row.beats, queries=queries)
    rows += streamed_row_cycles(params, (rest + 1) * row.beats, queries=queries)
    columns = 2 * walk_tokens * row.beats * operations
    return ChannelTime(
        access_s=cycles.first_column / table.clock_hz,
        stream_s=(cycles.last_column - cycles.first_column + refresh) / table.clock_hz,
        tail_s=(cycles.last_state - cycles.last_column) / table.clock_hz,
        rows_s=2 * operations * rows / table.clock_hz,
        cap_s=0.0 if params.column_period is None else float(columns * params.column_period) / table.clock_hz,
        free_cycles=cycles.last_state,
        refresh_cycles=refresh,
    )


def channel_parts(preset: str) -> tuple[Part, ...]:
    """Return where the cycles of a measured channel come from."""
    table = load_table(preset)
    return (
        Part(
            "channel cycles without refresh",
            "measured-rtl",
            f"hw/tables/{preset}.json, Verilog sha256 {table.verilog_sha256}, at {table.clock_hz / 1e6:,.1f} MHz",
        ),
        Part("refresh of the channel", "formula-rtl", "hw.timing.channel, the mean over a refresh interval"),
    )
