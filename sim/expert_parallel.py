"""Layers on groups of GPUs that each serve their own requests and share the experts.

Every group has all weights but the experts, of which each GPU holds its part (data parallel groups, expert parallel
layers). A layer's experts wait for the tokens of all groups, which every GPU gathers, and scatter their sums back: two
rings of all GPUs, once round each. The groups go in step, so that a layer takes what the busiest of them takes: the
one with the most tokens, on whose links most is sent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sim.gpu import ACTIVATION_BYTES, GpuTime, layer_time, roofline_s

if TYPE_CHECKING:
    from sim.gpu_server import GpuServer
    from sim.models import Layer, Model

__all__ = ["exchanged_bytes", "group_of", "grouped_layer_time", "grouped_weight_bytes"]


def group_of(server: GpuServer, groups: int) -> GpuServer:
    """Return the GPUs of one group."""
    count = server.gpu.count
    return replace(server, gpu=replace(server.gpu, count=replace(count, value=count.integer // groups)))


def grouped_weight_bytes(model: Model, groups: int) -> int:
    """Return the bytes of weights on all GPUs: experts once, everything else in every group."""
    experts = sum(layer.feed_forward.num_experts * layer.feed_forward.expert_parameters for layer in model.layers)
    return model.bytes_of(experts + groups * (model.parameters - experts))


def exchanged_bytes(server: GpuServer, model: Model, layer: Layer, tokens: int) -> float:
    """Return the bytes that each GPU sends to gather all tokens before the experts and to scatter sums behind them."""
    count = server.gpu.count.integer
    if not layer.feed_forward.num_experts:
        return 0.0
    return 2 * (count - 1) / count * tokens * model.hidden * ACTIVATION_BYTES


def grouped_layer_time(
    server: GpuServer, model: Model, layer: Layer, tokens: int, groups: int, busiest: int | None = None
) -> GpuTime:
    """Return the time of one layer without its attention, and the work of all GPUs together.

    Parameters
    ----------
    server : GpuServer
        All GPUs.
    model : Model
    layer : Layer
    tokens : int
        Tokens of all groups.
    groups : int
        Groups of GPUs; one is what :func:`sim.gpu.layer_time` says.
    busiest : int, optional
        Tokens of the group with the most; by default they are dealt evenly.
    """
    if groups == 1:
        return layer_time(server, model, layer, tokens)
    even = -(-tokens // groups)
    most = even if busiest is None else busiest
    network = layer.feed_forward
    dense = replace(layer, feed_forward=replace(network, num_experts=0, experts_per_token=0))
    group = group_of(server, groups)
    own, mean = layer_time(group, model, dense, most), layer_time(group, model, dense, even)
    flops, read = groups * mean.flops, groups * mean.read_bytes
    if not network.num_experts:
        return GpuTime(own.matrices_s, own.allreduce_s, flops, read)
    gpu = server.gpu
    met = network.distinct_experts(tokens, model.expert_skew)
    work, traffic = _experts(model, layer, met, tokens * network.experts_per_token)
    # A GPU reads a whole expert or none: with fewer than GPUs the fullest reads one, as if all did.
    count = gpu.count.integer
    fullest = _experts(model, layer, max(met, count), max(tokens * network.experts_per_token, count))
    # Of the busiest group's tokens each of its GPUs has a share, which goes once round the ring.
    sent = exchanged_bytes(server, model, layer, tokens if busiest is None else groups * busiest) / 2
    ring_s = gpu.collectives.seconds(count - 1, sent, gpu.allreduce_bytes_per_s.number)
    return GpuTime(
        own.matrices_s + roofline_s(server, *fullest), own.allreduce_s + 2 * ring_s, flops + work, read + traffic
    )


def _experts(model: Model, layer: Layer, experts: float, uses: float) -> tuple[float, float]:
    """Return operations and bytes of so many experts that together take so many tokens."""
    network = layer.feed_forward
    activations = 2 * uses * (network.hidden + network.expert_width) * ACTIVATION_BYTES
    return (
        2.0 * uses * network.expert_parameters,
        experts * network.expert_parameters * model.weight_bits / 8 + activations,
    )
