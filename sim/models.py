"""Shapes of language models: what a decode step must read, compute and store.

Only what decides bytes and operations is kept. Norms, biases and index weights are left out: together below 1 % of
the parameters.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sim.selection import Selection

__all__ = ["Attention", "FeedForward", "Layer", "Model"]

_KV_ELEMENT_BYTES = 2


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Attention of every layer.

    Parameters
    ----------
    hidden : int
        Width of the residual stream.
    num_heads, num_kv_heads : int
        Query heads, and heads that hold keys and values.
    head_dim, v_head_dim : int
        Elements of a query (and key), and of a value, per head. For MLA those of the expanded heads.
    kv_lora_rank : int
        Width of the shared latent of MLA; 0 for the other kinds.
    qk_rope_head_dim : int
        Elements of the shared positional key of MLA; 0 for the other kinds.
    q_lora_rank : int
        Width of the query's latent in MLA; 0 where queries are projected directly.
    """

    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    v_head_dim: int
    kv_lora_rank: int = 0
    qk_rope_head_dim: int = 0
    q_lora_rank: int = 0

    @property
    def kind(self) -> str:
        """``MLA``, ``MQA``, ``GQA`` or ``MHA``."""
        if self.kv_lora_rank:
            return "MLA"
        if self.num_kv_heads == self.num_heads:
            return "MHA"
        return "MQA" if self.num_kv_heads == 1 else "GQA"

    @property
    def stored_heads(self) -> int:
        """Heads whose keys are stored: the KV heads, or the one latent of MLA."""
        return 1 if self.kv_lora_rank else self.num_kv_heads

    @property
    def key_dim(self) -> int:
        """Elements of a stored key, and of a query as it meets them.

        In MLA latent and positional key: the projections that expand a latent work on queries and outputs instead.
        """
        return self.kv_lora_rank + self.qk_rope_head_dim if self.kv_lora_rank else self.head_dim

    @property
    def value_dim(self) -> int:
        """Elements of a stored value, and of a state's o: in MLA those of the latent."""
        return self.kv_lora_rank or self.v_head_dim

    @property
    def token_flops(self) -> int:
        """Operations on one token of one stored head: two for each element that each query head multiplies."""
        return 2 * self.group * (self.key_dim + self.value_dim)

    @property
    def token_bytes(self) -> int:
        """Bytes of one token of one stored head."""
        return self.kv_bytes // self.stored_heads

    @property
    def group(self) -> int:
        """Query heads that share one stored key: g."""
        return self.num_heads // self.stored_heads

    @property
    def stored_elements(self) -> int:
        """Elements a token keeps in one layer.

        Keys and values of every KV head; in MLA the latent and the positional key, of which the latent serves as
        value too.
        """
        if self.kv_lora_rank:
            return self.kv_lora_rank + self.qk_rope_head_dim
        return self.num_kv_heads * (self.head_dim + self.v_head_dim)

    @property
    def kv_bytes(self) -> int:
        """Bytes a token keeps in one layer, at 16 bit an element."""
        return self.stored_elements * _KV_ELEMENT_BYTES

    @property
    def input_parameters(self) -> int:
        """Parameters of the projections before attention."""
        if not self.kv_lora_rank:
            return self.hidden * (
                self.num_heads * self.head_dim + self.num_kv_heads * (self.head_dim + self.v_head_dim)
            )
        queries = self.num_heads * self.head_dim
        q = self.q_lora_rank * (self.hidden + queries) if self.q_lora_rank else self.hidden * queries
        nope = self.head_dim - self.qk_rope_head_dim
        expand = self.kv_lora_rank * self.num_heads * (nope + self.v_head_dim)
        return q + self.hidden * (self.kv_lora_rank + self.qk_rope_head_dim) + expand

    @property
    def output_parameters(self) -> int:
        """Parameters of the projection after attention."""
        return self.num_heads * self.v_head_dim * self.hidden


