"""Where new blocks of keys and values go: rules that share blocks out over tiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.placement import PLACEMENTS, apportion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["FILL_RULES", "FillRule"]


@dataclass(frozen=True)
class FillRule:
    """A rule, and what it does in words.

    ``share(free, room, blocks)`` returns how many of ``blocks`` each tier takes, at most its free ones; there must be
    that many free ones together.
    """

    description: str
    share: Callable[[Sequence[int], Sequence[int], int], list[int]]


def _top_down(free: Sequence[int], room: Sequence[int], blocks: int) -> list[int]:
    """Fill the nearest tier, then the next."""
    del room
    taken: list[int] = []
    for limit in free:
        taken.append(min(limit, blocks))
        blocks -= taken[-1]
    return taken


def _by_capacity(free: Sequence[int], room: Sequence[int], blocks: int) -> list[int]:
    """Bring every tier as near as possible to the same fraction full; nothing that lies is moved for it."""
    used = [limit - left for limit, left in zip(room, free, strict=True)]
    wanted = apportion(sum(used) + blocks, room)
    taken = [max(0, share - now) for share, now in zip(wanted, used, strict=True)]
    # A tier that is fuller than its share takes none, so the others ask for too much; the farthest gives way.
    surplus = sum(taken) - blocks
    for index in reversed(range(len(taken))):
        back = min(surplus, taken[index])
        taken[index] -= back
        surplus -= back
    return taken


FILL_RULES = {
    "top-down": FillRule(PLACEMENTS["top-down"], _top_down),
    "by-capacity": FillRule(PLACEMENTS["by-capacity"], _by_capacity),
}
"""Rules by name."""
