"""How GPUs share a model: tensor parallel within a stage, stages of a pipeline after one another.

A stage is a machine of its own: its share of the GPUs, of every tier and of every link, with some of the layers.
Weights are divided over its GPUs; embedding lies with the first stage and the output head with the last (both keep it
where they share it). Keys and values lie with the stage of their layer. On GPUs alone they are divided by heads: where
GPUs are more than a model's KV heads, or no divisor of them, some heads are kept several times. Tiers that compute
keep tokens, not heads, and every token once.

Servers of GPUs alone may also be cut into groups that serve requests of their own and share a mixture's experts
(:mod:`sim.expert_parallel`). Requests are dealt to the groups evenly, and the groups go in step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sim.errors import ConfigError
from sim.gpu_server import GpuServer

if TYPE_CHECKING:
    from hw.presets import Value
    from sim.models import Attention, Model
    from sim.system import System

__all__ = ["Parallelism", "choose_parallelism", "kv_copies", "stage_machine", "stage_models", "stage_system"]


@dataclass(frozen=True, kw_only=True)
class Parallelism:
    """How the GPUs of a machine share a model.

    Parameters
    ----------
    tensor_parallel : int
        GPUs of a stage.
    pipeline_parallel : int
        Stages.
    micro_batches : int
        Parts that a step is cut into, at most one a token; each goes through the stages by itself.
    data_parallel : int
        Groups that serve requests of their own.
    """

    tensor_parallel: int
    pipeline_parallel: int
    micro_batches: int
    data_parallel: int = 1


def choose_parallelism(
    machine: System | GpuServer,
    *,
    tensor: int | None,
    pipeline: int | None,
    micro_batches: int | None,
    data: int = 1,
) -> Parallelism:
    """Return how a machine's GPUs share a model; what is not given follows from the number of GPUs.

    Parameters
    ----------
    machine : System or GpuServer
    tensor, pipeline : int or None
        GPUs of a stage, and stages: with neither one stage of all GPUs.
    micro_batches : int or None
        Parts of a step; as many as stages by default.
    data : int
        Groups that serve requests of their own.

    Raises
    ------
    ConfigError
        If the product is not the number of GPUs, there are micro-batches without a pipeline, or groups with one or on a
        system with tiers.
    """
    if data > 1:
        return _groups(machine, tensor=tensor, pipeline=pipeline, data=data)
    count = machine.gpu.count.integer
    given = f"tp {tensor or 'not given'}, pp {pipeline or 'not given'}"
    if tensor is None:
        pipeline = pipeline or 1
        tensor = count // pipeline
    elif pipeline is None:
        pipeline = count // tensor
    if tensor * pipeline != count:
        raise ConfigError(f"tp times pp must be the {count} GPUs of {machine.name}, not {given}")
    if pipeline == 1 and micro_batches not in (None, 1):
        raise ConfigError(f"micro-batches must be 1 without a pipeline, not {micro_batches}")
    return Parallelism(tensor_parallel=tensor, pipeline_parallel=pipeline, micro_batches=micro_batches or pipeline)


def _groups(machine: System | GpuServer, *, tensor: int | None, pipeline: int | None, data: int) -> Parallelism:
    """Return groups that serve requests of their own."""
    count = machine.gpu.count.integer
    if not isinstance(machine, GpuServer):
        raise ConfigError(f"dp must be 1 on {machine.name}, whose memories serve all requests, not {data}")
    if pipeline not in (None, 1):
        raise ConfigError(f"dp must be 1 with a pipeline of {pipeline} stages, not {data}")
    if data * (tensor or count // data) != count:
        raise ConfigError(
            f"dp times tp must be the {count} GPUs of {machine.name}, not dp {data}, tp {tensor or 'not given'}"
        )
    return Parallelism(tensor_parallel=count // data, pipeline_parallel=1, micro_batches=1, data_parallel=data)


def kv_copies(attention: Attention, tensor_parallel: int) -> float:
    """Return how many times GPUs that share heads keep keys and values: ``n ceil(h / n) / h``."""
    heads = attention.stored_heads
    return tensor_parallel * -(-heads // tensor_parallel) / heads


def stage_models(model: Model, stages: int) -> list[Model]:
    """Return the part of a model that each stage has: layers in turn, the first stages one more where it must be.

    Raises
    ------
    ConfigError
        If there are more stages than layers.
    """
    if stages == 1:
        return [model]
    count = len(model.layers)
    if stages > count:
        raise ConfigError(f"pp must be at most the {count} layers of {model.name}, not {stages}")
    found: list[Model] = []
    start = 0
    for stage in range(stages):
        end = start + count // stages + (stage < count % stages)
        layers = model.layers[start:end]
        if stage == 0:
            part = replace(model, layers=layers, tied=True)
        elif stage == stages - 1:
            part = replace(model, layers=layers, tied=True, positions=0)
        else:
            part = replace(model, layers=layers, vocab=0, positions=0)
        found.append(part)
        start = end
    return found


def stage_machine(machine: System | GpuServer, stages: int) -> System | GpuServer:
    """Return the machine of one stage: its share of GPUs, devices, reserve and links.

    Raises
    ------
    ConfigError
        If devices of a tier can't be shared out evenly.
    """
    if not isinstance(machine, GpuServer):
        return stage_system(machine, stages)
    return replace(machine, gpu=replace(machine.gpu, count=_share("GPUs", machine.gpu.count, stages)))


def stage_system(machine: System, stages: int) -> System:
    """Return the system of one stage, as :func:`stage_machine` does."""
    if stages == 1:
        return machine
    count = _share("GPUs", machine.gpu.count, stages)
    links = {name: replace(link, bytes_per_s=link.bytes_per_s / stages) for name, link in machine.links.items()}
    tiers = tuple(
        replace(
            tier,
            count=_share(f"devices of {tier.name}", tier.count, stages),
            path=tuple(links[link.name] for link in tier.path),
        )
        for tier in machine.tiers
    )
    reserved = replace(machine.gpu.reserved_bytes, value=machine.gpu.reserved_bytes.integer // stages)
    return replace(machine, gpu=replace(machine.gpu, count=count, reserved_bytes=reserved), links=links, tiers=tiers)


def _share(what: str, count: Value, stages: int) -> Value:
    """Return a stage's share of a count."""
    if count.integer % stages:
        raise ConfigError(f"pp must divide the {count.integer} {what}, not {stages}")
    return replace(count, value=count.integer // stages)
