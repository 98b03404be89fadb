"""The GPUs' part of a server's step: products, all-reduces, attention of prompts, kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.expert_parallel import group_of, grouped_layer_time
from sim.gpu import head_time, layer_time, prompt_attention_s
from sim.gpu_server import GpuServer
from sim.serving.kernels import layer_kernels

if TYPE_CHECKING:
    from sim.gpu import GpuTime, GpuUser
    from sim.models import Layer, Model
    from sim.serving.batch import StepWork
    from sim.serving.host import ServerFactors

__all__ = ["GpuPart"]


class GpuPart:
    """Times of what every server's GPUs do, kept by the number of tokens.

    All tokens of a step, decoded ones and those of prompts, go through the layers together; a mixture's experts are
    those that they touch. Logits are computed for the requests that get a token. Attention of prompts takes
    ``2 (d_k + d_v)`` operations a head and pair, by roofline against the stored keys and values that it reads; layers
    with a window see at most a window's pairs a token. Every kernel takes a time of its own; where memories
    compute attention, sends of queries and outputs stand for its kernels.

    Parameters
    ----------
    machine : GpuUser
    model : Model
    factors : ServerFactors
    groups : int
        Groups of GPUs that serve requests of their own; more than one on servers of GPUs alone. A step takes what it
        takes the busiest: a prompt's part runs in one group, while the others wait in every layer for its tokens.
    """

    def __init__(self, machine: GpuUser, model: Model, factors: ServerFactors, *, groups: int = 1) -> None:
        self._groups_of_gpus = groups
        self._machine, self._model = machine, model
        self._group = group_of(machine, groups) if isinstance(machine, GpuServer) else machine
        self._groups = model.layer_groups()
        self._kernels_s = factors.kernel_s * sum(count * layer_kernels(layer) for layer, count in self._groups)
        self._products: dict[tuple[int, int], float] = {}
        self._heads: dict[int, float] = {}
        self._decoding: dict[tuple[int, int], float] = {}

    def products_s(self, tokens: int, busiest: int) -> float:
        """Return the seconds of all layers without attention for ``tokens``, ``busiest`` of them in one group."""
        key = tokens, busiest
        if key not in self._products:
            self._products[key] = sum(
                count * self._layer_time(layer, tokens, busiest).total_s for layer, count in self._groups
            )
        return self._products[key]

    def _layer_time(self, layer: Layer, tokens: int, busiest: int) -> GpuTime:
        """Return the time of one layer without attention."""
        if isinstance(self._machine, GpuServer):
            return grouped_layer_time(self._machine, self._model, layer, tokens, self._groups_of_gpus, busiest)
        return layer_time(self._machine, self._model, layer, tokens)

    def head_s(self, requests: int) -> float:
        """Return the seconds of embedding and output head for ``requests`` that get a token."""
        if requests not in self._heads:
            mine = -(-requests // self._groups_of_gpus)
            self._heads[requests] = head_time(self._group, self._model, mine).total_s if requests else 0.0
        return self._heads[requests]

    def prompts_s(self, work: StepWork, near_context: int, share: float) -> float:
        """Return the seconds of the prompts' attention.

        Parameters
        ----------
        work : StepWork
        near_context : int
            Stored tokens that lie in the GPUs' memory.
        share : float
            What of the prompts the busiest group has.
        """
        if not work.prompt_tokens:
            return 0.0
        attention = self._model.attention
        read = share * near_context * attention.kv_bytes
        seconds = 0.0
        for layer, count in self._groups:
            pairs = min(work.prompt_pairs, layer.attended(work.prompt_pairs) * work.prompt_tokens)
            seconds += count * prompt_attention_s(self._group, attention, share * pairs, read)
        return seconds

    def step_s(self, work: StepWork, near_context: int) -> float:
        """Return the seconds of everything here, one after the other."""
        if work.prompt_requests:
            return self._whole_s(work, near_context)
        # Of steps that only decode there are many, and few kinds.
        key = (work.decoding, work.ending)
        if key not in self._decoding:
            self._decoding[key] = self._whole_s(work, near_context)
        return self._decoding[key]

    def _whole_s(self, work: StepWork, near_context: int) -> float:
        """Return the seconds of everything here."""
        busiest, share = work.busiest_tokens(self._groups_of_gpus)
        products = self.products_s(work.tokens, busiest) if work.tokens else 0.0
        prompts = self.prompts_s(work, near_context, share)
        return products + self.head_s(work.ending) + prompts + self._kernels_s
