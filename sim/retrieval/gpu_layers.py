"""The GPUs' part of a layer without its attention: projections, norms, feed-forward part, exchanges.

A group of GPUs has the whole of its requests' projections, split evenly over its GPUs; the busiest group has
``b = ceil(B / groups)`` requests. Experts lie over all GPUs of all groups: a batch of B touches
``E (1 - (1 - k/E)^B)`` of them, evenly over the GPUs, but a GPU that has one to read reads a whole one.

Tokens go to their experts and back by one all-to-all each::

    t = alpha + max(bytes within the node / NVLink, bytes to other nodes / the GPU's share of the node's links)

A GPU sends ``ceil(b / GPUs of a group)`` tokens, 16-bit, to each of the ``n (1 - (1 - 1/n)^k)`` GPUs that k experts on
n GPUs meet, itself left out. Kernel launches and the host are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.calibration import factors
from sim.gpu import allreduce_s, head_time, roofline_s
from sim.provenance import Part

if TYPE_CHECKING:
    from sim.models import Layer, Model
    from sim.retrieval.machine import RetrievalSystem

__all__ = ["GpuLayer", "gpu_layer", "gpu_sources", "group_batch", "head_s", "index_parameters", "weight_bytes"]

_ACTIVATION_BYTES = 2
_NORMS = 2
"""Norms of a layer; each reads the residual stream and writes its normalised copy."""


@dataclass(frozen=True)
class GpuLayer:
    """Seconds of one layer on the busiest GPUs.

    Parameters
    ----------
    projections_s, norms_s, feed_forward_s : float
        Products before and behind attention, norms, dense network or experts.
    allreduce_s, alltoall_s : float
        Exchanges within a group, and of tokens with their experts.
    """

    projections_s: float
    norms_s: float
    feed_forward_s: float
    allreduce_s: float
    alltoall_s: float

    @property
    def total_s(self) -> float:
        """All parts, one after another."""
        return self.projections_s + self.norms_s + self.feed_forward_s + self.allreduce_s + self.alltoall_s


def group_batch(system: RetrievalSystem, batch: int) -> int:
    """Return the requests of the busiest group."""
    return -(-batch // system.groups)


def index_parameters(model: Model, layer: Layer) -> int:
    """Return the parameters that make a token's index queries, key and, where heads are weighed, their weights."""
    selection, attention = model.selection, model.attention
    if selection is None or layer.index_role != "owns":
        return 0
    queries = selection.index_heads * selection.index_dim
    weighed = attention.hidden * selection.index_heads if selection.block_tokens == 1 else 0
    return (attention.q_lora_rank or attention.hidden) * queries + attention.hidden * selection.index_dim + weighed


def weight_bytes(system: RetrievalSystem, model: Model) -> int:
    """Return the bytes of weights on all GPUs: experts once, everything else in every group."""
    experts = sum(layer.feed_forward.num_experts * layer.feed_forward.expert_parameters for layer in model.layers)
    index = sum(index_parameters(model, layer) for layer in model.layers)
    return model.bytes_of(experts + system.groups * (model.parameters - experts + index))


def gpu_layer(system: RetrievalSystem, model: Model, layer: Layer, batch: int) -> GpuLayer:
    """Return the time of one layer without its attention.

    Parameters
    ----------
    system : RetrievalSystem
    model : Model
    layer : Layer
    batch : int
        Requests, one token each.
    """
    attention, network, group = model.attention, layer.feed_forward, system.group
    mine = group_batch(system, batch)
    hidden = attention.hidden
    weight = model.weight_bits / 8

    def product(parameters: float, activations: int) -> float:
        read = parameters * weight + mine * activations * _ACTIVATION_BYTES
        return roofline_s(group, 2.0 * mine * parameters, read)

    index = index_parameters(model, layer)
    queries = attention.num_heads * attention.key_dim + attention.stored_elements
    outputs = attention.num_heads * attention.value_dim
    projections = product(attention.input_parameters + index, hidden + queries)
    projections += product(attention.output_parameters, outputs + hidden)
    # Every GPU of a group normalises all of its requests' tokens.
    one = system.group.gpu.count.integer
    norms = roofline_s(group, 0.0, one * _NORMS * 2 * mine * hidden * _ACTIVATION_BYTES)
    feed_forward = product(network.shared_parameters, 2 * (hidden + network.dense_width))
    exchange = 0.0
    if network.num_experts:
        feed_forward += _experts_s(system, model, layer, batch)
        exchange = 2 * _alltoall_s(system, network.experts_per_token, mine, hidden)
    return GpuLayer(
        projections_s=projections,
        norms_s=norms,
        feed_forward_s=feed_forward,
        allreduce_s=2 * allreduce_s(group, mine * hidden * _ACTIVATION_BYTES),
        alltoall_s=exchange,
    )


def _experts_s(system: RetrievalSystem, model: Model, layer: Layer, batch: int) -> float:
    """Return the seconds of the routed experts on the busiest GPU."""
    network = layer.feed_forward
    gpus = system.server.gpu.count.integer
    read = max(network.distinct_experts(batch, model.expert_skew), gpus) * network.expert_parameters
    met = max(batch * network.experts_per_token, gpus)
    activations = 2 * (network.hidden + network.expert_width)
    traffic = read * model.weight_bits / 8 + met * activations * _ACTIVATION_BYTES
    return roofline_s(system.server, 2.0 * met * network.expert_parameters, traffic)


def _alltoall_s(system: RetrievalSystem, experts: int, mine: int, hidden: int) -> float:
    """Return the seconds of one all-to-all."""
    gpus = system.server.gpu.count.integer
    if gpus == 1:
        return 0.0
    node = min(gpus, system.cluster.node_gpus.integer)
    tokens = -(-mine // system.group.gpu.count.integer)
    others = gpus * (1.0 - (1.0 - 1.0 / gpus) ** experts) * (gpus - 1) / gpus
    sent = tokens * others * hidden * _ACTIVATION_BYTES
    far = sent * (gpus - node) / (gpus - 1)
    near_s = (sent - far) / system.server.gpu.allreduce_bytes_per_s.number
    far_s = far / (system.cluster.node_bytes_per_s.number / node)
    return factors()["alltoall_latency_s"].value + max(near_s, far_s)


def head_s(system: RetrievalSystem, model: Model, batch: int) -> float:
    """Return the seconds of embedding and output head on the busiest group, once a step."""
    return head_time(system.group, model, group_batch(system, batch)).total_s


def gpu_sources(system: RetrievalSystem, model: Model) -> tuple[Part, ...]:
    """Return what the GPUs' times are made from."""
    gpu = system.server.gpu
    names = ("gpu_compute_utilisation", "gpu_memory_utilisation", "alltoall_latency_s")
    return (
        Part("model shape", "literature", model.source),
        Part("GPU peak", "literature", gpu.peak_flops.source),
        Part("GPU memory rate", "literature", gpu.memory_bytes_per_s.source),
        Part("NVLink rate", "literature", gpu.allreduce_bytes_per_s.source),
        gpu.collectives.part,
        Part("rate between nodes", "literature", system.cluster.node_bytes_per_s.source),
        *(factors()[name].part for name in names),
        Part("roofline of the GPUs", "modelled", "sim/retrieval/gpu_layers.py: even groups, experts evenly met"),
    )
