"""Double Sparsity: a few channels of every key, chosen beforehand, stand for all of them when tokens are scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.formats import FP16
from golden.retrieval.method import RetrievalMethod, Traffic, require_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from golden.retrieval.method import Query, Tokens, Vectors

__all__ = ["Labels", "heavy_channels"]


def heavy_channels(queries: npt.ArrayLike, keys: npt.ArrayLike, count: int) -> list[int]:
    """Return the ``count`` channels that products of queries and keys owe most to, ascending; ties to the lower one.

    Parameters
    ----------
    queries, keys : array_like, shape (n, head_dim), (m, head_dim)
        What they are chosen from.
    count : int
        Channels.

    Raises
    ------
    ValueError
        If shapes disagree, or there are fewer channels.
    """
    q = np.asarray(queries, np.float64)
    k = require_vectors("keys", keys, q.shape[-1]).astype(np.float64)
    if not 1 <= count <= q.shape[-1]:
        raise ValueError(f"count must be from 1 to {q.shape[-1]}, not {count!r}")
    weight = np.abs(q).mean(axis=0) * np.abs(k).mean(axis=0)
    order = np.lexsort((np.arange(len(weight)), -weight))
    return sorted(int(channel) for channel in order[:count])


class Labels(RetrievalMethod):
    """Score tokens by some channels of their keys alone (Double Sparsity, arXiv:2408.07092); the heads' largest counts.

    Parameters
    ----------
    head_dim : int
    channels : sequence of int
        Channels of a label, ascending; :func:`heavy_channels` chooses them. Labels are kept in fp16.

    Raises
    ------
    ValueError
        If channels do not ascend within the head dimension, or there are none.
    """

    def __init__(self, head_dim: int, *, channels: Sequence[int]) -> None:
        super().__init__(head_dim)
        found = np.array(channels, np.int64)
        if not len(found) or (np.diff(found, prepend=-1) <= 0).any() or found[-1] >= head_dim:
            raise ValueError(f"channels must ascend from 0 or more to less than {head_dim}, not {list(channels)!r}")
        self.channels = found
        self.labels: Vectors = np.empty((0, len(found)), np.float32)

    def _index(self, start: int) -> None:
        """Keep the channels of the new keys."""
        limit = FP16.max_finite
        added = np.clip(self.keys[start:, self.channels], -limit, limit).astype(np.float16).astype(np.float32)
        self.labels = np.concatenate([self.labels, added])

    def score(self, query: Query) -> npt.NDArray[np.float32]:
        """Return the score of every token."""
        vectors = query.vectors[:, self.channels].astype(np.float64)
        return (self.labels.astype(np.float64) @ vectors.T).max(axis=1).astype(np.float32)

    def tokens_of(self, candidate: int) -> Tokens:
        """Return the token itself."""
        return np.array([candidate])

    def traffic(self, selected: Tokens, heads: int) -> Traffic:
        """Return the cost: all labels are read once, and scored by every head."""
        channels = len(self.channels)
        return Traffic(
            score_bytes=self.num_tokens * channels * FP16.bytes,
            score_flops=2 * heads * self.num_tokens * channels,
            candidates=self.num_tokens,
            gather_tokens=len(selected),
        )
