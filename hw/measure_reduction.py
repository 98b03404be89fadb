"""Measures the reduction of a whole stack: a channel's bank groups, their links and the units on the logic die."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.checks import require_int
from golden.numerics import unit_numerics
from golden.partial import merge_tree
from hw.builds import digest
from hw.channel_run import run_channel
from hw.logic_die_params import LogicDieParams
from hw.logic_die_run import logic_die_verilog, run_behind
from hw.measure import MEASURED_ROWS, RunSizes, channel_sha256, column_read_cycles, random_operations
from hw.native_arithmetic import NATIVE
from hw.payloads import pack_state
from hw.timing.logic_die import ReductionPoint, state_bytes

if TYPE_CHECKING:
    from hw.presets.devices import DevicePreset

__all__ = ["measure_reduction", "reduction_sha256"]


def measure_reduction(
    preset: DevicePreset, context: int, *, heads: int = 64, head_dim: int = 128, seed: int = 0
) -> ReductionPoint:
    """Run one decode step of one layer's attention on a stack, refresh included, the first due after n_refi.

    Parameters
    ----------
    preset : DevicePreset
        The device.
    context : int
        Tokens of each query head; a multiple of the parts that a channel deals them to.
    heads : int
        Query heads, a multiple of the channels.
    head_dim : int
        Elements of a key.
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
    require_int("heads", heads, preset.channels)
    if heads % preset.channels:
        raise ValueError(f"heads must be a multiple of the {preset.channels} channels, not {heads!r}")
    sizes = RunSizes(head_dim, context // channel.parts, heads // preset.channels)
    run = run_channel(
        channel,
        random_operations(channel, sizes, seed=seed),
        rows=MEASURED_ROWS,
        first_refresh_cycles=channel.timing.n_refi,
        platform=NATIVE,
    )
    die = LogicDieParams(channel=channel)
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
    die, _ = logic_die_verilog(LogicDieParams(channel=preset.channel))
    return digest(channel_sha256(preset.channel), die)
