"""The result of a decode step as one plain record: the keys that scripts rely on, and where each number comes from."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from sim.attention import ROOT_PRESET
from sim.channel_cycles import channel_parts, channel_table, why_not_measured
from sim.decode import decode_step
from sim.energy.account import account
from sim.energy.activity import steps_activity
from sim.gpu import gpu_parts
from sim.latent import latent_costs
from sim.manifest import host, manifest, step_inputs
from sim.placement import apportion
from sim.provenance import Part, Provenance, combine
from sim.serving.batch import StepWork
from sim.step import active_context
from sim.tier import POWER_CAPS
from sim.unit_cycles import unit_parts

if TYPE_CHECKING:
    from sim.energy.account import Energy
    from sim.models import Model
    from sim.step import LayerTime, StepRequest, StepTime
    from sim.system import System, Tier

__all__ = ["decode_record"]

_US = 1e6


def decode_record(
    system: System, model: Model, request: StepRequest, *, energy_without: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the record of one decode step.

    Times are in microseconds and hold for the whole step unless the key says otherwise. With a pipeline, parts of the
    step, devices and layers are those of its slowest stage, for all micro-batches.

    Parameters
    ----------
    system : System
    model : Model
    request : StepRequest
    energy_without : tuple of str
        Parts of :data:`sim.energy.account.PARTS` that the energy leaves out.

    Raises
    ------
    SimError
        If the step can't be run.
    """
    step = decode_step(system, model, request)
    energy = _energy(system, model, step, energy_without)
    attention_us = step.attention_s * _US
    reduction_us = step.reduction_s * _US
    per_token = model.kv_bytes_per_token
    record: dict[str, Any] = {
        "system": system.name,
        "model": model.name,
        "context": request.context,
        "batch": request.batch,
        "placement": request.placement,
        **asdict(step.parallelism),
        "keep": request.keep,
        "active_tokens": request.batch * (active_context(request.context, request.keep) + 1),
        "step_us": step.total_s * _US,
        "tokens_per_s": request.batch / step.total_s,
        "gpu_us": step.gpu_s * _US,
        "attention_us": attention_us,
        "link_us": step.link_s * _US,
        "send_us": step.send_s * _US,
        "bubble_us": step.bubble_s * _US,
        "slowest_tier": step.slowest_tier,
        "tier_us": attention_us - step.link_s * _US - reduction_us,
        "reduction_us": reduction_us,
        "reduction_busy_us": step.reduction_busy_s * _US,
        "reduction_share": reduction_us / attention_us,
        "kv_bytes_per_token": per_token,
        "kv_bytes_total": request.batch * request.context * per_token,
        "kv_bytes_appended": request.batch * per_token,
        "weight_bytes": model.weight_bytes,
        **energy.to_record(),
        "power_cap": _power_cap(system, model, request),
        "latent_attention": _latent(system, model, request),
        "conflict": {
            "kind": "serialised",
            "tier": system.gpu_tier.name,
            "gpu_us": step.gpu_s * _US,
            "tier_us": sum(entry.count * entry.tiers[system.gpu_tier.name].total_s for entry in step.layers) * _US,
            "overlap_us": 0.0,
        },
        "gpu": _gpu(step),
        "devices": [_device(tier, index, step) for index, tier in enumerate(step.system.tiers)],
        "layers": [_layer(entry) for entry in step.layers],
        "provenance": _provenance(system, model, step, energy),
        "deviations": [deviation.to_dict() for deviation in system.all_deviations()],
    }
    record["manifest"] = manifest(step_inputs(system, model, request))
    record["host"] = host()
    return record


def _energy(system: System, model: Model, step: StepTime, left_out: tuple[str, ...]) -> Energy:
    """Return the energy of the step."""
    request, placed = step.request, step.placement
    active = apportion(request.batch * active_context(request.context, request.keep), [tier.tokens for tier in placed])
    tokens = tuple(chosen + tier.new_tokens for chosen, tier in zip(active, placed, strict=True))
    none = (0,) * len(placed)
    work = StepWork(
        decoding=request.batch,
        tier_tokens=tokens,
        tier_requests=tuple(min(request.batch, count) for count in tokens),
        prompt_requests=0,
        prompt_tokens=0,
        prompt_pairs=0,
        prompt_context=none,
        decode_appended=tuple(tier.new_tokens for tier in placed),
        prompt_appended=none,
        ending=request.batch,
        swapped_tokens=0,
    )
    activity = steps_activity(system, model, [work], step.parallelism, seconds=step.total_s, busy_s=step.total_s)
    return account(system, activity, left_out=left_out)


