"""How many tokens of a nearer and a farther memory change places, one for one, the most worth it first.

The nearer memory gives its least important token for the most important one of the farther, then the next pair, while
the one that comes is more important than the one that goes, up to a budget, and until enough importance has come.
Occupancies stay as they are. Tokens of equal importance may be given as one entry with a count that need not be whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Ranked", "swap_count", "taken"]


class Ranked(NamedTuple):
    """Candidates in the order in which they go: importance, and how many have it; both of shape (n,)."""

    importance: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]


def swap_count(near: Ranked, far: Ranked, *, budget: float, needed: float) -> float:
    """Return how many pairs change places.

    Parameters
    ----------
    near, far : Ranked
        The nearer memory's candidates, ascending; the farther one's, descending.
    budget : float
        Pairs at most.
    needed : float
        Importance that must come to the nearer memory, ``sum (far - near)`` over pairs; no pair follows once it has.

    Returns
    -------
    float
        Pairs; where counts are whole so that single tokens are meant, round it up.
    """
    if needed <= 0.0 or budget <= 0.0 or not len(near.counts) or not len(far.counts):
        return 0.0
    near_end, far_end = np.cumsum(near.counts), np.cumsum(far.counts)
    limit = min(budget, float(near_end[-1]), float(far_end[-1]))
    ends = np.unique(np.concatenate([near_end, far_end]))
    ends = np.append(ends[ends < limit], limit)
    begins = np.concatenate([[0.0], ends[:-1]])
    middle = (begins + ends) / 2
    gain = far.importance[np.searchsorted(far_end, middle)] - near.importance[np.searchsorted(near_end, middle)]
    good = int(np.count_nonzero(np.cumprod(gain > 0.0)))
    if not good:
        return 0.0
    gained = np.cumsum(gain[:good] * (ends - begins)[:good])
    place = int(np.searchsorted(gained, needed))
    if place == good:
        return float(ends[good - 1])
    before = float(gained[place - 1]) if place else 0.0
    return float(begins[place] + (needed - before) / gain[place])


def taken(ranked: Ranked, swaps: float) -> npt.NDArray[np.float64]:
    """Return how many of each entry ``swaps`` pairs take."""
    ends = np.cumsum(ranked.counts)
    return np.clip(swaps - (ends - ranked.counts), 0.0, ranked.counts)
