"""Time and bytes of tokens that change memories: over the links between two memories, in both directions at once."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.links import Link
    from sim.system import System

__all__ = ["Migration", "route"]


def route(near: Sequence[Link], far: Sequence[Link]) -> tuple[Link, ...]:
    """Return the links between two memories, given their ways from the GPUs: those that these don't share."""
    names = {link.name for link in near} & {link.name for link in far}
    return tuple(link for link in (*near, *far) if link.name not in names)


class Migration:
    """``t = latency + max(bytes on a link / its rate, bytes of a memory's ports / their rate)``.

    Pairs of tokens change places, so that a link carries as many bytes one way as the other, each at its rate; a
    memory's ports carry both. The links' buffers take up what is written to flash; the time to program pages is not
    in it.

    Parameters
    ----------
    system : System
    token_bytes : int
        Keys and values of a token, all layers.
    """

    def __init__(self, system: System, token_bytes: int) -> None:
        self._token_bytes = token_bytes
        tiers = system.tiers
        self._routes = [route(near.path, far.path) for near, far in itertools.pairwise(tiers)]
        self._ports = [tier.device.external_bytes_per_s.number * tier.count.integer for tier in tiers]

    def link_bytes(self, swaps: Sequence[float]) -> dict[str, float]:
        """Return the bytes that each link carries, both ways together, for pairs swapped between neighbours."""
        found: dict[str, float] = {}
        for links, pairs in zip(self._routes, swaps, strict=True):
            for link in links:
                found[link.name] = found.get(link.name, 0.0) + 2.0 * pairs * self._token_bytes
        return found

    def seconds(self, swaps: Sequence[float]) -> float:
        """Return how long pairs swapped between neighbours take, all at once; 0 for none."""
        if not any(swaps):
            return 0.0
        rates = {link.name: link.bytes_per_s for links in self._routes for link in links}
        slowest = max(carried / 2.0 / rates[name] for name, carried in self.link_bytes(swaps).items())
        of_tier = [0.0, *swaps], [*swaps, 0.0]
        for rate, above, below in zip(self._ports, *of_tier, strict=True):
            slowest = max(slowest, 2.0 * (above + below) * self._token_bytes / rate)
        latency = max(
            sum(link.latency_s for link in links) for links, pairs in zip(self._routes, swaps, strict=True) if pairs
        )
        return latency + slowest
