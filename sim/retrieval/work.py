"""What one layer asks of whoever keeps a request's KV: index to read, scores to make, tokens to select and attend to.

A token's index is that of the model's own selection (:mod:`sim.selection`), or of a method that needs no training
(:mod:`sim.retrieval.methods`), for every stored head apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.retrieval.index_spec import MOST_BLOCK_KEYS, ScoreMode
from sim.retrieval.scoring import IndexScan

if TYPE_CHECKING:
    from sim.models import Attention, Layer
    from sim.selection import Selection

__all__ = ["LayerWork", "attend_all", "index_scan", "trained_work"]

_FP32_BYTES = 4
_BF16_BYTES = 2


@dataclass(frozen=True, kw_only=True)
class LayerWork:
    """One layer, one request, one step.

    Parameters
    ----------
    score_bytes : int
        Index bytes read to score; 0 where nothing is scored.
    score_flops : int
        Operations of scoring, multiplication and addition counted apart.
    score_fp8 : bool
        Index keys are fp8, else 16-bit.
    scan : IndexScan or None
        What each selection scores; None where nothing is scored, or in no mode of a scoring unit.
    selections : int
        Selections made one after another; 0 where none is.
    candidates : int
        Scores that each of them looks at.
    chosen : int
        Candidates that each of them selects, at most; fewer if there are fewer.
    list_bytes : int
        Ids read after selection, where candidates are lists of tokens.
    attended : int
        Tokens attended to.
    attend_flops : int
        Operations of attending to them.
    gather_bytes : int
        Their keys and values.
    gathers, gathered_ids : int
        Operations of gathering, and ids that each of them turns into addresses; 0 where tokens lie in a run.
    query_bytes : int
        Index queries, their weights and the new index key, which go to the index.
    index_token_bytes : float
        Index bytes that a token takes in the layer.
    """

    score_bytes: int = 0
    score_flops: int = 0
    score_fp8: bool = False
    scan: IndexScan | None = None
    selections: int = 0
    candidates: int = 0
    chosen: int = 0
    list_bytes: int = 0
    attended: int
    attend_flops: int
    gather_bytes: int
    gathers: int = 0
    gathered_ids: int = 0
    query_bytes: int = 0
    index_token_bytes: float = 0.0

    @property
    def selected(self) -> int:
        """Candidates that each selection gives."""
        return min(self.chosen, self.candidates)


def attend_all(attention: Attention, layer: Layer, tokens: int) -> LayerWork:
    """Return the work of a layer that attends to all of ``tokens``, or to those of its window."""
    attended = layer.attended(tokens)
    return LayerWork(
        attended=attended,
        attend_flops=attended * attention.stored_heads * attention.token_flops,
        gather_bytes=attended * attention.kv_bytes,
    )


def index_scan(selection: Selection, tokens: int) -> IndexScan | None:
    """Return what a model's own selection scores, every token by weighted heads; None if no unit has such blocks."""
    if selection.block_tokens > MOST_BLOCK_KEYS:
        return None
    mode = ScoreMode(
        wide=selection.key_bytes > selection.index_dim,
        relu=selection.scale_bytes > 0,
        scaled=selection.scale_bytes > 0,
        block_keys=selection.block_tokens,
    )
    return IndexScan(mode=mode, heads=selection.index_heads, dim=selection.index_dim, keys=tokens)


def trained_work(attention: Attention, selection: Selection, layer: Layer, tokens: int) -> LayerWork:
    """Return the work of a layer of a model with selection of its own.

    A layer that owns an index scores and selects; one that shares reads what the layer below selected; a dense one
    attends to all. Blocks score as their best token does, so every token is scored either way.

    Parameters
    ----------
    attention : Attention
    selection : Selection
    layer : Layer
    tokens : int
        Tokens of the request, the step's own included.
    """
    if layer.index_role == "dense":
        return attend_all(attention, layer, tokens)
    attended = selection.attended_tokens(tokens)
    owns = layer.index_role == "owns"
    heads = selection.index_heads
    element_bytes = selection.key_bytes // selection.index_dim
    queries = heads * selection.index_dim * element_bytes + heads * _FP32_BYTES + selection.stored_key_bytes
    return LayerWork(
        score_bytes=owns * tokens * selection.stored_key_bytes,
        score_flops=owns * tokens * selection.flops_per_key,
        score_fp8=element_bytes < _BF16_BYTES,
        scan=index_scan(selection, tokens) if owns else None,
        selections=int(owns),
        candidates=owns * -(-tokens // selection.block_tokens),
        chosen=owns * selection.top_k,
        attended=attended,
        attend_flops=attended * attention.stored_heads * attention.token_flops,
        gather_bytes=attended * attention.kv_bytes,
        gathers=1,
        gathered_ids=-(-attended // selection.block_tokens),
        query_bytes=owns * queries,
        index_token_bytes=float(owns * selection.stored_key_bytes),
    )
