"""The interface of all retrieval methods, and what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int

if TYPE_CHECKING:
    import numpy.typing as npt

    Tokens = npt.NDArray[np.int64]
    Vectors = npt.NDArray[np.float32]

__all__ = ["Query", "RetrievalMethod", "Traffic", "require_vectors"]


@dataclass(frozen=True)
class Query:
    """Queries of the heads that share a KV head, and what each head's opinion weighs.

    Parameters
    ----------
    vectors : ndarray of float32, shape (heads, head_dim)
    weights : ndarray of float32, shape (heads,)
        Used by methods that sum over heads; the others let the largest score count.

    Raises
    ------
    ValueError
        If shapes disagree, there is no head, or an element is not finite.
    """

    vectors: Vectors
    weights: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.vectors):
            raise ValueError(f"vectors must have shape (heads, head_dim) of a head or more, not {self.vectors.shape}")
        require_vectors("vectors", self.vectors, self.vectors.shape[1])
        if self.weights.shape != (len(self.vectors),) or not np.isfinite(self.weights).all():
            raise ValueError(f"weights must be {len(self.vectors)} finite numbers, not {self.weights!r}")

    @classmethod
    def of(cls, vectors: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Query:
        """Return the query of ``vectors``, shape (heads, head_dim) or (head_dim,); weights are 1 if not given."""
        heads = np.atleast_2d(np.asarray(vectors, np.float32))
        return cls(heads, np.ones(len(heads), np.float32) if weights is None else np.asarray(weights, np.float32))


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What one query over an index costs, stage by stage.

    Parameters
    ----------
    score_bytes : int
        Index bytes read to score.
    score_flops : int
        Operations of scoring, multiplication and addition counted apart.
    candidates : int
        Scores that selection looks at.
    gather_tokens : int
        Tokens whose keys and values are then read.
    """

    score_bytes: int
    score_flops: int
    candidates: int
    gather_tokens: int


class RetrievalMethod(ABC):
    """An index over the keys of one KV head, token after token.

    Parameters
    ----------
    head_dim : int
        Elements of a key.
    """

    def __init__(self, head_dim: int) -> None:
        require_int("head_dim", head_dim, 1, 1 << 20)
        self.head_dim = head_dim
        self.keys: Vectors = np.empty((0, head_dim), np.float32)

    @property
    def num_tokens(self) -> int:
        """Tokens in the index."""
        return len(self.keys)

    def append(self, keys: npt.ArrayLike) -> None:
        """Add tokens behind those that are there; building an index is appending to an empty one.

        Parameters
        ----------
        keys : array_like, shape (tokens, head_dim)

        Raises
        ------
        ValueError
            If the shape is another, or a key is not finite.
        """
        added = require_vectors("keys", keys, self.head_dim)
        start = self.num_tokens
        self.keys = np.concatenate([self.keys, added])
        self._index(start)

    @abstractmethod
    def _index(self, start: int) -> None:
        """Bring the index up to date with the tokens from ``start`` on."""

    @abstractmethod
    def score(self, query: Query) -> npt.NDArray[np.float32]:
        """Return the score of every candidate, shape (candidates,)."""

    @abstractmethod
    def tokens_of(self, candidate: int) -> Tokens:
        """Return the tokens of a candidate, ascending."""

    @abstractmethod
    def traffic(self, selected: Tokens, heads: int) -> Traffic:
        """Return what a query of ``heads`` vectors costs that selected these tokens."""

    def select(self, query: Query, k: int) -> Tokens:
        """Return at most ``k`` tokens, ascending: those of the best candidates, ties to the lower id.

        Where the next best candidate does not fit whole, as many of its tokens are taken as do, the first ones.

        Parameters
        ----------
        query : Query
        k : int
            Tokens to select.

        Raises
        ------
        ValueError
            If the query's vectors are of another length, or ``k`` is negative.
        """
        return np.sort(self.ranked(query, k))

    def ranked(self, query: Query, k: int) -> Tokens:
        """Return the tokens of :meth:`select`, those of the best candidate first; raises as that does."""
        require_int("k", k, 0, 1 << 62)
        require_vectors("query", query.vectors, self.head_dim)
        scores = self.score(query)
        chosen: list[Tokens] = []
        left = k
        for candidate in np.lexsort((np.arange(len(scores)), -scores)):
            if left <= 0:
                break
            tokens = self.tokens_of(int(candidate))[:left]
            chosen.append(tokens)
            left -= len(tokens)
        return np.concatenate(chosen) if chosen else np.empty(0, np.int64)


def require_vectors(name: str, vectors: npt.ArrayLike, head_dim: int) -> Vectors:
    """Return ``vectors`` in fp32.

    Raises
    ------
    ValueError
        If the shape is not (n, head_dim), or an element is not finite.
    """
    found = np.asarray(vectors, np.float32)
    if found.ndim != 2 or found.shape[1] != head_dim:
        raise ValueError(f"{name} must have shape (n, {head_dim}), not {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite, row {int((~np.isfinite(found)).any(axis=1).argmax())} is not")
    return found
