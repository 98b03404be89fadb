"""Payloads of the streams of the top-k unit, each a function of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.lib import data

from golden.retrieval.radix import KEY_BITS

if TYPE_CHECKING:
    from hw.top_k_params import TopKShardParams

__all__ = ["scan_layout", "score_layout", "selected_layout"]


def scan_layout(params: TopKShardParams) -> data.StructLayout:
    """One operation of a shard: ``count`` scores come, and ``base`` is the id given out for its own id 0."""
    return data.StructLayout({"count": params.count_bits, "base": params.id_bits})


def score_layout(params: TopKShardParams) -> data.StructLayout:
    """One score: its fp32 code and its id within the shard."""
    return data.StructLayout({"score": KEY_BITS, "id": params.local_bits})


def selected_layout(id_bits: int) -> data.StructLayout:
    """One id taken; or, with ``end``, the end of an operation, which is no id and has the operation's ``fault``."""
    return data.StructLayout({"id": id_bits, "end": 1, "fault": 1})
