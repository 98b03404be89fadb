"""Transfers between the GPUs and the memories.

A path is a chain of links that forward without storing: its latency is the sum of theirs, its time per byte that of
the slowest. Tiers whose paths share a link share its bandwidth, and their transfers are taken to be simultaneous, so
each waits for the bytes of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sim.provenance import Part

__all__ = ["Link", "transfer_s"]


@dataclass(frozen=True)
class Link:
    """One link, all its parallel instances together.

    Parameters
    ----------
    name : str
        Name in the system.
    bytes_per_s : float
        Rate in one direction.
    latency_s : float
        From the first byte in to the first byte out.
    parts : tuple of Part
        Where the two numbers come from.
    """

    name: str
    bytes_per_s: float
    latency_s: float
    parts: tuple[Part, ...]


def transfer_s(paths: Mapping[str, Sequence[Link]], loads: Mapping[str, int]) -> dict[str, float]:
    """Return how long each tier's transfer takes when all start together.

    Parameters
    ----------
    paths : mapping of str to sequence of Link
        Links on the way to each tier.
    loads : mapping of str to int
        Bytes that each tier sends or receives; a tier without bytes takes no time.

    Returns
    -------
    dict of str to float
        Seconds by tier: ``sum(latency) + max over links(bytes of all tiers on the link / rate)``.
    """
    on_link: dict[str, int] = {}
    for tier, load in loads.items():
        for link in paths[tier]:
            on_link[link.name] = on_link.get(link.name, 0) + load
    return {
        tier: sum(link.latency_s for link in paths[tier])
        + max(on_link[link.name] / link.bytes_per_s for link in paths[tier])
        if load
        else 0.0
        for tier, load in loads.items()
    }
