"""What steps move and compute, counted from what each of them did.

Counts, not times: bytes through the pins of each memory, bytes and operations of the units near it, bytes on each link,
operations and bytes of the GPUs. A step's weights are read once a micro-batch. Pages that are read whole count as the
bytes of their tokens where these lie side by side (:mod:`sim.energy.tiering`); a pair that several devices share sends
one state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from sim.attention import QUERY_BYTES
from sim.collectives import ring_bytes
from sim.energy.tiering import count_tiering
from sim.expert_parallel import exchanged_bytes, grouped_layer_time
from sim.gpu import ACTIVATION_BYTES, head_time, layer_time
from sim.gpu_server import GpuServer
from sim.serving.parallelism import kv_copies, stage_machine
from sim.tiering.sparsity import Sparsity
from sim.unit_cycles import state_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sim.models import Model
    from sim.serving.batch import StepWork
    from sim.serving.parallelism import Parallelism
    from sim.system import System

__all__ = ["Activity", "steps_activity"]


def _zeros() -> defaultdict[str, float]:
    return defaultdict(float)


@dataclass
class Activity:
    """Counts of one or many steps; those by memory and link have the names of the machine.

    Parameters
    ----------
    seconds, busy_s : float
        Time that passed, and of it time in steps.
    gpu_flops, gpu_bytes : float
        Operations of the GPUs, and bytes that they read and write.
    near_bytes, macs : defaultdict of str to float
        Bytes that units near a memory read, and multiplications and additions that they do.
    read_bytes, written_bytes : defaultdict of str to float
        Bytes out of and into a memory through its pins.
    link_bytes : defaultdict of str to float
        Bytes on each link, a message on several links on each of them.
    """

    seconds: float = 0.0
    busy_s: float = 0.0
    gpu_flops: float = 0.0
    gpu_bytes: float = 0.0
    near_bytes: defaultdict[str, float] = field(default_factory=_zeros)
    macs: defaultdict[str, float] = field(default_factory=_zeros)
    read_bytes: defaultdict[str, float] = field(default_factory=_zeros)
    written_bytes: defaultdict[str, float] = field(default_factory=_zeros)
    link_bytes: defaultdict[str, float] = field(default_factory=_zeros)


def steps_activity(
    machine: System | GpuServer,
    model: Model,
    works: Sequence[StepWork],
    parallelism: Parallelism,
    *,
    seconds: float,
    busy_s: float,
    sparsity: Sparsity | None = None,
) -> Activity:
    """Return what steps moved and computed.

    Parameters
    ----------
    machine : System or GpuServer
    model : Model
    works : sequence of StepWork
        What each step did.
    parallelism : Parallelism
    seconds, busy_s : float
        Time that passed, and of it time in steps.
    sparsity : Sparsity or None
        How tokens are chosen, on a system with tiers; None where all are read.
    """
    activity = Activity(seconds=seconds, busy_s=busy_s)
    if works:
        _products(activity, machine, model, works, parallelism)
        if isinstance(machine, GpuServer):
            _gpu_attention(activity, machine, model, works, parallelism)
        else:
            _tiers(activity, machine, model, works)
            count_tiering(activity, machine, model, works, sparsity or Sparsity())
    return activity


def _products(
    activity: Activity,
    machine: System | GpuServer,
    model: Model,
    works: Sequence[StepWork],
    parallelism: Parallelism,
) -> None:
    """Count products of weights, attention of prompts by operations, and exchange between the GPUs."""
    stages, gpus = parallelism.pipeline_parallel, parallelism.tensor_parallel
    stage = stage_machine(machine, stages)
    home = _home(machine)
    for tokens, count in Counter(work.tokens for work in works).items():
        if not tokens:
            continue
        micro = min(parallelism.micro_batches, tokens)
        part = -(-tokens // micro)
        groups = parallelism.data_parallel
        message = -(-part // groups) * model.hidden * ACTIVATION_BYTES
        ringed = 2 * len(model.layers) * groups * gpus * ring_bytes(gpus, message)
        for layer, layers in model.layer_groups():
            if isinstance(stage, GpuServer):
                time = grouped_layer_time(stage, model, layer, part, groups)
                if groups > 1:
                    ringed += layers * groups * gpus * exchanged_bytes(stage, model, layer, part)
            else:
                time = layer_time(stage, model, layer, part)
            activity.gpu_flops += count * micro * layers * time.flops
            activity.read_bytes[home] += count * micro * layers * time.read_bytes
        activity.link_bytes["gpu-links"] += count * micro * (ringed + (stages - 1) * gpus * message)
    for ending, count in Counter(work.ending for work in works).items():
        if ending:
            time = head_time(stage, model, ending)
            activity.gpu_flops += count * time.flops
            activity.read_bytes[home] += count * time.read_bytes
    activity.gpu_bytes += activity.read_bytes[home]
    attention = model.attention
    pairs, prompts = (_column(works, name) for name in ("prompt_pairs", "prompt_tokens"))
    each = 2.0 * attention.num_heads * (attention.head_dim + attention.v_head_dim)
    for layer, layers in model.layer_groups():
        seen = np.minimum(pairs, layer.window * prompts) if layer.window else pairs
        activity.gpu_flops += layers * each * float(seen.sum())


def _gpu_attention(
    activity: Activity, server: GpuServer, model: Model, works: Sequence[StepWork], parallelism: Parallelism
) -> None:
    """Count attention of decoding requests on GPUs, keys and values that prompts read, and what is stored."""
    attention, home = model.attention, _home(server)
    copies = kv_copies(attention, parallelism.tensor_parallel)
    attended = _attended(model, works)[0]
    context, written = _tier_columns(works, "prompt_context"), _appended(works)
    read = copies * attention.kv_bytes * (attended + len(model.layers) * float(context.sum()))
    stored = copies * model.kv_bytes_per_token * float(written.sum())
    activity.gpu_flops += attended * attention.token_flops * attention.stored_heads
    activity.read_bytes[home] += read
    activity.written_bytes[home] += stored
    activity.gpu_bytes += read + stored
    activity.link_bytes["pcie"] += model.kv_bytes_per_token * float(_column(works, "swapped_tokens").sum())


def _tiers(activity: Activity, system: System, model: Model, works: Sequence[StepWork]) -> None:
    """Count attention in the memories, ways there and back, and what is stored, fetched and swapped."""
    attention, layers, per_token = model.attention, len(model.layers), model.kv_bytes_per_token
    attended = _attended(model, works)
    requests = _tier_columns(works, "tier_requests").sum(axis=0)
    appended, context = _appended(works).sum(axis=0), _tier_columns(works, "prompt_context").sum(axis=0)
    query = layers * attention.num_heads * attention.key_dim * QUERY_BYTES
    states = layers * attention.num_heads * state_bytes(attention)
    for index, tier in enumerate(system.tiers):
        tokens = float(attended[index])
        activity.near_bytes[tier.name] += tokens * attention.kv_bytes
        activity.macs[tier.name] += tokens * attention.token_flops * attention.stored_heads / 2
        stored, fetched = per_token * float(appended[index]), per_token * float(context[index])
        activity.written_bytes[tier.name] += stored
        activity.read_bytes[tier.name] += fetched
        moved = float(requests[index]) * (query + (0 if tier.shared_with_gpu else states)) + stored
        if tier.shared_with_gpu:
            moved += float(_column(works, "decoding").sum()) * layers * _output_bytes(model)
            activity.gpu_bytes += fetched
        else:
            moved += fetched
        for link in tier.path:
            activity.link_bytes[link.name] += moved
    host = system.tiers[-1].path[0].name
    activity.link_bytes[host] += per_token * float(_column(works, "swapped_tokens").sum())


def _output_bytes(model: Model) -> int:
    """Return the bytes of one request's output of attention in one layer."""
    return model.attention.num_heads * model.attention.value_dim * QUERY_BYTES


