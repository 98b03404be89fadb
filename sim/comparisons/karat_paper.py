"""Bytes and intensities of sparse attention as arXiv:2608.03555 prints them (table II, figure 2), beside ours.

Ours follow from the models' published configurations, in the paper's accounting: index keys without their scales, KV at
16 bit, a token's latent read once, the local block of block selection left out. What is stored and moved in fact is
in the notes: DeepSeek's indexer keeps a scale of four bytes beside each key, and MiniMax attends to a local block.
A row holds if ours rounds to the digits that the paper prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.comparisons.row import comparison_row
from sim.model_config import load_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.models import Model
    from sim.selection import Selection

__all__ = ["CONTEXT", "SparseBytes", "karat_paper_rows", "sparse_bytes"]

CONTEXT = 1_000_000
"""Tokens of a request in the paper's figure 2."""

_TABLE = "arXiv:2608.03555, table II"
_FIGURE = "arXiv:2608.03555, figure 2"


@dataclass(frozen=True, kw_only=True)
class SparseBytes:
    """What one request stores and a step reads, in bytes, and the operations a byte.

    Parameters
    ----------
    kv_token, index_token : int
        Keys and values, and index keys without scales, of a token in all layers.
    stored_index_token : int
        Index keys with their scales.
    stored : int
        KV and index keys of the whole context.
    step : int
        Read by a step: index keys of all tokens, KV of the selected ones, all KV of dense layers.
    local_step : int
        Read beside that for local blocks.
    gather_layer : int
        KV of the selected tokens in one layer.
    index_intensity, attend_intensity : float
        Operations a byte of index key, and of KV attended to.
    """

    kv_token: int
    index_token: int
    stored_index_token: int
    stored: int
    step: int
    local_step: int
    gather_layer: int
    index_intensity: float
    attend_intensity: float


def sparse_bytes(model: Model, selection: Selection, context: int) -> SparseBytes:
    """Return the bytes of a model with sparse attention.

    Parameters
    ----------
    model : Model
    selection : Selection
        Its selection.
    context : int
        Tokens of a request.
    """
    kv_layer, attention = model.attention.kv_bytes, model.attention
    owners = model.layers_with("owns")
    selecting = owners + model.layers_with("shares")
    index_token = owners * selection.key_bytes
    selected, attended = selection.selected_tokens(context), selection.attended_tokens(context)
    # A query head multiplies a key and a value, of the latent's width each where there is one.
    width = attention.kv_lora_rank or attention.head_dim
    heads = attention.num_heads if attention.kv_lora_rank else attention.group
    row = kv_layer if attention.kv_lora_rank else kv_layer // attention.num_kv_heads
    return SparseBytes(
        kv_token=model.kv_bytes_per_token,
        index_token=index_token,
        stored_index_token=owners * selection.stored_key_bytes,
        stored=context * (model.kv_bytes_per_token + index_token),
        step=context * index_token + selecting * selected * kv_layer + model.layers_with("dense") * context * kv_layer,
        local_step=selecting * (attended - selected) * kv_layer,
        gather_layer=selected * kv_layer,
        index_intensity=selection.intensity,
        attend_intensity=2 * heads * 2 * width / row,
    )


@dataclass(frozen=True)
class _Printed:
    """Numbers of one model as printed, as text, so that their digits count."""

    kv_kb: str
    index_kb: str
    stored_gb: str
    step_gb: str
    less: str
    index_intensity: str
    attend_intensity: str
    gather_mb: str


_PRINTED = {
    "glm-5.2": _Printed("89.9", "2.7", "93", "2.9", "32", "64", "114", "2.36"),
    "minimax-m3": _Printed("122.9", "14.6", "137", "21", "6.6", "4", "16", "4.19"),
    "deepseek-v3.2": _Printed("70.3", "7.8", "78", "8.0", "9.8", "128", "228", "2.36"),
}


def karat_paper_rows() -> list[dict[str, Any]]:
    """Return one row a printed number."""
    return [row for name, printed in _PRINTED.items() for row in _model_rows(name, printed)]


def _model_rows(name: str, printed: _Printed) -> list[dict[str, Any]]:
    """Return the rows of one model."""
    model = load_model(name)
    selection = model.selection
    assert selection is not None, "the paper's models have sparse attention"
    found = sparse_bytes(model, selection, CONTEXT)
    scaled = found.stored_index_token
    row = _row_of(name)
    return [
        row("KV a token", printed.kv_kb, found.kv_token / 1e3, "kB", _TABLE, "16 bit, all layers"),
        row(
            "index keys a token",
            printed.index_kb,
            found.index_token / 1e3,
            "kB",
            _TABLE,
            f"{model.layers_with('owns')} of {len(model.layers)} layers hold them; {scaled:,} B stored and moved",
        ),
        row("index operations a byte", printed.index_intensity, found.index_intensity, "FLOP/B", _TABLE, "of key"),
        row(
            "attention's operations a byte", printed.attend_intensity, found.attend_intensity, "FLOP/B", _TABLE, "of KV"
        ),
        row("KV gathered in a layer", printed.gather_mb, found.gather_layer / 1e6, "MB", _TABLE, "of selected tokens"),
        row("KV and index of 1M tokens", printed.stored_gb, found.stored / 1e9, "GB", _TABLE, "one request"),
        row(
            "read in a step at 1M tokens",
            printed.step_gb,
            found.step / 1e9,
            "GB",
            _FIGURE,
            f"local blocks add {found.local_step / 1e9:.2f} GB" if found.local_step else "no local blocks",
        ),
        row("less than all of it", printed.less, found.stored / found.step, "1", _FIGURE, "stored over read"),
    ]


def _row_of(model: str) -> Callable[[str, str, float, str, str, str], dict[str, Any]]:
    """Return a function that makes the rows of one model."""

    def row(what: str, printed: str, ours: float, unit: str, source: str, note: str) -> dict[str, Any]:
        digits = len(printed.partition(".")[2])
        return comparison_row(
            f"{model}: {what}",
            float(printed),
            ours,
            unit=unit,
            source=source,
            within=f"{ours:.{digits}f}" == printed,
            note=note,
        )

    return row
