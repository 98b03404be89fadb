"""Sparse attention that a model was trained with: what scores tokens, how many are kept, and the bytes of both.

A layer *owns* an index (it stores index keys and selects), *shares* the selection of the nearest layer below that
does, or is *dense*. Tokens are selected one by one (DeepSeek sparse attention) or in blocks, whose score is the largest
of their tokens'.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["INDEX_ROLES", "Selection"]

INDEX_ROLES = ("dense", "owns", "shares")
"""What a layer has to do with selection."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Index and selection of a model.

    Parameters
    ----------
    index_heads, index_dim : int
        Query heads of the index, and elements of its one key a token.
    key_bytes : int
        Bytes of an index key's elements; what papers count.
    scale_bytes : int
        Bytes of the scale that is stored beside a key; 0 for none.
    block_tokens : int
        Tokens that are selected together; 1 for single tokens.
    top_k : int
        Blocks of that size that are selected.
    local_blocks : int
        Blocks at the end of the context that are attended to beside these.
    """

    index_heads: int
    index_dim: int
    key_bytes: int
    scale_bytes: int
    block_tokens: int
    top_k: int
    local_blocks: int

    @property
    def stored_key_bytes(self) -> int:
        """Bytes that a key takes in memory, and that a scan moves."""
        return self.key_bytes + self.scale_bytes

    @property
    def flops_per_key(self) -> int:
        """Operations of scoring a key, multiplication and addition counted apart: ``2 heads dim``."""
        return 2 * self.index_heads * self.index_dim

    @property
    def intensity(self) -> float:
        """Operations a byte of key, scale left out."""
        return self.flops_per_key / self.key_bytes

    def selected_tokens(self, context: int) -> int:
        """Return the tokens that are selected of ``context``, local blocks left out."""
        return min(context, self.top_k * self.block_tokens)

    def attended_tokens(self, context: int) -> int:
        """Return the tokens that are attended to: the selected ones and the local blocks."""
        return min(context, (self.top_k + self.local_blocks) * self.block_tokens)
