"""Measures the reduction of a whole stack: a channel's bank groups, their links and the units on the logic die."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from golden.numerics import unit_numerics
from golden.partial import merge_tree
from hw.builds import digest
from hw.channel_operation import shared_head, shared_pass
from hw.channel_run import run_channel
from hw.logic_die_params import LogicDieParams
from hw.logic_die_run import logic_die_verilog, run_behind
from hw.measure import MEASURED_ROWS, RunSizes, channel_sha256, column_read_cycles, random_operations
from hw.memory.kv_rows import kv_rows
from hw.native_arithmetic import NATIVE
from hw.payloads import pack_state
from hw.timing.logic_die import ReductionPoint, state_bytes

if TYPE_CHECKING:
    from hw.channel_operation import ChannelOperation
    from hw.device_params import ChannelParams
    from hw.presets.devices import DevicePreset

__all__ = ["measure_reduction", "queries_of_pass", "reduction_sha256"]


def measure_reduction(
    preset: DevicePreset, context: int, *, heads: int = 64, head_dim: int = 128, group: int = 1, seed: int = 0
) -> ReductionPoint:
    """Run one decode step of one layer's attention on a stack, refresh included, the first due after n_refi.

    Parameters
    ----------
    preset : DevicePreset
        The device.
    context : int
        Tokens of each query head; a multiple of the parts that a channel deals them to.
    heads : int
        Query heads, a multiple of the channels times ``group``.
    head_dim : int
        Elements of a key.
    group : int
        Query heads that share keys and values. As many of them as the units hold use each column in turn
        (:func:`queries_of_pass`); the channel makes a pass over the same rows for every so many.
    seed : int
        Seed of the random keys, values and queries, which change no cycle.

    Raises
    ------
    ValueError
        If tokens or heads cannot be dealt out evenly.
    hw.cosim.CosimError
        If a rule of the memory was broken, or units lost something.
    """
    channel = preset.channel
    require_int("context", context, channel.parts)
    if context % channel.parts:
        raise ValueError(f"context must be a multiple of the {channel.parts} parts of a channel, not {context!r}")
    require_int("group", group, 1)
    shared = preset.channels * group
    require_int("heads", heads, shared)
    if heads % shared:
        raise ValueError(
            f"heads must be a multiple of the {preset.channels} channels times {group} a KV head, not {heads!r}"
        )
    run = run_channel(
        channel,
        _passes(channel, RunSizes(head_dim, context // channel.parts, heads // shared), group, seed),
        rows=MEASURED_ROWS,
        first_refresh_cycles=channel.timing.n_refi,
        platform=NATIVE,
    )
    die = _logic_die(channel)
    root = run_behind(die, run, platform=NATIVE)

    state = channel.reduction
    numerics = unit_numerics(state.exp, lanes=state.lanes, kv_format=state.weight_format)
    expected = [merge_tree([given] * channel.groups, die.tree(), numerics) for given in run.states(0, numerics)]
    packed = [pack_state(state, wanted, op_id=number) for number, wanted in enumerate(expected)]
    equal = root.head.payloads == [head for head, _ in packed]
    equal = equal and root.body.payloads == [beat for _, body in packed for beat in body]

    unit = channel.processing
    beats = run.rows[0].beats
    of_bank = unit.state_format.bytes * (2 + beats * unit.lanes)
    return ReductionPoint(
        device=preset.name,
        context=context,
        heads=heads,
        head_dim=head_dim,
        group=group,
        last_column=int(column_read_cycles(run)[-1]),
        last_state=int(run.bodies[0].cycles[-1]),
        last_root=int(root.body.cycles[-1]),
        late_cycles=root.late_cycles,
        bank_bytes=heads * channel.organisation.banks_per_channel * of_bank,
        up_bytes=heads * channel.groups * state_bytes(die, beats * unit.slices),
        equal_to_golden=equal,
    )


def reduction_sha256(preset: DevicePreset) -> str:
    """Return the hash of the Verilog that is measured, channel and logic die together, as gates."""
    die, _ = logic_die_verilog(_logic_die(preset.channel))
    return digest(channel_sha256(preset.channel), die)


def _logic_die(channel: ChannelParams) -> LogicDieParams:
    """Return the logic die of a channel: groups merge by twos, then all pairs at the root."""
    return LogicDieParams(channel=channel, fan_ins=(2, channel.groups // 2))


def queries_of_pass(channel: ChannelParams, head_dim: int, group: int) -> int:
    """Return how many of ``group`` query heads read a column together: the largest divisor that the units hold."""
    unit = channel.processing
    room = min(unit.queries, unit.held_beats // kv_rows(channel, head_dim, 0).beats)
    return max(queries for queries in range(1, min(group, room) + 1) if group % queries == 0)


def _passes(channel: ChannelParams, sizes: RunSizes, group: int, seed: int) -> list[ChannelOperation]:
    """Return the operations of ``group`` queries on each of ``sizes.operations`` KV heads."""
    rng = np.random.default_rng(seed)
    together = queries_of_pass(channel, sizes.head_dim, group)
    operations: list[ChannelOperation] = []
    for number, operation in enumerate(random_operations(channel, sizes, seed=seed)):
        queries = [*operation.queries, *(rng.permutation(operation.queries, axis=1)[0] for _ in range(group - 1))]
        of_pass = [queries[first : first + together] for first in range(0, group, together)]
        passes = shared_head(replace(operation, kv_head=number), [first for first, *_ in of_pass])
        operations += [shared_pass(one, every) for one, every in zip(passes, of_pass, strict=True)]
    return operations
