"""PAM's policy: the ratio of what three memories score is kept by swaps in every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim.calibration import factors
from sim.tiering.history_bins import average_bins, with_older_reads
from sim.tiering.memories import AverageMemory, average_of_history
from sim.tiering.policy import Policy, TierScore

if TYPE_CHECKING:
    from collections.abc import Callable

    from golden.retrieval.access import AccessLocality, AccessStream
    from sim.tiering.bins import Bins
    from sim.tiering.memories import TokenMemory

__all__ = ["SCORES", "Ratio", "ratio_gains"]

SCORES = {
    "mean": "sum of importances over the tokens of the memory itself",
    "sum": "sum of importances, with one count of tokens for all memories",
}
"""Readings of a memory's score in PAM's ratio, by name: the paper divides by a count and does not say which."""


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
