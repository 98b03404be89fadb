"""Kernels of a server's GPUs: how many a layer launches, and what attention of one query costs beside whole prompts.

Counts are those of vLLM 0.19 with its graphs compiled. Attention: norm, query-key-value product, rotation, write to the
cache, attention, merge of its parts, output product. A dense network: norm, up product with its gate, activation, down
product. A mixture: norm, router, choice of experts, two that sort tokens by expert, up, activation, down, sum; its
shared experts are a dense network without a norm of its own.

In a step that also has tokens of prompts, FlashAttention-2 runs all of them through one kernel, which takes query
tokens in tiles of 64 of one query head and one request. A request that decodes has one token to fill its tile: every
query head pays for 64, where steps that only decode pack the heads that share a KV head into one tile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.models import Attention, Layer

__all__ = ["QUERY_TILE", "layer_kernels", "tile_flops"]

QUERY_TILE = 64
"""Query tokens of a tile: vllm-project/flash-attention fcc8a21, run_mha_fwd_splitkv_dispatch, kBlockM."""

_ATTENTION = 7
_DENSE = 4
_MIXTURE = 9
_SHARED = 3


def layer_kernels(layer: Layer) -> int:
    """Return how many kernels a layer launches, collectives left out."""
    network = layer.feed_forward
    if not network.num_experts:
        return _ATTENTION + _DENSE
    return _ATTENTION + _MIXTURE + (_SHARED if network.dense_width else 0)


def tile_flops(attention: Attention, tokens: float) -> float:
    """Return the operations of attention of single queries, in tiles of their own, to ``tokens`` in all.

    Zero where a latent is stored: its kernels (FlashMLA) always pack the heads.
    """
    if attention.kv_lora_rank:
        return 0.0
    return QUERY_TILE * tokens * attention.token_flops * attention.stored_heads
