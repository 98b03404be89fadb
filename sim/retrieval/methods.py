"""Methods of retrieval that need no training, in closed form: bytes and operations of an index over n tokens.

Each stored head has an index of its own. The numbers equal what :mod:`golden.retrieval` counts over an index that was
built. Keys of an index are 16-bit; a posting list holds ids of four bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.retrieval.index_spec import MODES
from sim.errors import ConfigError
from sim.retrieval.scoring import IndexScan
from sim.retrieval.work import LayerWork, attend_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.models import Attention, Layer

__all__ = ["METHODS", "Method", "method_work"]

_KEY_BYTES = 2
_ID_BYTES = 4
_PAGE_TOKENS = 16
_CLUSTER_TOKENS = 80
_BLOCK_TOKENS = 128
_REPRESENTATIVES = 4
_SINKS = 128
_WINDOW = 4096
_LABEL_SHARE = 16


@dataclass(frozen=True, kw_only=True)
class _Index:
    """What a method reads and selects in one stored head.

    Parameters
    ----------
    candidates, chosen : int
        Scores, and how many of them are selected.
    keys, key_dim : int
        Keys or pages that are read to score them, and elements of a key.
    mode : str
        How they are scored, of :data:`golden.retrieval.index_spec.MODES`.
    lists : bool
        Candidates are lists of token ids.
    pinned : int
        Tokens attended to beside the selected ones.
    """

    candidates: int
    chosen: int
    keys: int
    key_dim: int
    mode: str
    lists: bool = False
    pinned: int = 0

    @property
    def elements(self) -> int:
        """Elements of the index that are read."""
        return self.keys * MODES[self.mode].columns * self.key_dim


@dataclass(frozen=True)
class Method:
    """One method.

    Parameters
    ----------
    description, source : str
        What it does, and where its constants are from.
    index : callable or None
        The index over so many tokens of so many elements, of which a budget of tokens is selected; None where nothing
        is scored.
    """

    description: str
    source: str
    index: Callable[[int, int, int], _Index] | None


def _pages(tokens: int, dim: int, budget: int) -> _Index:
    pages = -(-tokens // _PAGE_TOKENS)
    return _Index(candidates=pages, chosen=-(-budget // _PAGE_TOKENS), keys=pages, key_dim=dim, mode="page-bounds")


def _clusters(tokens: int, dim: int, budget: int) -> _Index:
    clusters = -(-tokens // _CLUSTER_TOKENS)
    return _Index(
        candidates=clusters,
        chosen=-(-budget // _CLUSTER_TOKENS),
        keys=clusters,
        key_dim=dim,
        mode="centroids",
        lists=True,
    )


def _representatives(tokens: int, dim: int, budget: int) -> _Index:
    full, rest = divmod(tokens, _BLOCK_TOKENS)
    # All keys of a block that is not full yet represent it.
    return _Index(
        candidates=full + bool(rest),
        chosen=-(-budget // _BLOCK_TOKENS),
        keys=_REPRESENTATIVES * full + rest,
        key_dim=dim,
        mode="representatives",
        pinned=_SINKS + _WINDOW,
    )


def _labels(tokens: int, dim: int, budget: int) -> _Index:
    return _Index(candidates=tokens, chosen=budget, keys=tokens, key_dim=-(-dim // _LABEL_SHARE), mode="labels")


METHODS = {
    "dense": Method("attends to everything", "no selection", None),
    "streaming": Method("4 sinks and the last tokens", "arXiv:2309.17453", None),
    "inverted-index": Method(
        f"best of ceil(n/{_CLUSTER_TOKENS}) clusters by their mean key, and their posting lists",
        "arXiv:2412.03213: ceil(n/80) clusters",
        _clusters,
    ),
    "quest": Method(
        f"best pages of {_PAGE_TOKENS} tokens by bounds of their keys", "arXiv:2406.10774: pages of 16 tokens", _pages
    ),
    "infllm": Method(
        f"best blocks of {_BLOCK_TOKENS} by {_REPRESENTATIVES} keys each, {_SINKS} sinks, window of {_WINDOW:,}",
        "thunlp/InfLLM, config/llama-3-inf-llm.yaml",
        _representatives,
    ),
    "double-sparsity": Method(
        f"best tokens by 1/{_LABEL_SHARE} of their channels in fp16", "arXiv:2408.07092: 1/16 of channels", _labels
    ),
}
"""Methods by name."""


def method_work(attention: Attention, layer: Layer, tokens: int, method: str, budget: int) -> LayerWork:
    """Return the work of a layer under a method.

    Parameters
    ----------
    attention : Attention
    layer : Layer
        A window of its own goes before the method: such a layer attends to its window.
    tokens : int
        Tokens of the request, the step's own included.
    method : str
        One of :data:`METHODS`.
    budget : int
        Tokens that each stored head selects; those of ``streaming`` are the sinks and the last ones.

    Raises
    ------
    ConfigError
        If the budget is below 1.
    """
    if budget < 1:
        raise ConfigError(f"budget must be at least 1, not {budget!r}")
    if method == "dense" or layer.window:
        return attend_all(attention, layer, tokens)
    make = METHODS[method].index
    heads, row = attention.stored_heads, attention.kv_bytes
    if make is None:
        attended = min(tokens, budget)
        return LayerWork(
            attended=attended,
            attend_flops=attended * heads * attention.token_flops,
            gather_bytes=attended * row,
        )
    index = make(tokens, attention.key_dim, budget)
    attended = min(tokens, budget + index.pinned)
    score_bytes = heads * index.elements * _KEY_BYTES
    stored = score_bytes + index.lists * heads * tokens * _ID_BYTES
    return LayerWork(
        score_bytes=score_bytes,
        score_flops=2 * attention.num_heads * index.elements,
        scan=IndexScan(mode=MODES[index.mode], heads=attention.num_heads // heads, dim=index.key_dim, keys=index.keys),
        selections=heads,
        candidates=index.candidates,
        chosen=index.chosen,
        list_bytes=index.lists * heads * min(tokens, budget) * _ID_BYTES,
        attended=attended,
        attend_flops=attended * heads * attention.token_flops,
        gather_bytes=attended * row,
        gathers=heads,
        gathered_ids=min(tokens, budget) if index.lists else min(index.candidates, index.chosen),
        index_token_bytes=stored / tokens,
    )
