"""The indexer of DeepSeek sparse attention: one fp8 key a token, scored by several weighted heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.formats import FP8_E4M3, FP32
from golden.retrieval.index_score import index_scores
from golden.retrieval.index_spec import KARAT_SCORES, MODES
from golden.retrieval.method import RetrievalMethod, Traffic

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.retrieval.index_spec import ScoreSpec
    from golden.retrieval.method import Query, Tokens

__all__ = ["Indexer", "indexer_scores", "quantize"]


def quantize(vectors: npt.ArrayLike) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """Return fp8 codes of each vector and its scale: ``x ~ scale * code``.

    Parameters
    ----------
    vectors : array_like, shape (n, head_dim)

    Returns
    -------
    codes : ndarray of uint8, shape (n, head_dim)
    scales : ndarray of float32, shape (n,)
        ``max |x| / 448``, rounded to fp32, so that the largest element becomes the format's largest; 1 for a vector of
        zeros.
    """
    values = np.asarray(vectors, np.float32)
    largest = np.abs(values).max(axis=1, initial=0.0)
    limit = np.float32(FP8_E4M3.max_finite)
    # A largest element so small that its scale would be 0 keeps scale 1, and rounds to 0.
    scales = np.where(largest / limit > 0, largest / limit, np.float32(1)).astype(np.float32)
    scaled = np.clip(values / scales[:, None], -limit, limit)
    return FP8_E4M3.to_codes(scaled).astype(np.uint8), scales


def indexer_scores(
    query_codes: npt.NDArray[np.uint8],
    weights: npt.NDArray[np.float32],
    key_codes: npt.NDArray[np.uint8],
    key_scales: npt.NDArray[np.float32],
    spec: ScoreSpec = KARAT_SCORES,
) -> npt.NDArray[np.float32]:
    """Return ``scale_s * sum_h w_h ReLU(q_h . k_s)`` of every key, bit for bit what the hardware gives.

    The product of two E4M3 numbers and the sum of ``head_dim`` of them are exact; the sum is rounded to fp32 once. So
    no order of the elements changes a bit; that of the heads is the spec's (:mod:`golden.retrieval.index_score`).

    Parameters
    ----------
    query_codes : ndarray of uint8, shape (heads, head_dim)
    weights : ndarray of float32, shape (heads,)
        The scale of the query's codes is in them.
    key_codes : ndarray of uint8, shape (tokens, head_dim)
    key_scales : ndarray of float32, shape (tokens,)
    spec : ScoreSpec
        Order of the heads.

    Returns
    -------
    ndarray of float32, shape (tokens,)
    """
    return index_scores(spec, MODES["indexer"], query_codes, weights, key_codes, key_scales)


class Indexer(RetrievalMethod):
    """Scores every token by ``scale_s * sum_h w_h ReLU(q_h . k_s)`` over keys in fp8 (DeepSeek-V3.2-Exp, inference).

    The queries are brought to fp8 head by head, and their scales multiplied into the weights. A key takes ``head_dim``
    bytes and a scale of four.
    """

    def __init__(self, head_dim: int) -> None:
        super().__init__(head_dim)
        self.codes = np.empty((0, head_dim), np.uint8)
        self.scales = np.empty(0, np.float32)

    def _index(self, start: int) -> None:
        """Quantise the new keys."""
        codes, scales = quantize(self.keys[start:])
        self.codes = np.concatenate([self.codes, codes])
        self.scales = np.concatenate([self.scales, scales])

    def score(self, query: Query) -> npt.NDArray[np.float32]:
        """Return the score of every token."""
        codes, scales = quantize(query.vectors)
        return indexer_scores(codes, query.weights * scales, self.codes, self.scales)

    def tokens_of(self, candidate: int) -> Tokens:
        """Return the token itself."""
        return np.array([candidate])

    @property
    def key_bytes(self) -> int:
        """Bytes of a key and its scale."""
        return self.head_dim * FP8_E4M3.bytes + FP32.bytes

    def traffic(self, selected: Tokens, heads: int) -> Traffic:
        """Return the cost: all keys and scales are read once, and scored by every head."""
        return Traffic(
            score_bytes=self.num_tokens * self.key_bytes,
            score_flops=2 * heads * self.num_tokens * self.head_dim,
            candidates=self.num_tokens,
            gather_tokens=len(selected),
        )
