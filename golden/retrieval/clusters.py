"""Inverted index: keys in clusters of like direction, each with a centroid and a posting list of its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from golden.formats import FP16
from golden.retrieval.method import RetrievalMethod, Traffic

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.retrieval.method import Query, Tokens, Vectors

__all__ = ["Clusters"]

_TOKEN_ID_BYTES = 4


class Clusters(RetrievalMethod):
    """Select the clusters whose centroids the queries like best (ClusterKV, arXiv:2412.03213; inverted index).

    k-means by cosine over unit vectors, ``ceil(tokens / cluster_tokens)`` centroids, begun at evenly spaced tokens and
    bettered ``iterations`` times; a key goes to the centroid of the largest cosine, ties to the lower one. New tokens
    join the nearest list; after ``recluster_tokens`` of them everything is clustered anew. A list of more than
    ``most_tokens`` is split in two by the same rule. A cluster without tokens is dropped. The score is the largest
    ``q . c`` over the heads, c being the mean of the cluster's keys.

    Parameters
    ----------
    head_dim : int
    cluster_tokens : int
        Tokens of a cluster on average; 80 in ClusterKV.
    iterations : int
        Steps of k-means.
    recluster_tokens : int
        New tokens after which all is clustered anew; 320 in ClusterKV.
    most_tokens : int
        Longest list.
    """

    def __init__(
        self,
        head_dim: int,
        *,
        cluster_tokens: int = 80,
        iterations: int = 10,
        recluster_tokens: int = 320,
        most_tokens: int = 512,
    ) -> None:
        require_int("cluster_tokens", cluster_tokens, 1)
        require_int("iterations", iterations, 0)
        require_int("recluster_tokens", recluster_tokens, 1)
        require_int("most_tokens", most_tokens, 2)
        super().__init__(head_dim)
        self.cluster_tokens = cluster_tokens
        self.iterations = iterations
        self.recluster_tokens = recluster_tokens
        self.most_tokens = most_tokens
        self.lists: list[Tokens] = []
        self.centroids: npt.NDArray[np.float64] = np.empty((0, head_dim))
        self._clustered = 0

    def _index(self, start: int) -> None:
        """Cluster anew where it is due, else let the new tokens join lists."""
        if not self.lists or self.num_tokens - self._clustered >= self.recluster_tokens:
            self._cluster()
        else:
            tokens = np.arange(start, self.num_tokens)
            nearest = _nearest(_unit(self.keys[start:]), _unit(self.centroids))
            self.lists = [
                np.concatenate([members, tokens[nearest == cluster]]) for cluster, members in enumerate(self.lists)
            ]
        self._split()
        self._update()

    def _cluster(self) -> None:
        """Cluster all tokens."""
        self._clustered = self.num_tokens
        if not self.num_tokens:
            return
        count = -(-self.num_tokens // self.cluster_tokens)
        starts = np.arange(count) * self.num_tokens // count
        self.lists = _k_means(self.keys, np.arange(self.num_tokens), starts, self.iterations)

    def _split(self) -> None:
        """Split lists that are too long until none is."""
        pending, fitting = self.lists[::-1], list["Tokens"]()
        while pending:
            members = pending.pop()
            if len(members) <= self.most_tokens:
                fitting.append(members)
                continue
            halves = _k_means(self.keys[members], members, np.array([0, len(members) - 1]), self.iterations)
            if len(halves) < 2:  # equal keys are no two clusters
                halves = [members[: len(members) // 2], members[len(members) // 2 :]]
            pending += halves[::-1]
        self.lists = fitting

    def _update(self) -> None:
        """Drop empty lists and work out the means of the others."""
        self.lists = [members for members in self.lists if len(members)]
        means = [self.keys[members].astype(np.float64).mean(axis=0) for members in self.lists]
        self.centroids = np.array(means).reshape(len(means), self.head_dim)

    def score(self, query: Query) -> npt.NDArray[np.float32]:
        """Return the score of every cluster."""
        products = self.centroids @ query.vectors.astype(np.float64).T
        return products.max(axis=1).astype(np.float32)

    def tokens_of(self, candidate: int) -> Tokens:
        """Return the tokens of a cluster."""
        return np.sort(self.lists[candidate])

    def traffic(self, selected: Tokens, heads: int) -> Traffic:
        """Return the cost: all centroids, and the ids of the tokens that are selected."""
        count = len(self.lists)
        return Traffic(
            score_bytes=count * self.head_dim * FP16.bytes + len(selected) * _TOKEN_ID_BYTES,
            score_flops=2 * heads * count * self.head_dim,
            candidates=count,
            gather_tokens=len(selected),
        )


def _unit(vectors: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return vectors of length 1; those of length 0 stay."""
    values = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(lengths > 0, lengths, 1)


def _nearest(units: npt.NDArray[np.float64], centres: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the centre of the largest cosine of each vector, the lower one of equals."""
    return (units @ centres.T).argmax(axis=1)


def _k_means(keys: Vectors, tokens: Tokens, starts: npt.NDArray[np.int64], iterations: int) -> list[Tokens]:
    """Return ``tokens`` in clusters, begun at the rows ``starts`` of their keys; empty clusters are left out."""
    units = _unit(keys)
    centres = units[starts]
    nearest = _nearest(units, centres)
    for _ in range(iterations):
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, units)
        # A centre that nobody is nearest to stays where it is.
        met = np.bincount(nearest, minlength=len(centres)) > 0
        centres = np.where(met[:, None], _unit(sums), centres)
        moved = _nearest(units, centres)
        if np.array_equal(moved, nearest):
            break
        nearest = moved
    return [tokens[nearest == cluster] for cluster in np.unique(nearest)]
