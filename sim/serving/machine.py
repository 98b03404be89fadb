"""Machines that serve, systems with tiers and servers of GPUs alone: their room for keys and values, their steps.

With a pipeline every stage is a machine of its own (:mod:`sim.serving.parallelism`); a token has room where it has room
in all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.errors import CapacityError
from sim.expert_parallel import group_of, grouped_weight_bytes
from sim.gpu import activation_bytes
from sim.gpu_server import GPU_SERVERS, GpuServer
from sim.latent import refuse_latent
from sim.placement import kv_room
from sim.serving.gpu_model import GpuStepModel
from sim.serving.parallelism import kv_copies, stage_machine, stage_models
from sim.serving.pipeline import PipelineStepModel
from sim.serving.step_model import TierStepModel
from sim.system_config import load_system

if TYPE_CHECKING:
    from sim.models import Model
    from sim.serving.host import ServerFactors
    from sim.serving.parallelism import Parallelism
    from sim.serving.parameters import ServerParams
    from sim.serving.pipeline import StageModel
    from sim.system import System
    from sim.tiering.sparsity import Sparsity

__all__ = ["load_machine", "step_model", "tier_names", "tier_room_bytes"]


def load_machine(name: str) -> System | GpuServer:
    """Return a server of GPUs or a system by its name, or the system that a TOML file describes.

    Raises
    ------
    ConfigError
        If there is none of that name, or the file can't be used.
    """
    return GPU_SERVERS[name] if name in GPU_SERVERS else load_system(name)


def tier_names(machine: System | GpuServer) -> list[str]:
    """Return the names of the memories that hold keys and values, the nearest first."""
    return ["gpu-memory"] if isinstance(machine, GpuServer) else [tier.name for tier in machine.tiers]


def tier_room_bytes(
    machine: System | GpuServer,
    model: Model,
    params: ServerParams,
    longest_prompt: int,
    parallelism: Parallelism | None = None,
) -> list[int]:
    """Return the bytes that each memory has for keys and values, each counted once however often it is kept.

    Weights and the activations of the largest step come first: a step's token budget, or under ``prefill-first`` the
    longest prompt if that is more, with logits for every request that may run.

    Raises
    ------
    CapacityError
        If weights and activations leave no room.
    ConfigError
        If devices or layers can't be shared out to the stages.
    """
    whole = longest_prompt if params.scheduler == "prefill-first" else 0
    tokens, sampled = max(params.token_budget, params.max_running, whole), params.max_running
    if parallelism is None or parallelism.pipeline_parallel == 1:
        groups = 1 if parallelism is None else parallelism.data_parallel
        return _room_bytes(machine, model, tokens=tokens, sampled=sampled, groups=groups)
    stages = parallelism.pipeline_parallel
    stage, parts = stage_machine(machine, stages), stage_models(model, stages)
    rooms: list[list[int]] = []
    for part in parts:
        room = _room_bytes(stage, part, tokens=tokens, sampled=sampled if part is parts[-1] else 0)
        rooms.append([tier // part.kv_bytes_per_token for tier in room])
    return [min(tier) * model.kv_bytes_per_token for tier in zip(*rooms, strict=True)]


def _room_bytes(machine: System | GpuServer, model: Model, *, tokens: int, sampled: int, groups: int = 1) -> list[int]:
    """Return the bytes that each memory of one stage has for keys and values."""
    if not isinstance(machine, GpuServer):
        return kv_room(machine, model, tokens=tokens, sampled=sampled)
    group = group_of(machine, groups)
    activations = activation_bytes(group, model, tokens=-(-tokens // groups), sampled=-(-sampled // groups))
    used = grouped_weight_bytes(model, groups) + groups * activations
    if used > machine.usable_bytes:
        raise CapacityError(
            f"weights of {model.name} and activations on {machine.name}",
            wanted_bytes=used,
            available_bytes=machine.usable_bytes,
            detail=f"{len(model.layers)} layers on {machine.gpu.count.integer} GPUs",
        )
    return [int((machine.usable_bytes - used) // kv_copies(model.attention, group.gpu.count.integer))]


def step_model(
    machine: System | GpuServer,
    model: Model,
    factors: ServerFactors,
    *,
    power_cap: str,
    parallelism: Parallelism | None = None,
    sparsity: Sparsity | None = None,
) -> StageModel:
    """Return the model of a machine's step times.

    Raises
    ------
    UnsupportedError
        If the model has multi-head latent attention, which the units of a system's tiers can't keep up with.
    """
    if parallelism is None or parallelism.pipeline_parallel == 1:
        groups = 1 if parallelism is None else parallelism.data_parallel
        return _stage_model(machine, model, factors, power_cap=power_cap, sparsity=sparsity, groups=groups)
    stages = parallelism.pipeline_parallel
    stage = stage_machine(machine, stages)
    models: dict[Model, StageModel] = {}
    for part in stage_models(model, stages):
        if part not in models:
            models[part] = _stage_model(stage, part, factors, power_cap=power_cap, sparsity=sparsity)
    return PipelineStepModel(
        [models[part] for part in stage_models(model, stages)],
        parallelism,
        stage.gpu,
        hidden=model.hidden,
    )


def _stage_model(
    machine: System | GpuServer,
    model: Model,
    factors: ServerFactors,
    *,
    power_cap: str,
    sparsity: Sparsity | None,
    groups: int = 1,
) -> TierStepModel | GpuStepModel:
    """Return the model of one stage's step times."""
    if isinstance(machine, GpuServer):
        return GpuStepModel(machine, model, factors, groups=groups)
    refuse_latent(machine, model, power_cap)
    return TierStepModel(machine, model, factors, power_cap=power_cap, sparsity=sparsity)
