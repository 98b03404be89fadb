"""Latency and interval of the units of selection as text, for :mod:`hw.timing.formulas`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.retrieval.index_spec import ScoreMode
from hw.index_score_params import ScoreWork
from hw.timing import gather, index_score, top_k
from hw.timing.formula import Formula
from hw.top_k_params import TopKParams

if TYPE_CHECKING:
    from hw.gather_params import GatherParams
    from hw.index_score_params import IndexScoreParams
    from hw.top_k_params import TopKShardParams

__all__ = ["gather_interval", "gather_latency", "merge_interval", "merge_latency", "score_interval", "score_latency"]
__all__ += ["shard_interval", "shard_latency"]


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
        formula="count + (digits - 1) * (rows + bins + 4) + bins + 10 + rows",
        variables={
            "count": "scores of the operation; the merge is of this shard alone",
            "digits": "digits of a key",
            "bins": "values of a digit",
            "rows": "rows swept, up to that of the highest id",
        },
        values={
            "count": params.depth,
            "digits": params.digits,
            "bins": params.bins,
            "rows": params.rows,
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
        formula="rows + 4",
        variables={"rows": "rows of the first burst"},
        values={"rows": 1},
        cycles=gather.latency_cycles(1),
    )


def gather_interval(_params: GatherParams) -> Formula:
    """Return the cycles from operation to operation, the first ids of the next one waiting."""
    return Formula(
        formula="ids + 4",
        variables={"ids": "ids of the operation, at least 1"},
        values={"ids": 2048},
        cycles=gather.cycles(2048) - 2,
    )


def score_latency(params: IndexScoreParams) -> Formula:
    """Return the cycles from a command to the first score, of E4M3 keys with scales."""
    work = _example(params)
    first = index_score.load_cycles(params, work) + 1 + work.key_beats(params) * work.groups(params)
    return Formula(
        formula="heads * beats + 2 + beats * groups + stages + levels + 6",
        variables=_SCORE_VARIABLES,
        values=_score_values(params, work),
        cycles=1 + first + index_score.score_latency_cycles(params, wide=False),
    )


def score_interval(params: IndexScoreParams) -> Formula:
    """Return the cycles from command to command, of E4M3 keys with scales."""
    work = _example(params)
    return Formula(
        formula="heads * beats + ceil(keys / scales) + keys * beats * groups + stages + levels + 9",
        variables={**_SCORE_VARIABLES, "keys": "keys of the operation", "scales": "scales of a beat"},
        values={**_score_values(params, work), "keys": work.keys, "scales": params.spec.scales_per_beat},
        cycles=index_score.operation_cycles(params, work),
    )


_SCORE_VARIABLES = {
    "heads": "heads of the query",
    "beats": "beats of a vector",
    "groups": "groups of heads, ceil(heads / head_lanes)",
    "stages": "registers from a beat to its sum, ceil(log2(beat_bytes) / 2)",
    "levels": "levels of the tree over heads, ceil(log2(head_lanes))",
}


def _example(params: IndexScoreParams) -> ScoreWork:
    """Return an operation that fills the unit."""
    return ScoreWork(
        mode=ScoreMode(relu=True, scaled=True),
        heads=params.max_groups * params.spec.head_lanes,
        dim=params.query_rows // params.max_groups * params.spec.beat_bytes,
        keys=1 << params.id_bits,
    )


def _score_values(params: IndexScoreParams, work: ScoreWork) -> dict[str, int]:
    return {
        "heads": work.heads,
        "beats": work.vector_beats(params),
        "groups": work.groups(params),
        "stages": params.exact_stages,
        "levels": params.head_levels,
    }
