"""Time of a step on a machine of GPUs alone: keys and values lie in their memory, and they compute all attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.serving.gpu_part import GpuPart
from sim.serving.kernels import tile_flops
from sim.serving.parallelism import kv_copies

if TYPE_CHECKING:
    from sim.gpu_server import GpuServer
    from sim.models import Model
    from sim.serving.batch import StepWork
    from sim.serving.host import ServerFactors

__all__ = ["GpuStepModel"]


class GpuStepModel:
    """``t = products + head + attention of prompts + KV / (n B u_a) + swapped / (n B_host) + kernels``.

    Decoding requests read their keys and values once, at the share ``u_a`` of the memory's rate; their operations hide
    behind it. Layers with a window read at most a window of a request's mean length. ``n`` counts no GPU that reads
    what another reads too. In a step with prompts their operations are those of whole tiles, at the share ``u_t`` of
    the peak, and attention takes the longer of the two: ``max(KV / (n B u_a), tiles / (N F u_t))`` on all ``N`` GPUs.

    Parameters
    ----------
    server : GpuServer
    model : Model
    factors : ServerFactors
    groups : int
        Groups of GPUs that serve requests of their own.

    Attributes
    ----------
    gpu_s, attention_s, swap_s : float
        Seconds of all steps so far in each part.
    """

    def __init__(self, server: GpuServer, model: Model, factors: ServerFactors, *, groups: int = 1) -> None:
        self._part = GpuPart(server, model, factors, groups=groups)
        self._model = model
        self._groups = model.layer_groups()
        count = server.gpu.count.integer
        # Heads that several GPUs keep are read by each of them.
        whole = server.gpu_bytes_per_s * count * factors.attention_utilisation
        self._attention_bytes_per_s = whole / kv_copies(model.attention, count // groups)
        self._tile_flops_per_s = server.gpu.peak_flops.number * count * factors.tile_utilisation
        self._host_bytes_per_s = server.gpu.host_bytes_per_s.number * count
        self.gpu_s = self.attention_s = self.swap_s = 0.0

    def step_s(self, work: StepWork) -> float:
        """Return the seconds that a step takes."""
        (tokens,) = work.tier_tokens
        shape = self._model.attention
        attended = 0.0
        if work.decoding:
            mean = tokens / work.decoding
            for layer, count in self._groups:
                seen = min(mean, layer.window) if layer.window else mean
                attended += count * seen * work.decoding
        gpu = self._part.step_s(work, work.prompt_context[0])
        attention = attended * shape.kv_bytes / self._attention_bytes_per_s
        if work.prompt_tokens:
            attention = max(attention, tile_flops(shape, attended) / self._tile_flops_per_s)
        swap = work.swapped_tokens * self._model.kv_bytes_per_token / self._host_bytes_per_s
        self.gpu_s += gpu
        self.attention_s += attention
        self.swap_s += swap
        return gpu + attention + swap

    def parts_s(self) -> dict[str, float]:
        """Return the seconds of all steps so far by part."""
        return {"gpu": self.gpu_s, "attention": self.attention_s, "swap": self.swap_s}
