"""The result of a run as one plain record: the keys that scripts rely on, and where each number comes from."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.calibration import factors
from sim.energy.account import account
from sim.energy.activity import steps_activity
from sim.manifest import host, manifest
from sim.provenance import Part, combine
from sim.serving.host import SERVER_FACTORS
from sim.serving.machine import tier_names
from sim.serving.metrics import latencies_s, percentiles
from sim.serving.moves import moves_record
from sim.serving.reads import reads_record
from sim.serving.saturation import is_saturated
from sim.tiering.ratio import Ratio

if TYPE_CHECKING:
    import numpy.typing as npt

    from sim.energy.account import Energy
    from sim.serving.service import Service

__all__ = ["request_rows", "service_record"]

_MS = 1e3


def service_record(service: Service, *, slo_ms: float | None) -> dict[str, Any]:
    """Return the record of a run.

    Parameters
    ----------
    service : Service
    slo_ms : float or None
        Level that p99 tbt and mean tpot are held against.
    """
    states, log, request = service.states, service.log, service.request
    done = np.flatnonzero(states.is_done(np.arange(len(states))))
    measured = done[done >= service.first_measured]
    times = latencies_s(states, measured)
    gaps, counts = np.array(log.gap_s), np.array(log.gap_counts, np.int64)
    tbt = percentiles(gaps, counts)
    tokens_out = int(states.given.sum())
    came = states.arrival_s[~np.isnan(states.arrival_s)]
    record: dict[str, Any] = {
        "system": service.machine.name,
        "model": service.model.name,
        "trace": _trace(service),
        **_plan(service),
        "fill": request.fill,
        **asdict(request.params),
        **asdict(service.parallelism),
        "kv_copies": service.kv_copies,
        "rate_scale": request.rate_scale,
        "sessions": request.sessions,
        "warmup": request.warmup,
        "power_cap": request.power_cap,
        "prefix_reuse": request.prefix_reuse,
        "requests": len(states),
        "served": len(done),
        "refused": len(log.refused),
        "refused_bytes": _refused_bytes(service),
        "unfinished": len(states) - len(done) - len(log.refused),
        "skipped_lines": service.trace.skip_reasons(),
        "measured_requests": len(measured),
        "tokens_in": int(states.input_tokens[done].sum()),
        "tokens_out": tokens_out,
        **{f"{name}_ms": percentiles(times[name]) for name in ("ttft", "tpot", "queue", "e2e")},
        "tbt_ms": tbt,
        "tokens_per_s": tokens_out / log.end_s if log.end_s else 0.0,
        "slo_ms": slo_ms,
        "slo_attained": _slo(slo_ms, tbt, times["tpot"]),
        "preemptions": log.preemptions,
        "saturated": not request.sessions and is_saturated(log, came),
        **_energy(service).to_record(),
        **reads_record(service),
        **moves_record(service),
        "swapped_tokens": log.swapped_tokens,
        "prompt_tokens_computed": log.prompt_tokens,
        "prompt_tokens_reused": log.reused_tokens,
        "steps": log.steps,
        "sim_s": log.end_s,
        "busy_s": log.busy_s,
        "parts_s": service.steps.parts_s(),
        "tiers": _tiers(service),
        "wall_s": service.wall_s,
        "provenance": _provenance(service),
    }
    record["manifest"] = manifest(_inputs(service, slo_ms), seed=request.plan.seed)
    record["host"] = host() | {"steps_per_s": log.steps / service.wall_s}
    return record


def request_rows(service: Service) -> list[dict[str, Any]]:
    """Return one row a request, in the order of arrival; times in ms, nothing where there is none."""
    states = service.states
    refused = set(service.log.refused)
    rows: list[dict[str, Any]] = []
    for number, entry in enumerate(service.trace.requests):
        arrival, admitted = states.arrival_s[number], states.admitted_s[number]
        first, last, outputs = states.first_s[number], states.last_s[number], entry.output_tokens
        done = states.given[number] >= outputs
        rows.append(
            {
                "line": entry.line,
                "input_tokens": entry.input_tokens,
                "output_tokens": outputs,
                "outcome": "refused" if number in refused else "served" if done else "unfinished",
                "kv_bytes": states.most_tokens(number) * service.model.kv_bytes_per_token,
                "arrival_s": _number(arrival, 1.0),
                "queue_ms": _number(admitted - arrival, _MS),
                "ttft_ms": _number(first - arrival, _MS),
                "tpot_ms": _number((last - first) / (outputs - 1), _MS) if done and outputs > 1 else None,
                "e2e_ms": _number(last - arrival, _MS) if done else None,
                "preemptions": int(states.preemptions[number]),
            }
        )
    return rows


def _number(value: float, factor: float) -> float | None:
    """Return a time in another unit; None for what did not happen."""
    return None if np.isnan(value) else float(value) * factor


def _trace(service: Service) -> dict[str, Any]:
    trace = service.trace
    return {
        "name": trace.name,
        "format": trace.format,
        "sha256": trace.sha256,
        "rows": trace.rows,
        "span_s": trace.span_s,
        "has_arrivals": trace.has_arrivals,
        "oddities": trace.oddities,
    }


def _plan(service: Service) -> dict[str, Any]:
    """Return by what tokens are chosen and moved."""
    plan = service.request.plan
    return {
        "policy": plan.policy_name,
        "sparsity": plan.sparsity.name,
        "fidelity": plan.fidelity,
        "locality": plan.locality_name,
        "locality_changes": dict(plan.locality_changes),
        "swap_budget": plan.swap_budget,
        "ratio": list(plan.policy.kept_ratio) if isinstance(plan.policy, Ratio) else None,
        "score": plan.score if isinstance(plan.policy, Ratio) else None,
    }


def _refused_bytes(service: Service) -> dict[str, int] | None:
    """Return what the refused would have had to store, and what there is room for; None where nobody was."""
    if not service.log.refused:
        return None
    wanted = [service.states.most_tokens(number) * service.model.kv_bytes_per_token for number in service.log.refused]
    room = service.store.total_blocks * service.block_bytes
    return {"least": min(wanted), "most": max(wanted), "room": room}


def _slo(slo_ms: float | None, tbt: dict[str, Any] | None, tpot_s: npt.NDArray[np.float64]) -> dict[str, bool] | None:
    """Return whether the level is met as either paper counts; None without a level or a second token."""
    if slo_ms is None or tbt is None or not len(tpot_s):
        return None
    return {"p99_tbt": tbt["p99"] <= slo_ms, "mean_tpot": float(tpot_s.mean()) * _MS <= slo_ms}


def _energy(service: Service) -> Energy:
    """Return the energy from the first arrival on to the end of the last step."""
    log = service.log
    activity = steps_activity(
        service.machine,
        service.model,
        log.works,
        service.parallelism,
        seconds=log.end_s,
        busy_s=log.busy_s,
        sparsity=service.request.plan.sparsity,
    )
    return account(service.machine, activity, left_out=service.request.energy_without)


def _tiers(service: Service) -> list[dict[str, Any]]:
    """Return room, occupancy and traffic of each tier; bytes read count every attended token of every layer once."""
    log, per_token = service.log, service.model.kv_bytes_per_token
    rows: list[dict[str, Any]] = []
    for index, (name, room) in enumerate(zip(tier_names(service.machine), service.room_bytes, strict=True)):
        appended = sum(work.decode_appended[index] + work.prompt_appended[index] for work in log.works)
        rows.append(
            {
                "name": name,
                "room_bytes": room,
                "peak_bytes": max((held[index] for held in log.occupied), default=0) * service.block_bytes,
                "attended_tokens": round(sum(work.tier_tokens[index] for work in log.works)),
                "fullest_group": _fullest(service, index),
                "attended_bytes": round(sum(work.tier_tokens[index] for work in log.works)) * per_token,
                "fetched_bytes": sum(work.prompt_context[index] for work in log.works) * per_token,
                "written_bytes": appended * per_token,
            }
        )
    return rows


def _fullest(service: Service, index: int) -> float | None:
    """Return what attention to a tier's tokens takes for its fullest bank groups, in times of even ones."""
    works = [work for work in service.log.works if work.tier_tokens[index]]
    if not works:
        return None
    tokens = sum(work.tier_tokens[index] for work in works)
    return sum((work.tier_fullest or work.tier_tokens)[index] for work in works) / tokens


def _inputs(service: Service, slo_ms: float | None) -> dict[str, Any]:
    """Return everything that decides the record."""
    return {
        "machine": {name: value.to_dict() for name, value in service.machine.values()},
        "collectives": {name: value.to_dict() for name, value in service.machine.gpu.collectives.values()},
        "model": asdict(service.model),
        "trace": service.trace.sha256,
        "request": asdict(service.request),
        "slo_ms": slo_ms,
        "calibration": {name: factor.value for name, factor in factors().items()},
    }


def _provenance(service: Service) -> dict[str, Any]:
    """Return class and parts of every time in the record."""
    used = ("gpu_compute_utilisation", "gpu_memory_utilisation", *SERVER_FACTORS)
    return combine(
        [
            Part("model shape", "literature", service.model.source),
            *(Part(name, "literature", value.source) for name, value in service.machine.values()),
            service.machine.gpu.collectives.part,
            *(factors()[name].part for name in used),
            Part("arrivals and lengths", "literature", f"trace {service.trace.name}, sha256 {service.trace.sha256}"),
            Part("steps", "modelled", "sim/serving: GPUs by roofline, tiers at mean lengths, parts one after another"),
        ]
    ).to_dict()
