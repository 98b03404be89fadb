"""The result of a decode step with retrieval as one plain record: times, what is held, where each number comes from."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from sim.calibration import factors
from sim.errors import CapacityError
from sim.manifest import host, manifest
from sim.provenance import Part, combine
from sim.retrieval.gpu_attention import gpu_attention_sources
from sim.retrieval.gpu_layers import gpu_sources, weight_bytes
from sim.retrieval.pnm import pnm_sources
from sim.retrieval.stages import STAGES
from sim.retrieval.step import memory_factors, retrieval_step

if TYPE_CHECKING:
    from sim.models import Model
    from sim.provenance import Provenance
    from sim.retrieval.machine import RetrievalSystem
    from sim.retrieval.memory import Memory
    from sim.retrieval.request import RetrievalRequest
    from sim.retrieval.step import RetrievalLayer, RetrievalStep

__all__ = ["retrieval_record"]

_US = 1e6
_NO_ENERGY = {
    True: "no source for what a bit and an operation of PNM devices cost",
    False: "bytes and operations of selection on GPUs are counted in time alone",
}
_PLACEMENTS = {"pnm": "home-device", "host": "host", "gpu": "gpu"}


def retrieval_record(system: RetrievalSystem, model: Model, request: RetrievalRequest) -> dict[str, Any]:
    """Return the record of one decode step.

    Times are in microseconds and hold for the whole step unless the key says otherwise.

    Parameters
    ----------
    system : RetrievalSystem
    model : Model
    request : RetrievalRequest

    Raises
    ------
    SimError
        If the step can't be run.
    """
    step = retrieval_step(system, model, request)
    attended = sum(entry.count * entry.work.attended for entry in step.layers) / len(model.layers)
    index_token = sum(entry.count * entry.work.index_token_bytes for entry in step.layers)
    stages = _stages(system, step)
    gpu = combine(gpu_sources(system, model))
    attention = combine(part for stage in stages for part in _sources(system, stage["name"], stage["unit"] is not None))
    record: dict[str, Any] = {
        "system": system.name,
        "model": model.name,
        "context": request.context,
        "batch": request.batch,
        "method": step.method,
        "budget": None if step.method in ("trained", "dense") else request.budget,
        "dense_layers": request.dense_layers,
        "placement": _PLACEMENTS[step.memories[-1].name],
        "keep": attended / request.tokens,
        "active_tokens": round(request.batch * attended),
        "step_us": step.total_s * _US,
        "tokens_per_s": request.batch / step.total_s,
        "gpu_us": step.gpu_s * _US,
        "attention_us": step.attention_s * _US,
        "link_us": step.link_s * _US,
        "overlap": {
            "kind": "serial",
            "note": "GPUs wait for attention in every layer; within it the query follows the index query behind SCORE "
            "and SELECT, and attention follows the gathered tokens",
            "bound_us": step.bound_s * _US,
            "bound_note": "busiest of GPUs, devices and links: no schedule of whole stages is faster",
        },
        "reduction_us": None,
        "reduction_busy_us": None,
        "reduction_share": None,
        "reduction_note": "null: how a device merges its cores' states is not modelled",
        "kv_bytes_per_token": model.kv_bytes_per_token,
        "index_bytes_per_token": index_token,
        "kv_bytes_total": request.batch * request.context * model.kv_bytes_per_token,
        "weight_bytes": weight_bytes(system, model),
        "energy_j": None,
        "energy_note": "null: " + _NO_ENERGY[system.pnm is not None],
        "energy_bound_j": _bound_j(system, step),
        "energy_bound_note": "GPUs at board power and devices at design power all through the step, without hosts",
        "largest_batch": _largest_batch(system, model, request),
        "same_factor": _same_factor(system, model, request),
        "gpu": _gpu(step),
        "stages": stages,
        "devices": [_device(system, memory, step, stages, gpu, attention) for memory in step.memories],
        "layers": [_layer(entry) for entry in step.layers],
        "utilisation": {name: factor.value for name, factor in factors().items() if name.endswith("utilisation")},
        "provenance": {
            "step_us": combine([gpu, attention]).to_dict(),
            "gpu_us": gpu.to_dict(),
            "attention_us": attention.to_dict(),
            "kv_bytes_per_token": combine([Part("model shape", "literature", model.source)]).to_dict(),
        },
        "deviations": [],
    }
    inputs = {
        "system": {name: value.to_dict() for name, value in system.values()},
        "collectives": {name: value.to_dict() for name, value in system.server.gpu.collectives.values()},
        "model": asdict(model),
        "request": asdict(request),
        "calibration": {name: factor.value for name, factor in factors().items()},
    }
    record["manifest"] = manifest(inputs)
    record["host"] = host()
    return record


def _bound_j(system: RetrievalSystem, step: RetrievalStep) -> float | None:
    """Return what the step takes if GPUs and devices draw all that they may; None without a source of it."""
    gpu, pnm = system.server.gpu, system.pnm
    if gpu.board_w is None:
        return None
    watts = gpu.count.integer * gpu.board_w.number
    if pnm is not None:
        watts += pnm.count.integer * pnm.device.tdp_w.number
    return watts * step.total_s


def _sources(system: RetrievalSystem, stage: str, by_unit: bool) -> tuple[Part, ...]:
    """Return what the time of a stage is made from."""
    return gpu_attention_sources(system, stage) if system.pnm is None else pnm_sources(system, stage, by_unit)


def _stages(system: RetrievalSystem, step: RetrievalStep) -> list[dict[str, Any]]:
    """Return every stage over all layers."""
    found: list[dict[str, Any]] = []
    for name in STAGES:
        each = [(entry.count, stage) for entry in step.layers for stage in entry.stages if stage.name == name]
        if not each:
            continue
        cycles = sum(count * stage.unit_cycles for count, stage in each)
        provenance = combine(_sources(system, name, cycles > 0))
        units = [part for part in provenance.parts if part.kind == "formula-rtl"]
        longest = max(each, key=lambda entry: entry[0] * entry[1].busy_s)[1]
        found.append(
            {
                "name": name,
                "us": sum(count * stage.seconds for count, stage in each) * _US,
                "busy_us": sum(count * stage.busy_s for count, stage in each) * _US,
                "layers": sum(count for count, _ in each),
                "bytes": sum(count * stage.read_bytes for count, stage in each),
                "flops": sum(count * stage.flops for count, stage in each),
                "bound": longest.bound,
                "unit": {"cycles": cycles, "provenance": "formula-rtl", "source": units[0].source} if cycles else None,
                "provenance": provenance.kind,
                "parts": [part.to_dict() for part in provenance.parts],
            }
        )
    return found


def _gpu(step: RetrievalStep) -> dict[str, Any]:
    """Return the GPUs' part without attention."""
    parts = ("projections_s", "norms_s", "feed_forward_s", "allreduce_s", "alltoall_s")
    found = {
        f"{part.removesuffix('_s')}_us": sum(entry.count * getattr(entry.gpu, part) for entry in step.layers) * _US
        for part in parts
    }
    return {**found, "head_us": step.head_s * _US}


