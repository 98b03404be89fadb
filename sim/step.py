"""What is asked of a decode step, and its time, layer by layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.errors import ConfigError, UnknownNameError
from sim.tier import POWER_CAPS

if TYPE_CHECKING:
    from sim.gpu import GpuTime
    from sim.models import Layer, Model
    from sim.placement import TierTokens
    from sim.serving.parallelism import Parallelism
    from sim.system import System
    from sim.tier import TierTime

__all__ = ["AttentionTime", "LayerTime", "StepRequest", "StepTime", "active_context"]


@dataclass(frozen=True, kw_only=True)
class StepRequest:
    """What is asked: a batch of requests of one length.

    Parameters
    ----------
    context, batch : int
        Tokens of a request before the step, and requests; at least 1.
    placement : str
        Policy of :mod:`sim.placement`.
    keep : float
        Part of a request's context that is attended to, above 0 and at most 1; the step's own token always is.
    power_cap : {"bytes", "flops"}
        How a device's power limit is read.
    allow_mla : bool
        Multi-head latent attention is modelled, however slow; else it is refused (:mod:`sim.latent`).
    tensor_parallel, pipeline_parallel, micro_batches : int or None
        As :func:`sim.serving.parallelism.choose_parallelism` takes them.

    Raises
    ------
    ConfigError
        If a number is out of range.
    """

    context: int
    batch: int
    placement: str = "top-down"
    keep: float = 1.0
    power_cap: str = "bytes"
    allow_mla: bool = False
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    micro_batches: int | None = None

    def __post_init__(self) -> None:
        for name in ("context", "batch"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"{name} must be an integer of at least 1, not {value!r}")
        if not 0.0 < self.keep <= 1.0:
            raise ConfigError(f"keep must be above 0 and at most 1, not {self.keep!r}")
        if self.power_cap not in POWER_CAPS:
            raise UnknownNameError("power cap", self.power_cap, POWER_CAPS)


@dataclass(frozen=True, kw_only=True)
class AttentionTime:
    """Time of one layer's attention.

    Parameters
    ----------
    out_s, gather_s : dict of str to float
        Way of queries and new keys and values to each tier, and of states from it to where they are merged.
    tiers : dict of str to TierTime
        Attention in each tier.
    root_s : float
        Merge of all tiers' states, and the division by l.
    back_s : float
        Way of the output to the GPUs.
    critical : str
        The tier that everything waits for.
    """

    out_s: dict[str, float]
    gather_s: dict[str, float]
    tiers: dict[str, TierTime]
    root_s: float
    back_s: float
    critical: str

    @property
    def attention_s(self) -> float:
        """Queries leaving the GPUs to output arriving there."""
        name = self.critical
        return self.out_s[name] + self.tiers[name].total_s + self.gather_s[name] + self.root_s + self.back_s

    @property
    def link_s(self) -> float:
        """Part of the attention spent on links."""
        return self.out_s[self.critical] + self.gather_s[self.critical] + self.back_s

    @property
    def reduction_s(self) -> float:
        """Exposed reduction: last column to last state in the tier waited for, and the merge of the tiers."""
        return self.tiers[self.critical].exposed_s + self.root_s


@dataclass(frozen=True, kw_only=True)
class LayerTime(AttentionTime):
    """Time of one layer, its attention and all else.

    Parameters
    ----------
    layer : Layer
        Which kind.
    count : int
        Layers of that kind.
    attended : int
        Tokens of a request that it attends to, the own one included.
    gpu : GpuTime
        Projections, feed-forward, all-reduces.
    """

    layer: Layer
    count: int
    attended: int
    gpu: GpuTime

    @property
    def total_s(self) -> float:
        """GPUs and attention, one after the other."""
        return self.gpu.total_s + self.attention_s


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Time of one step; with a pipeline that of its slowest stage for all micro-batches, and what is added to it.

    Parameters
    ----------
    request : StepRequest
    system : System
        Whose time this is: all of it, or one stage.
    model : Model
        The layers that it has.
    parallelism : Parallelism
    placement : tuple of TierTokens
        What each tier holds.
    layers : tuple of LayerTime
        One entry a kind of layer; its count is how often such a layer runs.
    head : GpuTime
        Embedding and output head.
    send_s, bubble_s : float
        Activations sent to the next stage, and waiting for tokens where micro-batches are fewer than stages.
    """

    request: StepRequest
    system: System
    model: Model
    parallelism: Parallelism
    placement: tuple[TierTokens, ...]
    layers: tuple[LayerTime, ...]
    head: GpuTime
    send_s: float = 0.0
    bubble_s: float = 0.0

    @property
    def attention_s(self) -> float:
        """Attention of all layers."""
        return sum(entry.count * entry.attention_s for entry in self.layers)

    @property
    def gpu_s(self) -> float:
        """GPUs' part of all layers, embedding and head."""
        return self.head.total_s + sum(entry.count * entry.gpu.total_s for entry in self.layers)

    @property
    def link_s(self) -> float:
        """Links' part of the attention."""
        return sum(entry.count * entry.link_s for entry in self.layers)

    @property
    def reduction_s(self) -> float:
        """Exposed reduction of all layers."""
        return sum(entry.count * entry.reduction_s for entry in self.layers)

    @property
    def reduction_busy_s(self) -> float:
        """Work of the busiest reduction unit of the tier waited for, and of the merge of the tiers."""
        return sum(entry.count * (entry.tiers[entry.critical].reduction_busy_s + entry.root_s) for entry in self.layers)

    @property
    def slowest_tier(self) -> str:
        """The tier that most of the attention waits for; the nearer one of equals."""
        waited = {tier.name: 0.0 for tier in self.placement}
        for entry in self.layers:
            waited[entry.critical] += entry.count * entry.attention_s
        return max(waited, key=lambda name: waited[name])

    @property
    def total_s(self) -> float:
        """The whole step."""
        return self.gpu_s + self.attention_s + self.send_s + self.bubble_s


def active_context(context: int, keep: float) -> int:
    """Return how many tokens of a request's context are attended to: ``ceil(keep * context)``."""
    # Ten decimals are kept, so that 0.1 of 30 is 3 and not the 4 that binary fractions would round up to.
    return min(context, math.ceil(round(keep * context, 10)))
