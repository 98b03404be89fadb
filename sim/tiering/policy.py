"""What a policy is: nothing moves where no other class says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.tiering.history_bins import kind_bins
from sim.tiering.memories import NoMemory

if TYPE_CHECKING:
    from collections.abc import Callable

    from golden.retrieval.access import AccessLocality, AccessStream
    from sim.tiering.bins import Bins
    from sim.tiering.memories import TokenMemory

__all__ = ["Policy", "TierScore"]


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
