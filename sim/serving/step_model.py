"""Time of a step on a machine whose memories compute attention.

A step is, one after the other: what is swapped; the GPUs' part (:mod:`sim.serving.gpu_part`); reads of stored keys and
values that prompts need from other memories; layer by layer the attention of the requests that decode, in all tiers at
once (:mod:`sim.attention`); and the scatter of the prompts' keys and values to their tiers, which the next step waits
for. The GPUs read weights from the stacks that compute attention, so neither works while the other does. Where tokens
are chosen by labels, these are read before the attention of all layers. Tokens that change memories do so behind the
GPUs' parts of the steps since tokens last did; what takes longer is waited for.

Where tokens are chosen, a tier takes as long as if every bank group had as many as the fullest one
(:mod:`sim.tiering.groups`). Requests of unequal length are taken to load a tier as evenly as their mean: the pairs of a
channel follow one another, so that their sum counts, and placement evens the sums out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.attention import attention_time
from sim.links import transfer_s
from sim.serving.gpu_part import GpuPart
from sim.serving.tier_grid import TierGrid, neighbours
from sim.tier import TierLoad
from sim.tiering.migration import Migration
from sim.tiering.scan import LabelScan
from sim.tiering.sparsity import Sparsity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.models import Model
    from sim.serving.batch import StepWork
    from sim.serving.host import ServerFactors
    from sim.system import System
    from sim.tier import TierTime

__all__ = ["TierStepModel"]


class TierStepModel:
    """Step times of a system with tiers.

    Parameters
    ----------
    system : System
    model : Model
    factors : ServerFactors
    power_cap : {"bytes", "flops"}
        How a device's limit is read.
    sparsity : Sparsity
        How tokens are chosen.

    Attributes
    ----------
    scatter_s, attention_s, gpu_s, fetch_s, swap_s, scan_s, migration_s : float
        Seconds of all steps so far in each part; of migration what is waited for.
    hidden_s : float
        Seconds of migration behind the GPUs' parts.
    """

    def __init__(
        self, system: System, model: Model, factors: ServerFactors, *, power_cap: str, sparsity: Sparsity | None = None
    ) -> None:
        self._system, self._model = system, model
        self._part = GpuPart(system, model, factors)
        self._groups = model.layer_groups()
        self._grids = {tier.name: TierGrid(system, tier, model.attention, power_cap=power_cap) for tier in system.tiers}
        self._paths = {tier.name: tier.path for tier in system.tiers}
        self._home = next(index for index, tier in enumerate(system.tiers) if tier.shared_with_gpu)
        self._alone: dict[tuple[int, int, int, bool], float] = {}
        self._host_link = system.tiers[-1].path[0]
        self._scan = LabelScan(system, model, sparsity or Sparsity(), power_cap=power_cap)
        self._migration = Migration(system, model)
        self._since_moves_s = 0.0
        self.scatter_s = self.attention_s = self.gpu_s = self.fetch_s = self.swap_s = 0.0
        self.scan_s = self.migration_s = self.hidden_s = 0.0

    def step_s(self, work: StepWork) -> float:
        """Return the seconds that a step takes."""
        gpu = self._part.step_s(work, work.prompt_context[self._home])
        attention = self._attention_s(work) if work.decoding else 0.0
        fetch = scatter = swap = 0.0
        if work.prompt_tokens:
            far = [0 if index == self._home else tokens for index, tokens in enumerate(work.prompt_context)]
            fetch, scatter = self._transfer_s(far), self._transfer_s(work.prompt_appended)
            self.fetch_s += fetch
            self.scatter_s += scatter
        if work.swapped_tokens:
            swapped = work.swapped_tokens * self._model.kv_bytes_per_token
            swap = self._host_link.latency_s + swapped / self._host_link.bytes_per_s
            self.swap_s += swap
        scan = self._scan.seconds(work.tier_held) if work.decoding else 0.0
        migration = self._exposed_s(work, gpu)
        self.gpu_s += gpu
        self.attention_s += attention
        self.scan_s += scan
        self.migration_s += migration
        return gpu + attention + fetch + scatter + swap + scan + migration

    def _exposed_s(self, work: StepWork, gpu_s: float) -> float:
        """Return the seconds for which a step waits for tokens that change memories."""
        self._since_moves_s += gpu_s
        if not any(work.swaps):
            return 0.0
        seconds = self._migration.seconds(work.swaps)
        hidden = min(seconds, self._since_moves_s)
        self.hidden_s += hidden
        self._since_moves_s = 0.0
        return seconds - hidden

    def parts_s(self) -> dict[str, float]:
        """Return the seconds of all steps so far by part."""
        return {
            "gpu": self.gpu_s,
            "attention": self.attention_s,
            "fetch": self.fetch_s,
            "scatter": self.scatter_s,
            "swap": self.swap_s,
            "labels": self.scan_s,
            "migration": self.migration_s,
        }

    def _transfer_s(self, tokens: Sequence[int]) -> float:
        """Return the seconds until the keys and values of so many tokens of each tier have crossed the links."""
        if not any(tokens):
            return 0.0
        per_token = self._model.kv_bytes_per_token
        loads = {tier.name: count * per_token for tier, count in zip(self._system.tiers, tokens, strict=True)}
        return max(transfer_s(self._paths, loads).values())

    def _attention_s(self, work: StepWork) -> float:
        """Return the seconds of the decoding requests' attention in all layers."""
        busy = [index for index, requests in enumerate(work.tier_requests) if requests]
        tokens = work.tier_fullest or work.tier_tokens
        if len(busy) > 1 or any(work.tier_pages):
            return self._layers_s(tokens, work.tier_requests, work.decode_appended, _pages(work))
        # One tier holds everything: the whole of the attention is kept on the grid of its tokens.
        low, high, share = neighbours(tokens[busy[0]] / work.decoding)
        scattered = _pages(work)[busy[0]] is not None
        near = self._alone_s(busy[0], work.decoding, low, scattered)
        return near + share * (self._alone_s(busy[0], work.decoding, high, scattered) - near) if share else near

    def _alone_s(self, tier: int, requests: int, tokens: int, scattered: bool) -> float:
        """Return the seconds of all layers when one tier holds ``tokens`` of each of ``requests``."""
        key = (tier, requests, tokens, scattered)
        if key not in self._alone:
            chosen = [int(index == tier) for index in range(len(self._system.tiers))]
            self._alone[key] = self._layers_s(
                [requests * tokens * here for here in chosen],
                [requests * here for here in chosen],
                [requests * here for here in chosen],
                [0.0 if scattered else None] * len(chosen),
            )
        return self._alone[key]

    def _layers_s(
        self,
        tokens: Sequence[float],
        requests: Sequence[float],
        appended: Sequence[int],
        pages: Sequence[float | None],
    ) -> float:
        """Return the seconds of all layers; tokens, requests, what they append and pages touched, by tier."""
        decoding = sum(appended)
        mean = sum(tokens) / decoding
        names = [tier.name for tier in self._system.tiers]
        seconds = 0.0
        for layer, count in self._groups:
            seen = min(1.0, layer.window / mean) if layer.window else 1.0
            loads: dict[str, TierLoad] = {}
            times: dict[str, TierTime] = {}
            for name, held, some, touched in zip(names, tokens, requests, pages, strict=True):
                here = max(1, round(some)) if held else 0
                each = seen * held / here if here else 0.0
                loads[name] = TierLoad(here, max(1, round(each)) if here else 0)
                of_each = None if touched is None or not here else seen * touched / here
                times[name] = self._grids[name].time(here, each, of_each)
            time = attention_time(
                self._system,
                self._model.attention,
                loads,
                times,
                batch=decoding,
                appended=dict(zip(names, appended, strict=True)),
            )
            seconds += count * time.attention_s
        return seconds


def _pages(work: StepWork) -> list[float | None]:
    """Return the pages that are touched in each tier where tokens lie scattered; None where all are attended to."""
    if not work.tier_pages:
        return [None] * len(work.tier_tokens)
    whole = (tokens >= held for tokens, held in zip(work.tier_tokens, work.tier_held, strict=True))
    return [None if all_of_it else pages for all_of_it, pages in zip(whole, work.tier_pages, strict=True)]
