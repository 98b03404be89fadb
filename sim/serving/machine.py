"""Machines that serve, systems with tiers and servers of GPUs alone: their room for keys and values, their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.errors import CapacityError
from sim.gpu import activation_bytes
from sim.gpu_server import GPU_SERVERS, GpuServer
from sim.latent import refuse_latent
from sim.placement import kv_room
from sim.serving.gpu_model import GpuStepModel
from sim.serving.step_model import TierStepModel
from sim.system_config import load_system

if TYPE_CHECKING:
    from sim.models import Model
    from sim.serving.host import ServerFactors
    from sim.serving.parameters import ServerParams
    from sim.system import System

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


def tier_room_bytes(machine: System | GpuServer, model: Model, params: ServerParams, longest_prompt: int) -> list[int]:
    """Return the bytes that each memory has for keys and values.

    Weights and the activations of the largest step come first: a step's token budget, or under ``prefill-first`` the
    longest prompt if that is more, with logits for every request that may run.

    Raises
    ------
    CapacityError
        If weights and activations leave no room.
    """
    whole = longest_prompt if params.scheduler == "prefill-first" else 0
    tokens, sampled = max(params.token_budget, params.max_running, whole), params.max_running
    if not isinstance(machine, GpuServer):
        return kv_room(machine, model, tokens=tokens, sampled=sampled)
    used = model.weight_bytes + activation_bytes(machine, model, tokens=tokens, sampled=sampled)
    if used > machine.usable_bytes:
        raise CapacityError(
            f"weights of {model.name} and activations on {machine.name}",
            wanted_bytes=used,
            available_bytes=machine.usable_bytes,
        )
    return [machine.usable_bytes - used]


def step_model(
    machine: System | GpuServer, model: Model, factors: ServerFactors, *, power_cap: str
) -> TierStepModel | GpuStepModel:
    """Return the model of a machine's step times.

    Raises
    ------
    UnsupportedError
        If the model has multi-head latent attention, which the units of a system's tiers can't keep up with.
    """
    if isinstance(machine, GpuServer):
        return GpuStepModel(machine, model, factors)
    refuse_latent(machine, model, power_cap)
    return TierStepModel(machine, model, factors, power_cap=power_cap)
