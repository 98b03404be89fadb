"""Policies by name: what decides that a token of a farther memory takes the place of one of a nearer memory.

Policies swap tokens of neighbouring memories one for one, so that occupancies stay as the fill rule made them
(:mod:`sim.tiering.swaps`): the farthest pair of memories first, then the nearer one. A policy says how important a
token is, how often tokens are moved, and how much importance is to come to the nearer of two memories.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from golden.retrieval.access import LOCALITIES, AccessStream
from sim.tiering.count_bins import count_bins, future_bins
from sim.tiering.history_bins import average_bins, recency_bins
from sim.tiering.memories import (
    AverageMemory,
    CountMemory,
    FutureMemory,
    RecencyMemory,
    TableMemory,
    average_of_history,
)
from sim.tiering.policy import Policy
from sim.tiering.ratio import Ratio

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from golden.retrieval.access import AccessLocality
    from sim.tiering.bins import Bins
    from sim.tiering.memories import TokenMemory
    from sim.tiering.policy import TierScore

__all__ = ["POLICIES", "read_next_table"]


@dataclass(frozen=True)
class Sorted(Policy):
    """More important tokens are nearer, as far as a budget allows."""

    def gain(self, pair: int, scores: list[TierScore]) -> float:
        """Return no limit."""
        del pair, scores
        return float("inf")


@dataclass(frozen=True)
class Recency(Sorted):
    """Least recently read tokens go."""

    description: str = "what was read last is nearest"

    def memory(self, stream: AccessStream, kept: Callable[[int], int]) -> TokenMemory:
        """Return the last reads."""
        del kept
        return RecencyMemory(stream)

    def bins(self, locality: AccessLocality) -> Bins:
        """Return bins by age."""
        return recency_bins(locality)


@dataclass(frozen=True)
class Future(Sorted):
    """Belady's rule, which knows what is read next: no other makes a step read fewer tokens outside near memories."""

    description: str = "what will be read soonest is nearest: a bound on tokens read far away, not on time"
    in_budget: bool = False

    def memory(self, stream: AccessStream, kept: Callable[[int], int]) -> TokenMemory:
        """Return the next reads."""
        return FutureMemory(stream, kept)

    def bins(self, locality: AccessLocality) -> Bins:
        """Return bins by wait."""
        return future_bins(locality)


@dataclass(frozen=True)
class Learned(Sorted):
    """What a table, learnt on other requests, takes to be read next comes before it is."""

    description: str = "what a table learnt on other reads takes to be read next is nearest"

    @cached_property
    def _table(self) -> npt.NDArray[np.float32]:
        return read_next_table(LOCALITIES["fitted"], tokens=20_000, steps=60, seed=1 << 20)

    def memory(self, stream: AccessStream, kept: Callable[[int], int]) -> TokenMemory:
        """Return what the table says."""
        del kept
        return TableMemory(stream, self._table)

    def bins(self, locality: AccessLocality) -> Bins:
        """Return bins by the last four steps."""
        return average_bins(locality, self._table.astype(np.float64), float(self._table[15]))


def read_next_table(locality: AccessLocality, *, tokens: int, steps: int, seed: int) -> npt.NDArray[np.float32]:
    """Return how often a token was read in a step, by its reads in the four before, the latest the highest bit."""
    stream = AccessStream(locality, tokens, np.random.default_rng(seed))
    first, last = locality.always(tokens, tokens)
    met, read = np.zeros(16), np.zeros(16)
    for _ in range(steps):
        before = stream.history[first:-last] >> np.uint8(4)
        now = stream.step(-(-tokens // 8))[first:-last]
        met += np.bincount(before, minlength=16)
        read += np.bincount(before, weights=now, minlength=16)
    return (read / np.maximum(met, 1.0)).astype(np.float32)


@dataclass(frozen=True)
class Thresholds(Policy):
    """The seed's rule: ``I = 0.9 I + 0.1 count`` every 50 steps; 5.0 and more belongs nearest, 1.0 and more next.

    Only tokens that lie too far or too near are moved, behind the GPUs' parts of the interval. Counts are those of the
    interval: with the 0 or 1 of a single step no importance exceeds 1.0, and no token would ever belong nearest.
    """

    description: str = "I = 0.9 I + 0.1 reads, every 50 steps; from 5.0 nearest, from 1.0 next (the seed)"
    every: int = 50
    in_budget: bool = False
    decay: float = 0.9
    levels: tuple[float, float] = (5.0, 1.0)
    highest: float = 20.0

    def memory(self, stream: AccessStream, kept: Callable[[int], int]) -> TokenMemory:
        """Return counts."""
        del kept
        return CountMemory(stream, self.decay)

    def bins(self, locality: AccessLocality) -> Bins:
        """Return bins by importance."""
        return count_bins(locality, self.decay, self.every, self.highest)

    def gain(self, pair: int, scores: list[TierScore]) -> float:
        """Return no limit."""
        del pair, scores
        return float("inf")

    def threshold(self, pair: int) -> float | None:
        """Return the level of the memory; those behind the second have none."""
        return self.levels[pair] if pair < len(self.levels) else 0.0


@dataclass(frozen=True)
class StepThresholds(Thresholds):
    """The seed's rule as it is written, with the 0 or 1 of every step: nothing ever belongs nearest."""

    description: str = "the seed's rule with the 0 or 1 of every step: no importance exceeds 1.0, nothing goes nearest"

    def memory(self, stream: AccessStream, kept: Callable[[int], int]) -> TokenMemory:
        """Return moving averages of single steps."""
        del kept
        return AverageMemory(stream, 1.0 - self.decay)

    def bins(self, locality: AccessLocality) -> Bins:
        """Return bins by the last four steps; none of these importances reaches a level."""
        codes = (np.arange(16) << 4).astype(np.uint8)
        return average_bins(locality, average_of_history(codes, 1.0 - self.decay).astype(np.float64), 1.0)


POLICIES: dict[str, Policy] = {
    "static": Policy(),
    "pam": Ratio(),
    "pam-seed": Thresholds(),
    "pam-seed-step": StepThresholds(),
    "lru": Recency(),
    "oracle": Future(),
    "predictive": Learned(),
}
"""Policies by name."""