def _home(machine: System | GpuServer) -> str:
    """Return the name of the GPUs' own memory."""
    return "gpu-memory" if isinstance(machine, GpuServer) else machine.gpu_tier.name


def _column(works: Sequence[StepWork], name: str) -> npt.NDArray[np.float64]:
    """Return one number of each step."""
    return np.fromiter(map(attrgetter(name), works), np.float64, len(works))


def _tier_columns(works: Sequence[StepWork], name: str) -> npt.NDArray[np.float64]:
    """Return one number of each step and memory."""
    return np.fromiter(chain.from_iterable(map(attrgetter(name), works)), np.float64).reshape(len(works), -1)


def _appended(works: Sequence[StepWork]) -> npt.NDArray[np.float64]:
    """Return the tokens that each step stores in each memory."""
    return _tier_columns(works, "decode_appended") + _tier_columns(works, "prompt_appended")


def _attended(model: Model, works: Sequence[StepWork]) -> npt.NDArray[np.float64]:
    """Return tokens that decoding requests attend to by memory, summed over layers and steps; windows as in time."""
    tokens, decoding = _tier_columns(works, "tier_tokens"), _column(works, "decoding")
    mean = tokens.sum(axis=1) / np.maximum(decoding, 1.0)
    total = np.zeros(tokens.shape[1])
    for layer, layers in model.layer_groups():
        seen = np.minimum(1.0, layer.window / np.maximum(mean, 1.0)) if layer.window else np.ones(len(mean))
        total += layers * (tokens * seen[:, None]).sum(axis=0)
    return total
