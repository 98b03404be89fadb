"""The GPUs' part of a step, by roofline.

Every product of weights with a batch of activations takes ``max(flops / (n peak u_c), bytes / (n bandwidth u_m))`` on
``n`` GPUs that split it evenly; ``u_c`` and ``u_m`` are the utilisations of ``calibration.toml``. Cards on which
products were measured have a ``u_m`` of their own and overlap both as :mod:`sim.products` says. A layer ends its
attention and its feed-forward part with one ring all-reduce of the activations each (:mod:`sim.collectives`). Experts
are split over the GPUs like any other matrix; how many a batch touches follows from the model's routing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sim import collectives
from sim.calibration import factors
from sim.provenance import Part

if TYPE_CHECKING:
    from hw.presets import Value
    from sim.collectives import Collectives
    from sim.models import Attention, Layer, Model
    from sim.products import Products
    from sim.system import System

__all__ = [
    "ACTIVATION_BYTES",
    "GpuTime",
    "GpuUser",
    "Gpus",
    "activation_bytes",
    "allreduce_s",
    "gpu_parts",
    "head_time",
    "layer_time",
    "prompt_attention_s",
    "roofline_s",
]

ACTIVATION_BYTES = 2
"""Bytes of an element of activations."""

_LOGIT_BYTES = 4


class Gpus(Protocol):
    """What a roofline asks of GPUs: how many there are, and the peak and the links of one."""

    @property
    def count(self) -> Value:
        """GPUs that split every product."""
        ...

    @property
    def peak_flops(self) -> Value:
        """Dense 16-bit peak of one."""
        ...

    @property
    def allreduce_bytes_per_s(self) -> Value:
        """Rate of one GPU's links to the others, one direction."""
        ...

    @property
    def collectives(self) -> Collectives:
        """How they exchange over these links."""
        ...

    @property
    def products(self) -> Products | None:
        """What products were measured to reach on them; None where the calibration decides."""
        ...


class GpuUser(Protocol):
    """A machine with GPUs."""

    @property
    def gpu(self) -> Gpus:
        """The GPUs."""
        ...

    @property
    def gpu_bytes_per_s(self) -> float:
        """Rate at which one GPU reads its own memory."""
        ...


@dataclass(frozen=True)
class GpuTime:
    """Time of a piece of work on the GPUs.

    Parameters
    ----------
    matrices_s, allreduce_s : float
        Products, and exchanges between the GPUs.
    flops, read_bytes : float
        Work of all GPUs together.
    """

    matrices_s: float
    allreduce_s: float
    flops: float
    read_bytes: float

    @property
    def total_s(self) -> float:
        """Both parts, one after the other."""
        return self.matrices_s + self.allreduce_s


def roofline_s(system: GpuUser, flops: float, read_bytes: float) -> float:
    """Return the seconds of one product on all GPUs.

    Parameters
    ----------
    system : GpuUser
    flops, read_bytes : float
        Operations, and bytes of weights and activations, of all GPUs together.
    """
    count = system.gpu.count.integer
    measured = system.gpu.products
    share = measured.read_share.number if measured else factors()["gpu_memory_utilisation"].value
    compute_s = flops / (system.gpu.peak_flops.number * count * factors()["gpu_compute_utilisation"].value)
    memory_s = read_bytes / (system.gpu_bytes_per_s * count * share)
    return measured.seconds(compute_s, memory_s) if measured else max(compute_s, memory_s)


