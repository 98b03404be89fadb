"""Payloads of the streams of the index scoring unit, each a function of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.lib import data

from golden.formats import FP32
from golden.retrieval.index_spec import MOST_BLOCK_KEYS

if TYPE_CHECKING:
    from hw.index_score_params import IndexScoreParams

__all__ = ["command_layout", "key_score_layout", "number_below", "query_layout", "step_layout"]


def number_below(count: int) -> range:
    """Return the shape of a number below ``count``: of one bit at least, for Verilator takes no signal of none."""
    return range(max(2, count))


def command_layout(params: IndexScoreParams) -> data.StructLayout:
    """One operation: ``keys``, and what is computed of them.

    ``beats``, ``groups``, ``last_lane`` and ``block`` are one less than the beats of a vector, the groups of heads, the
    heads of the last group and the keys of a block; with ``pairs`` a beat holds two keys, with ``shares`` two heads
    share the products of a beat; the other flags are those of :class:`golden.retrieval.index_spec.ScoreMode`.
    """
    return data.StructLayout(
        {
            "keys": params.count_bits,
            "beats": number_below(params.query_rows),
            "groups": number_below(params.max_groups),
            "last_lane": number_below(params.spec.head_lanes),
            "block": range(MOST_BLOCK_KEYS),
            "pairs": 1,
            "shares": 1,
            "wide": 1,
            "relu": 1,
            "largest": 1,
            "bounds": 1,
            "scaled": 1,
        }
    )


def query_layout(params: IndexScoreParams) -> data.StructLayout:
    """One beat of a head's query, and the fp32 code of the head's weight, the same with each of its beats."""
    return data.StructLayout({"elements": params.beat_bits, "weight": FP32.bits})


def key_score_layout(params: IndexScoreParams) -> data.StructLayout:
    """One score: its fp32 code and its number in the operation; what a shard of the top-k unit takes."""
    return data.StructLayout({"score": FP32.bits, "id": params.id_bits})


def step_layout(params: IndexScoreParams) -> data.StructLayout:
    """Turn of a beat of a key at one group of heads.

    ``first`` and ``last`` tell the beats of a key, ``high`` the beats of the largest elements of a page; ``final`` the
    last group of heads, ``ends`` the last key of a block. ``scale`` is the key's, with its last beat.
    """
    return data.StructLayout(
        {
            "valid": 1,
            "first": 1,
            "last": 1,
            "high": 1,
            "group": number_below(params.max_groups),
            "final": 1,
            "ends": 1,
            "scale": FP32.bits,
        }
    )
