"""A decode step on GPUs alone as other models of such steps split it: all of it, attention, exchange between GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hw.presets import Value
from sim.calibration import factors
from sim.comparisons.row import calibrated_row
from sim.gpu import layer_time
from sim.serving.batch import StepWork
from sim.serving.gpu_model import GpuStepModel
from sim.serving.host import ServerFactors

if TYPE_CHECKING:
    from sim.gpu_server import GpuServer
    from sim.models import Model

__all__ = ["GPU_FACTORS", "LIMIT", "StepParts", "at_full_rate", "decode_parts", "step_rows"]

GPU_FACTORS = ("gpu_compute_utilisation", "gpu_memory_utilisation", "gpu_attention_utilisation")
"""Factors of ``calibration.toml`` that such a step has."""

LIMIT = 0.15
"""A part of a step holds within this."""

_MS = 1e3


@dataclass(frozen=True)
class StepParts:
    """Seconds of a decode step: all of it, attention, exchange between the GPUs."""

    step_s: float
    attention_s: float
    exchange_s: float


def decode_parts(
    server: GpuServer, model: Model, *, tokens: int, batch: int, attention_utilisation: float, head: bool
) -> StepParts:
    """Return a decode step without a host.

    Parameters
    ----------
    server : GpuServer
    model : Model
    tokens : int
        Tokens that each request attends to, the step's own included.
    batch : int
        Requests.
    attention_utilisation : float
        Share of the memory's peak at which keys and values are read.
    head : bool
        Embedding and output head are part of the step.
    """
    used = ServerFactors(attention_utilisation, tile_utilisation=1.0, kernel_s=0.0)
    steps = GpuStepModel(server, model, used)
    seconds = steps.step_s(
        StepWork(
            decoding=batch,
            tier_tokens=(batch * tokens,),
            tier_requests=(batch,),
            prompt_requests=0,
            prompt_tokens=0,
            prompt_pairs=0,
            prompt_context=(0,),
            decode_appended=(batch,),
            prompt_appended=(0,),
            ending=batch if head else 0,
            swapped_tokens=0,
        )
    )
    exchange = sum(count * layer_time(server, model, layer, batch).allreduce_s for layer, count in model.layer_groups())
    return StepParts(seconds, steps.attention_s, exchange)


def at_full_rate(server: GpuServer) -> GpuServer:
    """Return the server with peaks that our utilisation leaves at those of ``server``."""
    gpu = server.gpu
    changed = {
        name: Value(value.number / factors()[factor].value, value.unit, f"{value.source}, over {factor}")
        for name, value, factor in (
            ("peak_flops", gpu.peak_flops, "gpu_compute_utilisation"),
            ("memory_bytes_per_s", gpu.memory_bytes_per_s, "gpu_memory_utilisation"),
        )
    }
    return replace(server, gpu=replace(gpu, **changed))


def step_rows(
    name: str, reference: StepParts, ours: StepParts, default: StepParts, *, source: str, note: str
) -> list[dict[str, Any]]:
    """Return the rows of one step in ms; what the reference has not, such as exchange of one GPU, has no row.

    Parameters
    ----------
    name : str
        Of the step.
    reference, ours, default : StepParts
        The other model's, ours, and ours with all factors at their defaults.
    source, note : str
        Where the reference stands, and what is not like for like.
    """
    rows: list[dict[str, Any]] = []
    for part, theirs, mine, plain in (
        ("step", reference.step_s, ours.step_s, default.step_s),
        ("attention", reference.attention_s, ours.attention_s, default.attention_s),
        ("exchange", reference.exchange_s, ours.exchange_s, default.exchange_s),
    ):
        if theirs:
            rows.append(
                calibrated_row(
                    f"{name}: {part}",
                    theirs * _MS,
                    mine * _MS,
                    plain * _MS,
                    unit="ms",
                    source=source,
                    within=abs(mine / theirs - 1) <= LIMIT,
                    fit=False,
                    note=note,
                )
            )
    return rows
