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


def selected_layout(id_bits: int, lanes: int) -> data.StructLayout:
    """Ids taken of one row: a bit for each of ``first``, ``first + 1`` and so on, as many as a row has lanes.

    At least one bit is set; or, with ``end``, it is the end of an operation, has no bit set and the operation's
    ``fault``.
    """
    return data.StructLayout({"first": id_bits, "lanes": lanes, "end": 1, "fault": 1})