def _power_cap(system: System, model: Model, request: StepRequest) -> dict[str, Any]:
    """Return which reading of the power limit was used, and the step with the other one."""
    other = next(kind for kind in POWER_CAPS if kind != request.power_cap)
    step = decode_step(system, model, replace(request, power_cap=other))
    return {
        "kind": request.power_cap,
        "other": {"kind": other, "step_us": step.total_s * _US, "attention_us": step.attention_s * _US},
    }


def _latent(system: System, model: Model, request: StepRequest) -> list[dict[str, Any]]:
    """Return, of multi-head latent attention that was allowed, how much longer units take than memory, tier by tier."""
    return [
        {
            "tier": cost.tier,
            "flop_per_byte": cost.flop_per_byte,
            "unit_flop_per_byte": cost.unit_flop_per_byte,
            "slowdown": cost.slowdown,
            "provenance": "modelled",
        }
        for cost in latent_costs(system, model.attention, request.power_cap)
    ]


def _gpu(step: StepTime) -> dict[str, Any]:
    """Return the GPUs' part."""
    entries = [(entry.count, entry.gpu) for entry in step.layers] + [(1, step.head)]
    return {
        "count": step.system.gpu.count.integer,
        "matrices_us": sum(count * time.matrices_s for count, time in entries) * _US,
        "allreduce_us": sum(count * time.allreduce_s for count, time in entries) * _US,
        "head_us": step.head.total_s * _US,
        "flops": sum(count * time.flops for count, time in entries),
        "read_bytes": sum(count * time.read_bytes for count, time in entries),
    }


def _device(tier: Tier, index: int, step: StepTime) -> dict[str, Any]:
    """Return one tier: what it holds, and its time over all layers."""
    placed, model = step.placement[index], step.model
    times = [(entry.count, entry.tiers[tier.name]) for entry in step.layers]
    seconds = sum(count * time.total_s for count, time in times)
    slowest = max((time for _, time in times), key=lambda time: time.total_s)
    channel = _channel(tier, model, step)
    clock = channel["clock_hz"] if channel["provenance"] == "measured-rtl" else tier.device.unit_clock_hz.number
    provenance = combine(_tier_parts(tier, model, step))
    return {
        "name": tier.name,
        "device": tier.device.name,
        "count": tier.count.integer,
        "tokens": placed.tokens,
        "new_tokens": placed.new_tokens,
        "kv_bytes": placed.tokens * model.kv_bytes_per_token,
        "capacity_bytes": placed.room_bytes,
        "raw_capacity_bytes": tier.raw_bytes,
        "cycles": round(seconds * clock),
        "clock_hz": clock,
        "unit_cycles": sum(count * time.unit_cycles for count, time in times),
        "us": seconds * _US,
        "reduction_us": sum(count * time.exposed_s for count, time in times) * _US,
        "reduction_busy_us": sum(count * time.reduction_busy_s for count, time in times) * _US,
        "bytes": sum(count * time.read_bytes for count, time in times),
        "bound": slowest.bound,
        "bounds_us": {
            name: sum(count * time.bounds_s.get(name, 0.0) for count, time in times) * _US for name in slowest.bounds_s
        },
        "spread": slowest.spread,
        "channel": channel,
        "critical_layers": sum(entry.count for entry in step.layers if entry.critical == tier.name),
        "provenance": provenance.kind,
        "parts": [part.to_dict() for part in provenance.parts],
    }


def _channel(tier: Tier, model: Model, step: StepTime) -> dict[str, Any]:
    """Return what the cycles of a tier's channels are: measured ones of the RTL, or why not.

    Cycles are those of one channel over all layers, start of the first operation to last state out of a bank group.
    """
    request = step.request
    why = why_not_measured(tier.device, model.attention, power_cap=request.power_cap, fraction=request.keep)
    if why:
        return {"provenance": "modelled", "why_not_measured": why}
    table = channel_table(tier.device)
    times = [(entry.count, entry.tiers[tier.name].channel) for entry in step.layers]
    return {
        "provenance": "measured-rtl",
        "preset": table.name,
        "verilog_sha256": table.verilog_sha256,
        "clock_hz": table.clock_hz,
        "free_cycles": sum(count * time.free_cycles for count, time in times if time is not None),
        "refresh_cycles": sum(count * time.refresh_cycles for count, time in times if time is not None),
        "passes": model.attention.group,
    }


