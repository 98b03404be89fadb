"""Scoring units before the shards of a top-k unit under Verilator: the ids of the golden model, however shards lie."""

from __future__ import annotations

from golden.retrieval.index_spec import ScoreSpec
from hw.benches.index_score import select_of_keys
from hw.index_score_params import IndexScoreParams, IndexSelectParams
from hw.top_k_params import TopKParams, TopKShardParams

_PARAMS = IndexSelectParams(
    score=IndexScoreParams(
        spec=ScoreSpec(beat_bytes=8, head_lanes=2, wide_head_lanes=1), max_groups=2, query_rows=4, id_bits=7
    ),
    top_k=TopKParams(shard=TopKShardParams(depth=128, lanes=8, id_bits=9), shards=2, max_k=64),
)


def test_keys_to_ids():
    found = select_of_keys(_PARAMS, heads=3, dim=16, count=200, k=50)
    # Two beats a key and two groups of heads, a beat of scales for two keys: the longest part of the run.
    assert found["cycles"] > 100 * 4 + 50
    assert 0 < found["after_last_key_cycles"] < 400