def _device(
    system: RetrievalSystem,
    memory: Memory,
    step: RetrievalStep,
    stages: list[dict[str, Any]],
    gpu: Provenance,
    attention: Provenance,
) -> dict[str, Any]:
    """Return one kind of device: what the fullest holds, and how long the busiest works."""
    near = [stage for stage in stages if stage["bound"] != "link" or stage["name"] == "gather"]
    attends = memory is step.memories[-1] if system.host is None else memory.name == "gpu"
    busy = sum(stage["us"] for stage in near) if attends else 0.0
    bound = max(near, key=lambda stage: stage["us"])["bound"] if attends else "projections and feed-forward"
    read = sum(stage["bytes"] for stage in near) if attends else 0
    if memory.name == "gpu":
        busy += step.gpu_s * _US
    clock = system.pnm.device.core_clock_hz.number if system.pnm is not None and memory.name == "pnm" else None
    provenance = combine([gpu, attention] if memory.name == "gpu" and attends else [gpu if not attends else attention])
    return {
        "name": memory.name,
        "count": memory.count,
        "requests": memory.requests,
        "tokens": memory.requests * step.request.tokens if memory.kv_bytes else 0,
        "kv_bytes": memory.kv_bytes,
        "index_bytes": memory.index_bytes,
        "weight_bytes": memory.weight_bytes,
        "held_bytes": memory.held_bytes,
        "capacity_bytes": memory.room_bytes,
        "us": busy if memory.name != "host" else 0.0,
        "cycles": None if clock is None else round(busy * clock / _US),
        "clock_hz": clock,
        "bytes": read,
        "bound": bound if memory.name != "host" else "none: it is read over the GPUs' links",
        "provenance": provenance.kind,
    }


def _layer(entry: RetrievalLayer) -> dict[str, Any]:
    """Return one kind of layer; times are of one layer."""
    return {
        "kind": entry.layer.kind,
        "index_role": entry.layer.index_role,
        "count": entry.count,
        "attended_tokens": entry.work.attended,
        "layer_us": (entry.gpu.total_s + entry.attention_s) * _US,
        "gpu_us": entry.gpu.total_s * _US,
        "attention_us": entry.attention_s * _US,
        "stages_us": {stage.name: stage.seconds * _US for stage in entry.stages},
    }


def _same_factor(system: RetrievalSystem, model: Model, request: RetrievalRequest) -> dict[str, Any]:
    """Return the step with the other kind of machine's share of the memory's peak, so that the two can be compared."""
    own, other = memory_factors(system)
    step = retrieval_step(system, model, request, other.value)
    return {
        "factor": other.name,
        "value": other.value,
        "own_factor": own.name,
        "own_value": own.value,
        "step_us": step.total_s * _US,
        "attention_us": step.attention_s * _US,
        "bound_us": step.bound_s * _US,
    }


def _largest_batch(system: RetrievalSystem, model: Model, request: RetrievalRequest) -> dict[str, Any]:
    """Return the most requests of this context that fit, and their step."""

    def fits(batch: int) -> RetrievalStep | None:
        try:
            return retrieval_step(system, model, replace(request, batch=batch))
        except CapacityError:
            return None

    low, high = request.batch, 2 * request.batch
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    step = fits(low)
    assert step is not None, "the batch that was asked for fits"
    return {"batch": low, "step_us": step.total_s * _US, "tokens_per_s": low / step.total_s}