@dataclass(frozen=True, kw_only=True)
class FeedForward:
    """Feed-forward part of one layer.

    Parameters
    ----------
    hidden : int
        Width of the residual stream.
    matrices : int
        2 for up and down, 3 where a gate stands beside up.
    dense_width : int
        Inner width of what every token passes: the dense network, or the shared experts together.
    expert_width : int
        Inner width of one routed expert; 0 in a dense layer.
    num_experts, experts_per_token : int
        Routed experts, and how many of them a token passes.
    """

    hidden: int
    matrices: int
    dense_width: int
    expert_width: int = 0
    num_experts: int = 0
    experts_per_token: int = 0

    @property
    def expert_parameters(self) -> int:
        """Parameters of one routed expert."""
        return self.matrices * self.hidden * self.expert_width

    @property
    def shared_parameters(self) -> int:
        """Parameters that every token passes: dense network or shared experts, and the router."""
        return self.matrices * self.hidden * self.dense_width + self.hidden * self.num_experts

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.shared_parameters + self.num_experts * self.expert_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token passes."""
        return self.shared_parameters + self.experts_per_token * self.expert_parameters

    def distinct_experts(self, batch: int, skew: float = 0.0) -> float:
        """Return how many routed experts a batch touches, on average: ``sum over e of 1 - (1 - q_e)^B``.

        A token meets expert e with ``q_e``: ``k / E`` where routing is uniform. With a skew the experts of a layer,
        the most wanted first, are met in proportion to ``exp(-skew e)``, none more than once a token.
        """
        if not self.num_experts:
            return 0.0
        if not skew:
            return self.num_experts * (1.0 - (1.0 - self.experts_per_token / self.num_experts) ** batch)
        weights = np.exp(-skew * np.arange(self.num_experts))
        met = np.minimum(1.0, self.experts_per_token * weights / weights.sum())
        return float((1.0 - (1.0 - met) ** batch).sum())


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer.

    Parameters
    ----------
    feed_forward : FeedForward
        Dense or sparse.
    window : int
        Tokens that attention reads at most, its own included; 0 for all.
    index_role : str
        What it has to do with the model's selection, see :data:`sim.selection.INDEX_ROLES`.
    """

    feed_forward: FeedForward
    window: int = 0
    index_role: str = "dense"

    @property
    def kind(self) -> str:
        """Short name in reports."""
        network = "moe" if self.feed_forward.num_experts else "dense"
        return f"{network}, window {self.window}" if self.window else network

    def attended(self, tokens: int) -> int:
        """Return how many of ``tokens`` attention reads."""
        return min(tokens, self.window) if self.window else tokens


@dataclass(frozen=True, kw_only=True)
class Model:
    """A decoder.

    Parameters
    ----------
    name, source : str
        Name, and where the shape is published.
    attention : Attention
        The same in every layer.
    layers : tuple of Layer
        One entry a layer.
    vocab : int
        Rows of the embedding.
    positions : int
        Rows of a learned position embedding; 0 where positions are computed.
    tied : bool
        The output head shares the embedding's weights.
    weight_bits : float
        Bits a weight takes.
    weight_format : str
        Name of the weight format.
    selection : Selection or None
        Sparse attention that it was trained with; None where every layer attends to everything.
    expert_skew : float
        How unevenly its routers choose, as :meth:`FeedForward.distinct_experts` takes it; 0 where nobody measured it.
    """

    name: str
    source: str
    attention: Attention
    layers: tuple[Layer, ...]
    vocab: int
    positions: int
    tied: bool
    weight_bits: float
    weight_format: str
    selection: Selection | None = None
    expert_skew: float = 0.0

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.attention.hidden

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of KV a token keeps in all layers, each counted as full attention: room is kept for every token."""
        return len(self.layers) * self.attention.kv_bytes

    def layers_with(self, *index_roles: str) -> int:
        """Return how many layers have one of these roles in the selection."""
        return sum(layer.index_role in index_roles for layer in self.layers)

    @property
    def head_parameters(self) -> int:
        """Parameters of the output head."""
        return self.vocab * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters: projections, feed-forward parts, embeddings and head."""
        attention = self.attention.input_parameters + self.attention.output_parameters
        embeddings = (self.vocab * (1 if self.tied else 2) + self.positions) * self.hidden
        return embeddings + sum(attention + layer.feed_forward.parameters for layer in self.layers)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all parameters."""
        return self.bytes_of(self.parameters)

    def bytes_of(self, parameters: float) -> int:
        """Return the bytes of that many parameters, rounded up."""
        return -int(-parameters * self.weight_bits // 8)

    def layer_groups(self) -> list[tuple[Layer, int]]:
        """Return the distinct layers and how many of each there are, in order of first appearance."""
        return list(Counter(self.layers).items())