def _layer(entry: LayerTime) -> dict[str, Any]:
    """Return one kind of layer; times are of one layer."""
    return {
        "kind": entry.layer.kind,
        "count": entry.count,
        "attended_tokens": entry.attended,
        "layer_us": entry.total_s * _US,
        "gpu_us": entry.gpu.total_s * _US,
        "attention_us": entry.attention_s * _US,
        "critical": entry.critical,
        "out_us": {name: seconds * _US for name, seconds in entry.out_s.items()},
        "tier_us": {name: time.total_s * _US for name, time in entry.tiers.items()},
        "gather_us": {name: seconds * _US for name, seconds in entry.gather_s.items()},
        "merge_us": entry.root_s * _US,
        "back_us": entry.back_s * _US,
    }


def _tier_parts(tier: Tier, model: Model, step: StepTime) -> tuple[Part, ...]:
    """Return what a tier's time is made from."""
    device, request = tier.device, step.request
    why = why_not_measured(device, model.attention, power_cap=request.power_cap, fraction=request.keep)
    if not why and device.channel_preset is not None:
        return (
            *channel_parts(device.channel_preset),
            *unit_parts(device.unit_preset, device.merge_preset),
            Part("model shape", "literature", model.source),
            Part(f"{tier.name} count", "literature", tier.count.source),
            Part("mapping to channels", "modelled", "sim/tier.py: pairs dealt to channels in turn, all alike"),
            Part("reduction above the bank groups", "modelled", "sim/tier.py: units' formulas, rate of the pins"),
        )
    printed = [("count", tier.count), ("unit clock", device.unit_clock_hz), ("power cap", device.cap_bytes_per_s)]
    if device.unit_column_s is not None:
        printed.append(("column period", device.unit_column_s))
    if device.page is not None:
        printed.append(("page read", device.page.page_read_s))
    return (
        *unit_parts(device.unit_preset, device.merge_preset),
        Part("model shape", "literature", model.source),
        *(Part(f"{tier.name} {name}", "literature", value.source) for name, value in printed),
        Part("mapping to channels and units", "modelled", f"sim/tier.py: no row activations, no refresh; {why}"),
    )


def _provenance(system: System, model: Model, step: StepTime, energy: Energy) -> dict[str, Any]:
    """Return class and parts of every number of the record's first level."""
    shape = Part("model shape", "literature", model.source)
    gpu = combine(gpu_parts(system, model))
    used = {entry.critical for entry in step.layers}
    tiers = combine(part for tier in system.tiers if tier.name in used for part in _tier_parts(tier, model, step))
    links = combine(
        [
            *(part for link in system.links.values() for part in link.parts),
            Part("transfers", "modelled", "sim/links.py: tiers that share a link wait for each other's bytes"),
        ]
    )
    root = unit_parts(ROOT_PRESET, system.gpu_tier.device.merge_preset)
    reduction = combine([tiers, *root])
    attention = combine([reduction, links])
    whole = combine([gpu, attention])
    numbers: dict[str, Provenance] = {
        "step_us": whole,
        "tokens_per_s": whole,
        "energy_j": combine([energy.provenance, whole]),
        "gpu_us": gpu,
        "attention_us": attention,
        "link_us": links,
        "send_us": gpu,
        "bubble_us": whole,
        "tier_us": tiers,
        "reduction_us": reduction,
        "reduction_busy_us": reduction,
        "reduction_share": attention,
        "active_tokens": combine([Part("context, batch and keep", "literature", "given on the command line")]),
        "kv_bytes_per_token": combine([shape]),
        "kv_bytes_total": combine([shape]),
        "weight_bytes": combine([shape, Part("parameter count", "modelled", "sim/models.py: no norms, no biases")]),
    }
    return {name: value.to_dict() for name, value in numbers.items()}
