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
from sim.calibration import factors
from sim.tiering.bins import average_bins, count_bins, future_bins, kind_bins, recency_bins, with_older_reads
from sim.tiering.memories import (
    AverageMemory,
    CountMemory,
    FutureMemory,
    NoMemory,
    RecencyMemory,
    TableMemory,
    average_of_history,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from golden.retrieval.access import AccessLocality
    from sim.tiering.bins import Bins
    from sim.tiering.memories import TokenMemory

__all__ = ["POLICIES", "SCORES", "Policy", "TierScore", "ratio_gains", "read_next_table"]


SCORES = {
    "mean": "sum of importances over the tokens of the memory itself",
    "sum": "sum of importances, with one count of tokens for all memories",
}
"""Readings of a memory's score in PAM's ratio, by name: the paper divides by a count and does not say which."""


@dataclass(frozen=True)
class TierScore:
    """Sum of the importance of a memory's tokens, and how many they are."""

    importance: float
    tokens: float


@dataclass(frozen=True)
class Policy:
    """What moves tokens: nothing, if no other class says so.

    Parameters
    ----------
    description : str
        What it does in words.
    every : int
        Steps from one decision to the next.
    in_budget : bool
        Moves keep to the budget of a step.
    """

    description: str = "tokens stay where the fill rule put them"
    every: int = 1
    in_budget: bool = True

    def memory(self, stream: AccessStream, kept: Callable[[int], int]) -> TokenMemory:
        """Return what is known of a request that begins, a step of which reads ``kept(tokens)`` of its tokens."""
        del kept
        return NoMemory(stream)

    def bins(self, locality: AccessLocality) -> Bins:
        """Return the same as bins."""
        return kind_bins(locality)

    def gain(self, pair: int, scores: list[TierScore]) -> float:
        """Return the importance that is to come from memory ``pair + 1`` to memory ``pair``."""
        del pair, scores
        return 0.0

    def threshold(self, pair: int) -> float | None:
        """Return the importance of a token that belongs in memory ``pair`` or nearer; None: any may come."""
        del pair


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


def ratio_gains(x: float, y: float, near: TierScore, far: TierScore, others: float, *, lower: bool) -> float:
    """Return the importance to be exchanged between two memories until the ratio of all scores is x : y : 1.

    A memory's score is its mean importance, so that an exchange of g raises that of the nearer one by g / tokens.

    Parameters
    ----------
    x, y : float
        Ratio.
    near, far : TierScore
        The two memories.
    others : float
        Score of memories nearer than both.
    lower : bool
        The pair that ends with the farthest memory, ``(others + near) / far = x + y``; else ``near / far = x / y``.
    """
    if not near.tokens or not far.tokens:
        return 0.0
    wanted = x + y if lower else x / y
    rise = 1.0 / near.tokens + wanted / far.tokens
    return (wanted * far.importance / far.tokens - others - near.importance / near.tokens) / rise


@dataclass(frozen=True)
class Ratio(Policy):
    """PAM: mean importances of three memories are kept at x : y : 1 by swaps in every step (arXiv:2602.11521, alg. 2).

    ``I = 0.6 S + 0.4 I``, with S = 1 for a token that a step reads. Two memories are kept at x : y.

    Parameters
    ----------
    weight : float
        Of the latest step.
    ratio : tuple of float, or None
        x and y; None for those of ``sim/calibration.toml``.
    score : str
        One of :data:`SCORES`.
    """

    description: str = "mean importances of the memories are kept at x : y : 1 by swaps in every step (PAM)"
    weight: float = 0.6
    ratio: tuple[float, float] | None = None
    score: str = "mean"

    @property
    def kept_ratio(self) -> tuple[float, float]:
        """Return x and y."""
        return self.ratio or (factors()["pam_x"].value, factors()["pam_y"].value)

    def memory(self, stream: AccessStream, kept: Callable[[int], int]) -> TokenMemory:
        """Return moving averages."""
        del kept
        return AverageMemory(stream, self.weight)

    def bins(self, locality: AccessLocality) -> Bins:
        """Return bins by the last four steps, at the importance that these and those before leave."""
        codes = (np.arange(16) << 4).astype(np.uint8)
        found = average_bins(locality, average_of_history(codes, self.weight).astype(np.float64), 1.0)
        return with_older_reads(found, locality, self.weight)

    def gain(self, pair: int, scores: list[TierScore]) -> float:
        """Return what the ratio asks for."""
        x, y = self.kept_ratio
        if self.score == "sum":
            scores = [TierScore(score.importance, 1.0 if score.tokens else 0.0) for score in scores]
        near, far = scores[pair], scores[pair + 1]
        if pair:
            others = sum(score.importance / score.tokens for score in scores[:pair] if score.tokens)
            return ratio_gains(x, y, near, far, others, lower=True)
        return ratio_gains(x, y, near, far, 0.0, lower=False)


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
