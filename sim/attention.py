"""Attention of one layer over all tiers: queries out, every tier at once, states back and merged, output to the GPUs.

The tiers work at the same time and share links; what the slowest has sent back is merged with what the others have,
on the reduction units of the GPUs' memory, and goes to the GPUs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sim.links import transfer_s
from sim.step import AttentionTime
from sim.tier import IDLE, tier_time
from sim.unit_cycles import finish_cycles, merge_cycles, state_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.models import Attention
    from sim.system import System
    from sim.tier import TierLoad, TierTime

__all__ = ["QUERY_BYTES", "ROOT_PRESET", "attention_time", "state_send_s", "tier_times"]

QUERY_BYTES = 2
"""Bytes of an element of a query or an output."""

ROOT_PRESET = "pam-root"
"""Unit preset that merges the tiers' states."""


def state_send_s(system: System, attention: Attention, tier: str, requests: int) -> float:
    """Return the seconds that one state of every head of ``requests`` takes on the slowest link out of a tier."""
    rate = min(link.bytes_per_s for link in system.tier(tier).path)
    return requests * attention.num_heads * state_bytes(attention) / rate


def tier_times(
    system: System, attention: Attention, loads: Mapping[str, TierLoad], *, power_cap: str
) -> dict[str, TierTime]:
    """Return the time of every tier for its load.

    Parameters
    ----------
    system : System
    attention : Attention
    loads : mapping of str to TierLoad
        What each tier attends to.
    power_cap : {"bytes", "flops"}
        How a device's limit is read.
    """
    return {
        tier.name: tier_time(
            tier,
            attention,
            loads[tier.name],
            power_cap=power_cap,
            state_s=state_send_s(system, attention, tier.name, loads[tier.name].requests),
        )
        for tier in system.tiers
    }


def attention_time(
    system: System,
    attention: Attention,
    loads: Mapping[str, TierLoad],
    times: Mapping[str, TierTime],
    *,
    batch: int,
    appended: Mapping[str, int],
) -> AttentionTime:
    """Return the time of one layer's attention.

    Parameters
    ----------
    system : System
    attention : Attention
    loads : mapping of str to TierLoad
        What each tier attends to.
    times : mapping of str to TierTime
        How long it takes for that.
    batch : int
        Requests.
    appended : mapping of str to int
        Tokens whose keys and values go to each tier with the queries.
    """
    head_states = attention.num_heads * state_bytes(attention)
    paths = {tier.name: tier.path for tier in system.tiers}
    query_bytes = attention.num_heads * attention.key_dim * QUERY_BYTES
    out_s = transfer_s(
        paths, {name: load.requests * query_bytes + appended[name] * attention.kv_bytes for name, load in loads.items()}
    )
    gather_s = transfer_s(
        paths,
        {
            tier.name: 0 if tier.shared_with_gpu else loads[tier.name].requests * times[tier.name].states * head_states
            for tier in system.tiers
        },
    )
    home = system.gpu_tier.name
    output_bytes = batch * attention.num_heads * attention.value_dim * QUERY_BYTES
    return AttentionTime(
        out_s=out_s,
        gather_s=gather_s,
        tiers=dict(times),
        root_s=_root_s(system, attention, batch, sum(time.states for time in times.values() if time is not IDLE)),
        back_s=transfer_s(paths, {home: output_bytes})[home],
        critical=max(times, key=lambda name: out_s[name] + times[name].total_s + gather_s[name]),
    )


def _root_s(system: System, attention: Attention, batch: int, states: int) -> float:
    """Return the time of merging the tiers' states and dividing by l, on the reduction units of the GPUs' memory."""
    tier = system.gpu_tier
    operations = batch * attention.num_heads
    units = tier.channels * max(1, tier.device.merge_units_per_channel.integer)
    rounds = math.ceil(operations / units)
    finish = finish_cycles(ROOT_PRESET, attention)
    cycles = finish.latency + (rounds - 1) * finish.interval
    if states > 1:
        merge = merge_cycles(ROOT_PRESET, attention, states)
        # Both stages work at once; the slower sets the pace of the rounds.
        cycles = merge.latency + finish.latency + (rounds - 1) * max(merge.interval, finish.interval)
    return cycles / tier.device.merge_clock_hz.number
