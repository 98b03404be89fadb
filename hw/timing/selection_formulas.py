"""Latency and interval of the units of selection as text, for :mod:`hw.timing.formulas`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.timing import gather, top_k
from hw.timing.formula import Formula
from hw.top_k_params import TopKParams

if TYPE_CHECKING:
    from hw.gather_params import GatherParams
    from hw.top_k_params import TopKShardParams

__all__ = ["gather_interval", "gather_latency", "merge_interval", "merge_latency", "shard_interval", "shard_latency"]


def shard_latency(params: TopKShardParams) -> Formula:
    """Return the cycles from a scan to the first numbers."""
    return Formula(
        formula="count + 3",
        variables={"count": "scores of the operation"},
        values={"count": params.depth},
        cycles=top_k.counts_latency_cycles(params.depth),
    )


def shard_interval(params: TopKShardParams) -> Formula:
    """Return the cycles from scan to scan, with a merge of this shard alone."""
    alone = TopKParams(shard=params, max_k=1)
    return Formula(
        formula="count + (digits - 1) * (rows + bins + 4) + bins + 10 + emit_cycles",
        variables={
            "count": "scores of the operation; the merge is of this shard alone",
            "digits": "digits of a key",
            "bins": "values of a digit",
            "rows": "rows swept, up to that of the highest id",
            "emit_cycles": "sum over these rows of max(1, ids taken)",
        },
        values={
            "count": params.depth,
            "digits": params.digits,
            "bins": params.bins,
            "rows": params.rows,
            "emit_cycles": params.rows,
        },
        cycles=params.depth + top_k.select_cycles(alone, params.rows, 0, params.rows),
    )


def merge_latency(params: TopKParams) -> Formula:
    """Return the cycles from a command to the first digit."""
    return Formula(
        formula="bins + levels + 1",
        variables={"bins": "values of a digit", "levels": "levels of the tree, ceil(log2(shards))"},
        values={"bins": params.shard.bins, "levels": params.levels},
        cycles=top_k.merge_latency_cycles(params),
    )


def merge_interval(params: TopKParams) -> Formula:
    """Return the cycles from command to command, shards answering at once."""
    return Formula(
        formula="digits * (bins + levels + 1) + shards + 3",
        variables={
            "digits": "digits of a key",
            "bins": "values of a digit; shards give them at once",
            "levels": "levels of the tree, ceil(log2(shards))",
            "shards": "shards merged",
        },
        values={
            "digits": params.shard.digits,
            "bins": params.shard.bins,
            "levels": params.levels,
            "shards": params.shards,
        },
        cycles=top_k.merge_interval_cycles(params),
    )


def gather_latency(_params: GatherParams) -> Formula:
    """Return the cycles from the rows of an operation to its first burst."""
    return Formula(
        formula="rows + 3",
        variables={"rows": "rows of the first burst"},
        values={"rows": 1},
        cycles=gather.latency_cycles(1),
    )


def gather_interval(_params: GatherParams) -> Formula:
    """Return the cycles from operation to operation."""
    return Formula(
        formula="ids + 4",
        variables={"ids": "ids of the operation, at least 1"},
        values={"ids": 2048},
        cycles=gather.cycles(2048) - 1,
    )
