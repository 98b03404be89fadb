"""Methods that select blocks of consecutive tokens: by their best token, by bounds, or by representatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from golden.formats import BF16, FP16
from golden.retrieval.method import RetrievalMethod, Traffic

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.retrieval.method import Query, Tokens, Vectors

__all__ = ["BestToken", "PageBounds", "Representatives"]


class _Blocks(RetrievalMethod):
    """Tokens in blocks; the last block may be short.

    Parameters
    ----------
    head_dim : int
    block_tokens : int
        Tokens of a block.
    """

    def __init__(self, head_dim: int, *, block_tokens: int) -> None:
        require_int("block_tokens", block_tokens, 1)
        super().__init__(head_dim)
        self.block_tokens = block_tokens

    @property
    def num_blocks(self) -> int:
        """Blocks, the short one included."""
        return -(-self.num_tokens // self.block_tokens)

    def tokens_of(self, candidate: int) -> Tokens:
        """Return the tokens of a block."""
        start = candidate * self.block_tokens
        return np.arange(start, min(start + self.block_tokens, self.num_tokens))

    def _starts(self) -> npt.NDArray[np.int64]:
        return np.arange(0, self.num_tokens, self.block_tokens)


class BestToken(_Blocks):
    """A block scores as its best token does, by a bf16 index key a token (MiniMax-M3: blocks of 128, score type max).

    The score of a token is the sum over heads of ``w_h (q_h . k)``, in fp32 from products of bf16 numbers. A local
    block at the end is not part of the method: :class:`golden.retrieval.pinned.Pinned` adds it.
    """

    def __init__(self, head_dim: int, *, block_tokens: int = 128) -> None:
        super().__init__(head_dim, block_tokens=block_tokens)
        self.index_keys: Vectors = np.empty((0, head_dim), np.float32)

    def _index(self, start: int) -> None:
        """Round the new keys to bf16."""
        added = self.keys[start:].astype(BF16.dtype).astype(np.float32)
        self.index_keys = np.concatenate([self.index_keys, added])

    def score(self, query: Query) -> npt.NDArray[np.float32]:
        """Return the score of every block."""
        vectors = query.vectors.astype(BF16.dtype).astype(np.float64)
        scores = (self.index_keys.astype(np.float64) @ vectors.T @ query.weights.astype(np.float64)).astype(np.float32)
        return np.maximum.reduceat(scores, self._starts()) if len(scores) else scores

    def traffic(self, selected: Tokens, heads: int) -> Traffic:
        """Return the cost: all index keys are read once, and scored by every head."""
        return Traffic(
            score_bytes=self.num_tokens * self.head_dim * BF16.bytes,
            score_flops=2 * heads * self.num_tokens * self.head_dim,
            candidates=self.num_blocks,
            gather_tokens=len(selected),
        )


class PageBounds(_Blocks):
    """A page scores at most ``sum_c max(q_c min_c, q_c max_c)`` (Quest, arXiv:2406.10774); the heads' largest counts.

    ``min_c`` and ``max_c`` are the least and the largest element c of the page's keys, in fp16 rounded outwards, so
    that the score is a bound of every key's score. Appending to the last page moves its bounds alone.
    """

    def __init__(self, head_dim: int, *, block_tokens: int = 16) -> None:
        super().__init__(head_dim, block_tokens=block_tokens)
        self.low: npt.NDArray[np.float16] = np.empty((0, head_dim), np.float16)
        self.high: npt.NDArray[np.float16] = np.empty((0, head_dim), np.float16)

    def _index(self, start: int) -> None:
        """Work out the bounds of the pages that got tokens."""
        first = start // self.block_tokens
        fresh = self.keys[first * self.block_tokens :]
        if not len(fresh):
            return
        starts = np.arange(0, len(fresh), self.block_tokens)
        self.low = np.concatenate([self.low[:first], _rounded(np.minimum.reduceat(fresh, starts), -1)])
        self.high = np.concatenate([self.high[:first], _rounded(np.maximum.reduceat(fresh, starts), 1)])

    def score(self, query: Query) -> npt.NDArray[np.float32]:
        """Return the bound of every page."""
        # Where q is positive the largest element bounds the product, where it is negative the least.
        positive, negative = np.maximum(query.vectors, 0), np.minimum(query.vectors, 0)
        with np.errstate(invalid="ignore"):
            bounds = self.high.astype(np.float64) @ positive.T + self.low.astype(np.float64) @ negative.T
        return bounds.max(axis=1).astype(np.float32)

    def traffic(self, selected: Tokens, heads: int) -> Traffic:
        """Return the cost: two vectors a page."""
        return Traffic(
            score_bytes=2 * self.num_blocks * self.head_dim * FP16.bytes,
            score_flops=2 * 2 * heads * self.num_blocks * self.head_dim,
            candidates=self.num_blocks,
            gather_tokens=len(selected),
        )


def _rounded(values: Vectors, direction: int) -> npt.NDArray[np.float16]:
    """Return ``values`` in fp16, rounded down (-1) or up (+1), within the finite numbers."""
    limit = np.float32(FP16.max_finite)
    near = np.clip(values, -limit, limit).astype(np.float16)
    wrong = near.astype(np.float32) < values if direction > 0 else near.astype(np.float32) > values
    stepped = np.nextafter(near, np.float16(direction * FP16.max_finite))
    return np.where(wrong, stepped, near).astype(np.float16)


class Representatives(_Blocks):
    """A block scores as the best of a few of its keys does (InfLLM, arXiv:2402.04617: 4 of 128).

    Representatives of a full block are the keys with the largest sum of products with all keys of the block, ties to
    the lower token; the paper takes those that queries nearby attend to most. All keys of a short block represent it.
    """

    def __init__(self, head_dim: int, *, block_tokens: int = 128, representatives: int = 4) -> None:
        super().__init__(head_dim, block_tokens=block_tokens)
        require_int("representatives", representatives, 1, block_tokens)
        self.representatives = representatives
        self._chosen: list[Tokens] = []

    def _index(self, start: int) -> None:
        """Choose the representatives of the blocks that got tokens."""
        del self._chosen[start // self.block_tokens :]
        for block in range(len(self._chosen), self.num_blocks):
            tokens = self.tokens_of(block)
            if len(tokens) == self.block_tokens:
                keys = self.keys[tokens].astype(np.float64)
                order = np.lexsort((tokens, -(keys @ keys.sum(axis=0))))
                tokens = np.sort(tokens[order[: self.representatives]])
            self._chosen.append(tokens)

    def score(self, query: Query) -> npt.NDArray[np.float32]:
        """Return the score of every block: the largest over representatives and heads."""
        if not self._chosen:
            return np.empty(0, np.float32)
        products = self.keys[np.concatenate(self._chosen)].astype(np.float64) @ query.vectors.astype(np.float64).T
        sizes = np.cumsum([0, *map(len, self._chosen[:-1])])
        return np.maximum.reduceat(products.max(axis=1), sizes).astype(np.float32)

    def traffic(self, selected: Tokens, heads: int) -> Traffic:
        """Return the cost: the representatives' keys."""
        count = sum(map(len, self._chosen))
        return Traffic(
            score_bytes=count * self.head_dim * FP16.bytes,
            score_flops=2 * heads * count * self.head_dim,
            candidates=self.num_blocks,
            gather_tokens=len(selected),
        )
