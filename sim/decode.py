"""One decode step: every request of a batch gains one token.

A step is the sum over layers of the GPUs' part, the query's way out, the slowest tier, the states' way back, the merge
of all tiers and the output's way to the GPUs; embedding and output head come once. Within a layer nothing overlaps
but the tiers with each other: the GPUs read their weights from the very stacks that compute attention, so neither
works while the other does.

``context`` counts the tokens of a request before the step. The step appends its own token's keys and values and
attends to them as well, so to ``context + 1`` tokens in all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sim.gpu import head_time, layer_time
from sim.latent import refuse_latent
from sim.links import transfer_s
from sim.placement import apportion, place
from sim.step import LayerTime, StepRequest, StepTime, active_context
from sim.tier import IDLE, TierLoad, tier_rate, tier_time
from sim.unit_cycles import finish_cycles, merge_cycles, state_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.models import Attention, Layer, Model
    from sim.placement import TierTokens
    from sim.system import System, Tier

__all__ = ["ROOT_PRESET", "decode_step"]

_ELEMENT_BYTES = 2
ROOT_PRESET = "pam-root"
"""Unit preset that merges the tiers' states."""


def decode_step(system: System, model: Model, request: StepRequest) -> StepTime:
    """Return the time of one decode step.

    Parameters
    ----------
    system : System
    model : Model
    request : StepRequest

    Raises
    ------
    UnsupportedError
        If the model has multi-head latent attention, and that is not allowed.
    CapacityError
        If weights or KV do not fit.
    """
    if not request.allow_mla:
        refuse_latent(system, model, request.power_cap)
    attention = model.attention
    placed = place(
        system,
        model,
        context=request.context,
        batch=request.batch,
        policy=request.placement,
        rates=[tier_rate(tier, attention, power_cap=request.power_cap) for tier in system.tiers],
        fixed_s=[_least_s(tier, attention, request) for tier in system.tiers],
    )
    layers = tuple(_layer_time(system, model, request, placed, layer, n) for layer, n in model.layer_groups())
    return StepTime(
        request=request, placement=tuple(placed), layers=layers, head=head_time(system, model, request.batch)
    )


def _least_s(tier: Tier, attention: Attention, request: StepRequest) -> float:
    """Return the time that a tier takes when it holds one token of every request, its links included."""
    time = tier_time(tier, attention, TierLoad(request.batch, 1), power_cap=request.power_cap)
    query = attention.num_heads * attention.key_dim * _ELEMENT_BYTES
    states = 0 if tier.shared_with_gpu else attention.num_heads * state_bytes(attention)
    paths = {tier.name: tier.path}
    ways = (transfer_s(paths, {tier.name: request.batch * load})[tier.name] for load in (query, states))
    return time.total_s + sum(ways)


def _layer_loads(request: StepRequest, placed: Sequence[TierTokens], attended: int) -> dict[str, TierLoad]:
    """Return what each tier attends to in a layer that attends to ``attended`` tokens of a request."""
    batch = request.batch
    # Selected and windowed tokens are spread over the tiers as all tokens are.
    active = apportion(batch * (attended - 1), [tier.tokens for tier in placed])
    loads: dict[str, TierLoad] = {}
    for tier, chosen in zip(placed, active, strict=True):
        total = chosen + tier.new_tokens
        requests = min(batch, total)
        loads[tier.name] = TierLoad(requests, math.ceil(total / requests) if requests else 0, request.keep)
    return loads


def _layer_time(
    system: System, model: Model, request: StepRequest, placed: Sequence[TierTokens], layer: Layer, count: int
) -> LayerTime:
    """Return the time of one layer."""
    attention, batch = model.attention, request.batch
    attended = layer.attended(active_context(request.context, request.keep) + 1)
    loads = _layer_loads(request, placed, attended)
    head_states = attention.num_heads * state_bytes(attention)
    times = {
        tier.name: tier_time(
            tier,
            attention,
            loads[tier.name],
            power_cap=request.power_cap,
            state_s=loads[tier.name].requests * head_states / min(link.bytes_per_s for link in tier.path),
        )
        for tier in system.tiers
    }
    paths = {tier.name: tier.path for tier in system.tiers}
    query_bytes = attention.num_heads * attention.key_dim * _ELEMENT_BYTES
    out_bytes = {
        tier.name: loads[tier.name].requests * query_bytes + tier.new_tokens * attention.kv_bytes for tier in placed
    }
    gather_bytes = {
        tier.name: 0 if tier.shared_with_gpu else loads[tier.name].requests * times[tier.name].states * head_states
        for tier in system.tiers
    }
    out_s = transfer_s(paths, out_bytes)
    gather_s = transfer_s(paths, gather_bytes)
    critical = max(times, key=lambda name: out_s[name] + times[name].total_s + gather_s[name])
    home = system.gpu_tier
    output_bytes = batch * attention.num_heads * attention.value_dim * _ELEMENT_BYTES
    return LayerTime(
        layer=layer,
        count=count,
        attended=attended,
        gpu=layer_time(system, model, layer, batch),
        out_s=out_s,
        gather_s=gather_s,
        tiers=times,
        root_s=_root_s(system, attention, batch, sum(time.states for time in times.values() if time is not IDLE)),
        back_s=transfer_s(paths, {home.name: output_bytes})[home.name],
        critical=critical,
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
