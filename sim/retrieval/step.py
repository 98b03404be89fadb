"""One decode step with retrieval: every request of a batch gains one token.

Layer by layer the GPUs' part and the attention follow each other; nothing of one layer overlaps with another, and the
GPUs wait while devices attend. What a schedule of micro-batches could reach at best is the busiest of the GPUs, the
devices and the links: :attr:`RetrievalStep.bound_s`. ``context`` counts a request's tokens before the step; its own
token is indexed, scored and attended to as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.calibration import factors
from sim.errors import ConfigError
from sim.retrieval.gpu_attention import gpu_stages
from sim.retrieval.gpu_layers import GpuLayer, gpu_layer, head_s
from sim.retrieval.memory import memories
from sim.retrieval.methods import method_work
from sim.retrieval.pnm import pnm_stages
from sim.retrieval.work import attend_all, trained_work

if TYPE_CHECKING:
    from sim.calibration import Factor
    from sim.models import Layer, Model
    from sim.retrieval.machine import RetrievalSystem
    from sim.retrieval.memory import Memory
    from sim.retrieval.request import RetrievalRequest
    from sim.retrieval.stages import Stage
    from sim.retrieval.work import LayerWork

__all__ = ["RetrievalLayer", "RetrievalStep", "memory_factors", "retrieval_step"]

_LINKS = ("index query out", "query out", "output back")


@dataclass(frozen=True, kw_only=True)
class RetrievalLayer:
    """Time of layers of one kind.

    Parameters
    ----------
    layer : Layer
    count : int
        Layers of the kind.
    work : LayerWork
        What attention of one request is.
    gpu : GpuLayer
        Everything but attention.
    stages : tuple of Stage
        Attention.
    """

    layer: Layer
    count: int
    work: LayerWork
    gpu: GpuLayer
    stages: tuple[Stage, ...]

    @property
    def attention_s(self) -> float:
        """All stages of one layer."""
        return sum(stage.seconds for stage in self.stages)


@dataclass(frozen=True, kw_only=True)
class RetrievalStep:
    """Time of one step.

    Parameters
    ----------
    request : RetrievalRequest
    method : str
        The method that was run.
    layers : tuple of RetrievalLayer
    head_s : float
        Embedding and output head.
    memories : tuple of Memory
        What each kind of device holds.
    """

    request: RetrievalRequest
    method: str
    layers: tuple[RetrievalLayer, ...]
    head_s: float
    memories: tuple[Memory, ...]

    @property
    def gpu_s(self) -> float:
        """GPUs' part without attention."""
        return self.head_s + sum(entry.count * entry.gpu.total_s for entry in self.layers)

    @property
    def attention_s(self) -> float:
        """Attention of all layers, links included."""
        return sum(entry.count * entry.attention_s for entry in self.layers)

    @property
    def total_s(self) -> float:
        """The whole step."""
        return self.gpu_s + self.attention_s

    def stage_s(self, *names: str) -> float:
        """Return what stages of these names add to the step."""
        return sum(
            entry.count * stage.seconds for entry in self.layers for stage in entry.stages if stage.name in names
        )

    @property
    def link_s(self) -> float:
        """Links' part of the attention."""
        return self.stage_s(*_LINKS)

    @property
    def bound_s(self) -> float:
        """Time of the busiest of GPUs, devices and links, which no schedule on these devices gets below."""
        links = sum(
            entry.count * stage.busy_s for entry in self.layers for stage in entry.stages if stage.name in _LINKS
        )
        near = self.attention_s - self.link_s
        if all(memory.name != "pnm" for memory in self.memories):
            return self.total_s
        return max(self.gpu_s, near, links)


def memory_factors(system: RetrievalSystem) -> tuple[Factor, Factor]:
    """Return the share of its peak that the memory which attention reads reaches, and that of the other kind's."""
    near, alone = factors()["pnm_memory_utilisation"], factors()["gpu_attention_utilisation"]
    return (alone, near) if system.pnm is None else (near, alone)


def retrieval_step(
    system: RetrievalSystem, model: Model, request: RetrievalRequest, utilisation: float | None = None
) -> RetrievalStep:
    """Return the time of one decode step.

    Parameters
    ----------
    system : RetrievalSystem
    model : Model
    request : RetrievalRequest
    utilisation : float, optional
        Share of its peak that the memory which attention reads reaches; that of :func:`memory_factors` by default.

    Raises
    ------
    UnsupportedError
        If the model has no selection of its own and it is asked for, or the units of selection are too small.
    CapacityError
        If weights, KV or indices do not fit.
    """
    method = request.method_of(model)
    groups = _layer_groups(model, request, method)
    index_token_bytes = sum(count * work.index_token_bytes for _, work, count in groups)
    held = memories(system, model, request, index_token_bytes)
    stages = pnm_stages if system.pnm is not None else gpu_stages
    share = memory_factors(system)[0].value if utilisation is None else utilisation
    return RetrievalStep(
        request=request,
        method=method,
        layers=tuple(
            RetrievalLayer(
                layer=layer,
                count=count,
                work=work,
                gpu=gpu_layer(system, model, layer, request.batch),
                stages=tuple(stages(system, model.attention, work, request.batch, share)),
            )
            for layer, work, count in groups
        ),
        head_s=head_s(system, model, request.batch),
        memories=held,
    )


def _layer_groups(model: Model, request: RetrievalRequest, method: str) -> list[tuple[Layer, LayerWork, int]]:
    """Return the kinds of layers, the attention of each, and how many there are, in order of first appearance."""
    if request.dense_layers > len(model.layers):
        raise ConfigError(f"dense_layers must be at most {len(model.layers)}, not {request.dense_layers}")
    counts: dict[tuple[Layer, bool], int] = {}
    for number, layer in enumerate(model.layers):
        key = (layer, number < request.dense_layers)
        counts[key] = counts.get(key, 0) + 1
    return [
        (layer, _work(model, layer, request, "dense" if dense else method), n) for (layer, dense), n in counts.items()
    ]


def _work(model: Model, layer: Layer, request: RetrievalRequest, method: str) -> LayerWork:
    """Return the attention of one layer."""
    if method == "dense":
        return attend_all(model.attention, layer, request.tokens)
    if method == "trained":
        assert model.selection is not None, "method_of checks it"
        return trained_work(model.attention, model.selection, layer, request.tokens)
    return method_work(model.attention, layer, request.tokens, method, request.budget)
