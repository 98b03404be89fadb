"""What selecting adds to scoring on a PNM device, over the tokens of a request.

Scoring is the formula of the scoring unit's RTL: the query is loaded, then keys come at the device's printed memory
rate, shared by its channels, or as fast as the unit takes them, and the last score follows. Selection is the formula of
the top-k unit's RTL, which is the same for any scores and any place of the ids taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hw.presets import UNIT_PRESETS
from hw.presets.pnm import PNM_PRESETS
from sim.model_config import load_model
from sim.provenance import Part, combine
from sim.retrieval.pnm import select_cycles
from sim.retrieval.scoring import scan_cycles
from sim.retrieval.work import index_scan

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CLAIM_FROM", "KEY_RATE", "LIMIT", "MODELS", "RATE_FROM", "TOKENS", "scan_rows"]

MODELS = ("deepseek-v3.2", "glm-5.2", "minimax-m3")
"""Model presets with a selection of their own."""

TOKENS = (*(1 << n for n in range(11, 20)), 1_000_000)
"""Tokens of a request: 2K to 512K, doubling, and a million."""

LIMIT = 0.05
"""Most that selection may add to scoring, from :data:`CLAIM_FROM` tokens on."""

CLAIM_FROM = 1 << 16

KEY_RATE = 0.98
"""Least part of the memory's rate of keys that scoring keeps, from :data:`RATE_FROM` tokens on."""

RATE_FROM = 1 << 17

_DEVICE, _UNITS = "karat-pnm", "karat"


def scan_rows(tokens: Sequence[int] = TOKENS) -> list[dict[str, Any]]:
    """Return one row a model and number of tokens.

    Parameters
    ----------
    tokens : sequence of int
        Tokens of a request.
    """
    return [_row(name, count) for name in MODELS for count in tokens]


def _row(name: str, tokens: int) -> dict[str, Any]:
    """Return one row."""
    model, device = load_model(name), PNM_PRESETS[_DEVICE]
    selection, units = model.selection, UNIT_PRESETS[_UNITS]
    assert selection is not None, "the models have a selection of their own"
    params = units.top_k
    assert params is not None, "the preset has units of selection"
    assert units.index_score is not None, "the preset has scoring units"
    clock = device.core_clock_hz.number
    scan = index_scan(selection, tokens)
    assert scan is not None, "the models' blocks are those of a unit"
    unit = scan_cycles(units.index_score, scan, device.channels.integer)
    assert unit is not None, "a million tokens have room"
    arrive = tokens * selection.stored_key_bytes / device.bytes_per_s.number * clock
    candidates = -(-tokens // selection.block_tokens)
    select = select_cycles(params, candidates, selection.top_k)
    score = unit.around + max(arrive, unit.keys)
    rate = arrive / score
    provenance = combine(
        [
            Part("cycles of index_score", "formula-rtl", "hw/timing/index_score.py"),
            Part("cycles of top_k", "formula-rtl", "hw/timing/top_k.py"),
            Part("memory rate", "literature", device.bytes_per_s.source),
            Part("clock", "literature", device.core_clock_hz.source),
            Part("model shape", "literature", model.source),
            Part("keys at the memory's rate", "modelled", "sim/studies/retrieval_scan.py: evenly, no rows, no refresh"),
        ]
    )
    return {
        "name": f"{name}, {tokens:,} tokens",
        "model": name,
        "tokens": tokens,
        "candidates": candidates,
        "top_k": selection.top_k,
        "index_bytes": tokens * selection.stored_key_bytes,
        "score_flops": tokens * selection.flops_per_key,
        "score_bound": "memory" if arrive >= unit.keys else "unit",
        "score_cycles": score,
        "score_unit_cycles": unit.total,
        "key_stream_share": rate,
        "keeps_up": rate >= KEY_RATE if tokens >= RATE_FROM else None,
        "select_cycles": select,
        "select_share": select / score,
        "within": select / score <= LIMIT if tokens >= CLAIM_FROM else None,
        "clock_hz": clock,
        "provenance": provenance.to_dict(),
    }
