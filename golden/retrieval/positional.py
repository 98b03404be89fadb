"""Methods that look at places alone: all tokens, or the first and the last ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from golden.retrieval.method import RetrievalMethod, Traffic

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.retrieval.method import Query, Tokens

__all__ = ["Dense", "Streaming"]


class Dense(RetrievalMethod):
    """Every token, whatever the query; ``select`` leaves out what is over its k, the last ones."""

    def _index(self, start: int) -> None:
        """There is nothing to keep."""

    def score(self, query: Query) -> npt.NDArray[np.float32]:
        """Return the same score for every token."""
        return np.zeros(self.num_tokens, np.float32)

    def tokens_of(self, candidate: int) -> Tokens:
        """Return the token itself."""
        return np.array([candidate])

    def traffic(self, selected: Tokens, heads: int) -> Traffic:
        """Return the cost: nothing is scored."""
        return Traffic(score_bytes=0, score_flops=0, candidates=0, gather_tokens=len(selected))


class Streaming(Dense):
    """The first tokens and a window of the last ones (StreamingLLM, arXiv:2309.17453).

    Parameters
    ----------
    head_dim : int
    sinks : int
        First tokens that are always attended to; 4 in the paper.
    """

    def __init__(self, head_dim: int, *, sinks: int = 4) -> None:
        require_int("sinks", sinks, 0)
        super().__init__(head_dim)
        self.sinks = sinks

    def score(self, query: Query) -> npt.NDArray[np.float32]:
        """Return +inf for the sinks, and for the others the larger the later they come."""
        scores = np.arange(self.num_tokens, dtype=np.float32)
        scores[: self.sinks] = np.inf
        return scores
