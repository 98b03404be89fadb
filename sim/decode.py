"""One decode step: every request of a batch gains one token.

A step is the sum over layers of the GPUs' part, the query's way out, the slowest tier, the states' way back, the merge
of all tiers and the output's way to the GPUs; embedding and output head come once. Within a layer nothing overlaps
but the tiers with each other: the GPUs read their weights from the very stacks that compute attention, so neither
works while the other does.

``context`` counts the tokens of a request before the step. The step appends its own token's keys and values and
attends to them as well, so to ``context + 1`` tokens in all.

With a pipeline every stage has some of the layers, its share of the devices, and all requests' tokens of its layers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.attention import QUERY_BYTES, attention_time, tier_times
from sim.collectives import send_s
from sim.gpu import ACTIVATION_BYTES, GpuTime, head_time, layer_time
from sim.latent import refuse_latent
from sim.links import transfer_s
from sim.placement import apportion, place
from sim.serving.parallelism import choose_parallelism, stage_models, stage_system
from sim.step import LayerTime, StepRequest, StepTime, active_context
from sim.tier import TierLoad, tier_rate, tier_time
from sim.unit_cycles import state_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.models import Attention, Layer, Model
    from sim.placement import TierTokens
    from sim.serving.parallelism import Parallelism
    from sim.system import System, Tier

__all__ = ["decode_step"]


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
    ConfigError
        If GPUs, devices or layers can't be divided as asked.
    """
    if not request.allow_mla:
        refuse_latent(system, model, request.power_cap)
    parallelism = choose_parallelism(
        system,
        tensor=request.tensor_parallel,
        pipeline=request.pipeline_parallel,
        micro_batches=request.micro_batches,
    )
    if parallelism.pipeline_parallel == 1:
        return _stage_step(system, model, request, parallelism, running=request.batch, ending=request.batch)
    return _pipeline_step(system, model, request, parallelism)


def _pipeline_step(system: System, model: Model, request: StepRequest, parallelism: Parallelism) -> StepTime:
    """Return the time of a step through the stages of a pipeline, as :mod:`sim.serving.pipeline` counts it."""
    stages = parallelism.pipeline_parallel
    stage, parts = stage_system(system, stages), stage_models(model, stages)
    micro = min(parallelism.micro_batches, request.batch)
    running = -(-request.batch // micro)
    times = [
        _stage_step(stage, part, request, parallelism, running=running, ending=running if place == stages - 1 else 0)
        for place, part in enumerate(parts)
    ]
    slowest = max(times, key=lambda time: time.total_s)
    sent_s = send_s(
        stage.gpu.collectives, running * model.hidden * ACTIVATION_BYTES, stage.gpu.allreduce_bytes_per_s.number
    )
    head = slowest.head
    return replace(
        slowest,
        layers=tuple(replace(entry, count=entry.count * micro) for entry in slowest.layers),
        head=GpuTime(*(micro * value for value in (head.matrices_s, head.allreduce_s, head.flops, head.read_bytes))),
        send_s=micro * sent_s,
        bubble_s=max(0, stages - micro) * (slowest.total_s + sent_s),
    )


def _stage_step(
    system: System, model: Model, request: StepRequest, parallelism: Parallelism, *, running: int, ending: int
) -> StepTime:
    """Return the time of ``running`` of the requests in one stage, which places all; ``ending`` of them get a token."""
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
    layers = tuple(_layer_time(system, model, request, placed, running, layer, n) for layer, n in model.layer_groups())
    return StepTime(
        request=request,
        system=system,
        model=model,
        parallelism=parallelism,
        placement=tuple(placed),
        layers=layers,
        head=head_time(system, model, ending) if ending else GpuTime(0.0, 0.0, 0.0, 0.0),
    )


def _least_s(tier: Tier, attention: Attention, request: StepRequest) -> float:
    """Return the time that a tier takes when it holds one token of every request, its links included."""
    time = tier_time(tier, attention, TierLoad(request.batch, 1), power_cap=request.power_cap)
    query = attention.num_heads * attention.key_dim * QUERY_BYTES
    states = 0 if tier.shared_with_gpu else attention.num_heads * state_bytes(attention)
    paths = {tier.name: tier.path}
    ways = (transfer_s(paths, {tier.name: request.batch * load})[tier.name] for load in (query, states))
    return time.total_s + sum(ways)


def _layer_loads(
    request: StepRequest, placed: Sequence[TierTokens], batch: int, new: Sequence[int], attended: int
) -> dict[str, TierLoad]:
    """Return what each tier attends to in a layer that attends to ``attended`` tokens of each of ``batch`` requests."""
    # Selected and windowed tokens are spread over the tiers as all tokens are.
    active = apportion(batch * (attended - 1), [tier.tokens for tier in placed])
    loads: dict[str, TierLoad] = {}
    for tier, chosen, fresh in zip(placed, active, new, strict=True):
        total = chosen + fresh
        requests = min(batch, total)
        loads[tier.name] = TierLoad(requests, math.ceil(total / requests) if requests else 0, request.keep)
    return loads


def _layer_time(
    system: System,
    model: Model,
    request: StepRequest,
    placed: Sequence[TierTokens],
    batch: int,
    layer: Layer,
    count: int,
) -> LayerTime:
    """Return the time of one layer for ``batch`` of the requests that are placed."""
    attended = layer.attended(active_context(request.context, request.keep) + 1)
    new = apportion(batch, [tier.new_tokens for tier in placed])
    loads = _layer_loads(request, placed, batch, new, attended)
    attention = attention_time(
        system,
        model.attention,
        loads,
        tier_times(system, model.attention, loads, power_cap=request.power_cap),
        batch=batch,
        appended={tier.name: fresh for tier, fresh in zip(placed, new, strict=True)},
    )
    return LayerTime(
        layer=layer,
        count=count,
        attended=attended,
        gpu=layer_time(system, model, layer, batch),
        **vars(attention),
    )
