"""Attention of one layer on the GPUs themselves, KV with them or in their hosts' memory: what KARAT is compared with.

A group's GPUs share the tokens of its requests evenly, so that each reads its share of index, scores and KV; where
there are fewer stored heads than GPUs, the GPUs' states are summed by one all-reduce. Reads run at the share of the
memory's rate that GPUs reach in attention. Selection reads every score as often as it is written, once, at the
memory's rate, which is the least it can take; finding the largest over GPUs is left out. Each GPU reads what lies in
its host over its own link. So the baselines are on the fast side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.calibration import factors
from sim.gpu import allreduce_s
from sim.provenance import Part
from sim.retrieval.gpu_layers import group_batch
from sim.retrieval.stages import Stage

if TYPE_CHECKING:
    from sim.models import Attention
    from sim.retrieval.machine import RetrievalSystem
    from sim.retrieval.work import LayerWork

__all__ = ["gpu_attention_sources", "gpu_stages"]

_SCORE_BYTES = 4
_STATE_BYTES = 4
_STATE_NUMBERS = 2
"""Numbers of a state beside o: m and l."""


def gpu_stages(
    system: RetrievalSystem, attention: Attention, work: LayerWork, batch: int, utilisation: float
) -> list[Stage]:
    """Return the stages of one layer on the busiest group of GPUs, in their order.

    Parameters
    ----------
    system : RetrievalSystem
        Without PNM devices.
    attention : Attention
    work : LayerWork
        Of one request.
    batch : int
        Requests.
    utilisation : float
        Share of the memory's peak rate that reads reach.
    """
    gpu, gpus, mine = system.server.gpu, system.group.gpu.count.integer, group_batch(system, batch)
    memory = gpus * gpu.memory_bytes_per_s.number * utilisation
    peak = gpus * gpu.peak_flops.number * factors()["gpu_compute_utilisation"].value
    stages: list[Stage] = []
    if work.score_bytes:
        read, flops = mine * work.score_bytes, mine * work.score_flops
        seconds = max(read / memory, flops / peak)
        bound = "memory" if read / memory >= flops / peak else "compute"
        stages.append(Stage(name="score", seconds=seconds, busy_s=seconds, bound=bound, read_bytes=read, flops=flops))
        moved = 2 * mine * work.selections * work.candidates * _SCORE_BYTES
        stages.append(
            Stage(name="select", seconds=moved / memory, busy_s=moved / memory, bound="memory", read_bytes=moved)
        )
    read = mine * (work.gather_bytes + work.list_bytes)
    gathered, bound = read / memory, "memory"
    if system.host is not None:
        # A read goes there and back.
        latency = 2 * factors()["pcie_latency_s"].value
        gathered, bound = latency + read / (gpus * gpu.host_bytes_per_s.number), "link"
    computed = mine * work.attend_flops / peak
    stages += [
        Stage(name="gather", seconds=gathered, busy_s=gathered, bound=bound, read_bytes=read),
        Stage(
            name="attend",
            seconds=max(0.0, computed - gathered),
            busy_s=computed,
            bound="compute" if computed > gathered else bound,
            flops=mine * work.attend_flops,
        ),
    ]
    if attention.stored_heads < gpus:
        state = mine * attention.num_heads * (attention.value_dim + _STATE_NUMBERS) * _STATE_BYTES
        merged = allreduce_s(system.group, state)
        stages.append(Stage(name="merge", seconds=merged, busy_s=merged, bound="exchange", read_bytes=state))
    return stages


def gpu_attention_sources(system: RetrievalSystem, stage: str) -> tuple[Part, ...]:
    """Return what the time of a stage is made from."""
    gpu = system.server.gpu
    memory = (
        Part("GPU memory rate", "literature", gpu.memory_bytes_per_s.source),
        factors()["gpu_attention_utilisation"].part,
    )
    cores = (Part("GPU peak", "literature", gpu.peak_flops.source), factors()["gpu_compute_utilisation"].part)
    shared = Part("attention on GPUs", "modelled", "sim/retrieval/gpu_attention.py: a group shares tokens evenly")
    if stage == "merge":
        rate = Part("NVLink rate", "literature", gpu.allreduce_bytes_per_s.source)
        return (rate, gpu.collectives.part, shared)
    if stage == "gather" and system.host is not None:
        rate = Part("rate of the host's link", "literature", gpu.host_bytes_per_s.source)
        return (rate, factors()["pcie_latency_s"].part, shared)
    return (*memory, *cores, shared) if stage in ("score", "attend") else (*memory, shared)
