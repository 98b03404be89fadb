"""Tokens of a request by what a policy knows of them, as numbers that need not be whole: cost without the context.

Bin 0 holds the tokens that every step reads. The others are a Markov chain: from bin z a token is read with probability
``memory_z + s anew_z``, with one factor s a request and step that makes the reads exactly as many as are asked for, and
goes on to another bin, by one table if it was read and by another if not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Table = npt.NDArray[np.float64]

__all__ = ["Bins", "read_chance"]


@dataclass(frozen=True, kw_only=True)
class Bins:
    """Bins of a policy.

    Parameters
    ----------
    memory, anew : ndarray, shape (bins,)
        Read probability, its fixed part and the part that is scaled; bin 0 is always read.
    read_to, unread_to : ndarray, shape (bins, bins), or None
        Where tokens go that were read, and that were not; None where bins change at decisions alone.
    decided_to : ndarray, shape (bins, bins), or None
        Where tokens go at a decision.
    leave : ndarray, shape (bins,)
        Where those go that are no longer read always.
    start : ndarray, shape (bins,)
        How the tokens of a request that begins are spread, those aside that are always read.
    importance : ndarray, shape (bins,)
        By which tokens are ranked.
    score : ndarray, shape (bins,), or None
        Mean importance of a bin's tokens, where it is more than they are ranked by; None: the same.
    """

    memory: Table
    anew: Table
    read_to: Table | None
    unread_to: Table | None
    decided_to: Table | None
    leave: Table
    start: Table
    importance: Table
    score: Table | None = None

    def __len__(self) -> int:
        return len(self.importance)

    @cached_property
    def levels(self) -> Table:
        """The different importances, ascending."""
        return np.unique(self.importance)

    @cached_property
    def level(self) -> npt.NDArray[np.int64]:
        """Of each bin, the place of its importance among the levels: a policy can't tell bins of one level apart."""
        return np.searchsorted(self.levels, self.importance)

    def total(self, counts: Table) -> float:
        """Return the sum of the importance of so many tokens of each bin."""
        return float(counts @ (self.importance if self.score is None else self.score))

    def by_level(self, counts: Table) -> Table:
        """Return how many tokens have each importance, given those of each bin."""
        return np.bincount(self.level, weights=counts, minlength=len(self.levels)).astype(np.float64)


def read_chance(bins: Bins, counts: Table, wanted: Table) -> Table:
    """Return the probability of being read, shape (requests, bins).

    Parameters
    ----------
    bins : Bins
    counts : ndarray, shape (requests, bins)
        Tokens of each request.
    wanted : ndarray, shape (requests,)
        Reads of each, those of bin 0 left out.
    """
    inner = counts.copy()
    inner[:, 0] = 0.0
    scaled = inner @ bins.anew
    factor = (wanted - inner @ bins.memory) / np.maximum(scaled, 1e-12)
    chance = np.clip(bins.memory + factor[:, np.newaxis] * bins.anew, 0.0, 1.0)
    # Where a probability would leave 0 to 1, all give way alike.
    expected = (inner * chance).sum(axis=1)
    chance *= np.minimum(1.0, wanted / np.maximum(expected, 1e-12))[:, np.newaxis]
    short = np.clip((wanted - expected) / np.maximum(inner.sum(axis=1) - expected, 1e-12), 0.0, 1.0)
    chance += (1.0 - chance) * short[:, np.newaxis]
    chance[:, 0] = 1.0
    return chance