def layer_time(system: GpuUser, model: Model, layer: Layer, batch: int) -> GpuTime:
    """Return the time of one layer without its attention.

    Parameters
    ----------
    system : GpuUser
    model : Model
    layer : Layer
    batch : int
        Tokens: one of each request that decodes, and those of prompts.
    """
    attention, network = model.attention, layer.feed_forward
    hidden = attention.hidden
    queries = attention.num_heads * attention.key_dim
    outputs = attention.num_heads * attention.value_dim
    routed = network.experts_per_token
    products = (
        # parameters read, multiplications a token, activations a token
        (attention.input_parameters, attention.input_parameters, hidden + queries + attention.stored_elements),
        (attention.output_parameters, attention.output_parameters, outputs + hidden),
        (
            network.shared_parameters + network.distinct_experts(batch, model.expert_skew) * network.expert_parameters,
            network.active_parameters,
            2 * hidden + 2 * (network.dense_width + routed * network.expert_width),
        ),
    )
    seconds = flops = read = 0.0
    for parameters, multiplications, activations in products:
        work = 2.0 * batch * multiplications
        traffic = parameters * model.weight_bits / 8 + batch * activations * ACTIVATION_BYTES
        seconds += roofline_s(system, work, traffic)
        flops += work
        read += traffic
    return GpuTime(seconds, 2 * allreduce_s(system, batch * hidden * ACTIVATION_BYTES), flops, read)


def allreduce_s(system: GpuUser, payload: int) -> float:
    """Return the seconds of one ring all-reduce over the GPUs.

    Parameters
    ----------
    system : GpuUser
    payload : int
        Bytes that are summed.
    """
    gpu = system.gpu
    return collectives.allreduce_s(gpu.collectives, gpu.count.integer, payload, gpu.allreduce_bytes_per_s.number)


def head_time(system: GpuUser, model: Model, batch: int) -> GpuTime:
    """Return the time of embedding and output head, once a step."""
    embedded = batch * model.hidden * ACTIVATION_BYTES
    read = model.head_parameters * model.weight_bits / 8 + batch * model.vocab * _LOGIT_BYTES + embedded
    flops = 2.0 * batch * model.head_parameters
    return GpuTime(roofline_s(system, flops, read), 0.0, flops, read)


def prompt_attention_s(system: GpuUser, attention: Attention, pairs: float, read_bytes: float) -> float:
    """Return the seconds of one layer's attention of prompts: ``2 (d_k + d_v)`` operations a head and pair of tokens.

    Parameters
    ----------
    system : GpuUser
    attention : Attention
    pairs : float
        Pairs of a token of a prompt and a token it attends to.
    read_bytes : float
        Stored keys and values that are read from the GPUs' memory.
    """
    flops = 2.0 * pairs * attention.num_heads * (attention.head_dim + attention.v_head_dim)
    return roofline_s(system, flops, read_bytes)


def activation_bytes(system: GpuUser, model: Model, *, tokens: int, sampled: int) -> int:
    """Return the bytes of activations that a step keeps in the GPUs' memory.

    Residual stream, its normalised copy and both projections' inputs on every GPU; queries and the widest inner
    activation once; fp32 logits once, of the ``sampled`` tokens alone.
    """
    attention = model.attention
    inner = max(
        layer.feed_forward.dense_width + layer.feed_forward.experts_per_token * layer.feed_forward.expert_width
        for layer in model.layers
    )
    everywhere = 4 * model.hidden * ACTIVATION_BYTES * system.gpu.count.integer
    heads = attention.num_heads * (attention.key_dim + attention.value_dim)
    once = (2 * inner + heads) * ACTIVATION_BYTES
    return tokens * (everywhere + once) + sampled * model.vocab * _LOGIT_BYTES


def gpu_parts(system: System, model: Model) -> tuple[Part, ...]:
    """Return what the GPUs' times are made from."""
    names = ("gpu_compute_utilisation", "gpu_memory_utilisation")
    return (
        Part("model shape", "literature", model.source),
        Part("GPU peak", "literature", system.gpu.peak_flops.source),
        Part("GPU memory rate", "literature", system.gpu_tier.device.external_bytes_per_s.source),
        Part("all-reduce rate", "literature", system.gpu.allreduce_bytes_per_s.source),
        system.gpu.collectives.part,
        *(factors()[name].part for name in names),
        Part("roofline of the GPUs", "modelled", "sim/gpu.py: products split evenly, one ring all-reduce each"),
    )
