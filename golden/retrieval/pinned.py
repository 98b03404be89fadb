"""A method with tokens that are always selected: the first ones and the last ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int

if TYPE_CHECKING:
    from golden.retrieval.method import Query, RetrievalMethod, Tokens, Traffic

__all__ = ["Pinned"]


class Pinned:
    """Add sinks and a window to what another method selects.

    The first token of a sequence holds up to a third of a head's attention whatever the query is, and methods that
    score blocks tend to miss it.

    Parameters
    ----------
    method : RetrievalMethod
        Selects the others.
    sinks, window : int
        First and last tokens that are always selected.
    """

    def __init__(self, method: RetrievalMethod, *, sinks: int, window: int) -> None:
        require_int("sinks", sinks, 0)
        require_int("window", window, 0)
        self.method = method
        self.sinks = sinks
        self.window = window

    def pins(self) -> Tokens:
        """Return the tokens that are always selected, ascending."""
        tokens = self.method.num_tokens
        return np.union1d(np.arange(min(self.sinks, tokens)), np.arange(max(0, tokens - self.window), tokens))

    def select(self, query: Query, k: int) -> Tokens:
        """Return at most ``k`` tokens, ascending: the pins, the first ones if they are too many, and the best others.

        Raises
        ------
        ValueError
            See :meth:`golden.retrieval.method.RetrievalMethod.select`.
        """
        pins = self.pins()[:k] if k >= 0 else self.pins()
        # Of the method's best k at most len(pins) are pins already, so enough others are among them.
        found = self.method.ranked(query, k)
        others = found[~np.isin(found, pins)][: k - len(pins)]
        return np.sort(np.concatenate([pins, others]))

    def traffic(self, selected: Tokens, heads: int) -> Traffic:
        """Return what a query of ``heads`` vectors costs that selected these tokens."""
        return self.method.traffic(selected, heads)
