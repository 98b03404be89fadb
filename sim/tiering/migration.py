"""Time and bytes of tokens that change memories while a server runs (:mod:`sim.migration` says what each takes)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sim.migration import Manner, Swap, swap_flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.links import Link
    from sim.models import Model
    from sim.system import System

__all__ = ["Migration", "route"]


def route(near: Sequence[Link], far: Sequence[Link]) -> tuple[Link, ...]:
    """Return the links between two memories, given their ways from the GPUs: those that these don't share."""
    names = {link.name for link in near} & {link.name for link in far}
    return tuple(link for link in (*near, *far) if link.name not in names)


class Migration:
    """``t = latency + max over memories and links of their time for all swaps``.

    A pair that changes places is a token read, written and read back in either memory, and once on every link each way.
    Pages of flash that are left have been read for attention, and a page that is written is full of tokens; its program
    time counts. What frames and flits add on links is left out.

    Parameters
    ----------
    system : System
    model : Model
    """

    def __init__(self, system: System, model: Model) -> None:
        self._token_bytes = model.kv_bytes_per_token
        pairs = list(itertools.pairwise(system.tiers))
        self._routes = [route(near.path, far.path) for near, far in pairs]
        self._demands_s: list[dict[str, float]] = []
        for near, far in pairs:
            page = far.device.page
            program = page.program_bytes_per_s if page is not None else 1.0
            manner = Manner(moved=0.0, last=0.0, link_share=1.0, read_amplification=1.0, program_bytes_per_s=program)
            self._demands_s.append(dict(swap_flow(system, model, Swap(near.name, far.name, 1), manner).demands_s))

    def link_bytes(self, swaps: Sequence[float]) -> dict[str, float]:
        """Return the bytes that each link carries, both ways together, for pairs swapped between neighbours."""
        found: dict[str, float] = {}
        for links, pairs in zip(self._routes, swaps, strict=True):
            for link in links:
                found[link.name] = found.get(link.name, 0.0) + 2.0 * pairs * self._token_bytes
        return found

    def seconds(self, swaps: Sequence[float]) -> float:
        """Return how long pairs swapped between neighbours take, all at once; 0 for none."""
        busy: dict[str, float] = {}
        latency = 0.0
        for links, demands, pairs in zip(self._routes, self._demands_s, swaps, strict=True):
            if not pairs:
                continue
            latency = max(latency, sum(link.latency_s for link in links))
            for name, demand_s in demands.items():
                busy[name] = busy.get(name, 0.0) + pairs * demand_s
        return latency + max(busy.values(), default=0.0)
