# amaranth: UnusedElaboratable=no
"""The index scoring unit at small sizes, the least in Amaranth's simulator: bits and cycles, and bad arguments."""

from __future__ import annotations

import pytest

from golden.formats import FP16
from golden.retrieval.index_spec import MODES, ScoreMode, ScoreSpec
from hw.conversion import convert_once
from hw.index_score_params import IndexScoreParams, IndexSelectParams, ScoreWork
from hw.index_score_words import command_word
from hw.timing.index_score import held_scores, load_cycles, operation_cycles, scan_cycles, score_latency_cycles
from hw.top_k_params import TopKParams, TopKShardParams
from hw.units.index_score import IndexScore
from hw.units.index_score_layouts import key_score_layout
from hw.units.index_select import IndexSelect
from hw.units.top_k_layouts import score_layout
from tests.helpers.index_score import back_to_back, modes, one_slow_stream, random_run, reset_anywhere
from tests.helpers.native import run_native
from tests.helpers.pysim import run_pysim

SMALL = IndexScoreParams(
    spec=ScoreSpec(beat_bytes=8, head_lanes=3, wide_head_lanes=2), max_groups=2, query_rows=5, id_bits=7
)
LEAST = IndexScoreParams(
    spec=ScoreSpec(beat_bytes=8, head_lanes=1, wide_head_lanes=1, wide_format=FP16),
    max_groups=1,
    query_rows=1,
    id_bits=5,
)


def test_back_to_back():
    run_native(IndexScore, SMALL, lambda bench: back_to_back(bench, SMALL, [MODES["indexer"], MODES["page-bounds"]]))


def test_the_least_unit():
    """Some settings; then pauses on every stream, scores that hardly leave, and broken off."""

    async def scenario(bench):
        await back_to_back(bench, LEAST, modes()[7::7])
        await random_run(bench, LEAST, 4, idle=0.4, stall=0.5, seed=7)
        await one_slow_stream(bench, LEAST, "scores")
        await reset_anywhere(bench, LEAST, [11, 30])

    run_pysim(IndexScore(LEAST), scenario)


def test_heads_of_short_vectors_share_lanes():
    """Two heads of 16 bits meet a label at once: as many groups as half of the heads, a cycle each."""
    params = LEAST.replace(spec=ScoreSpec(beat_bytes=8, head_lanes=2, wide_head_lanes=1))
    for dim, heads, cycles in ((2, 2, 5), (2, 1, 5)):
        assert scan_cycles(params, ScoreWork(mode=MODES["labels"], heads=heads, dim=dim, keys=5)) == cycles
    assert load_cycles(params, ScoreWork(mode=MODES["labels"], heads=2, dim=2, keys=5)) == 2
    with pytest.raises(ValueError, match="heads must be at most 1, max_groups of 1, not 2"):
        command_word(params, ScoreWork(mode=MODES["labels"], heads=2, dim=3, keys=5))

    async def scenario(bench):
        await back_to_back(bench, params, [MODES["labels"], MODES["cosine"], MODES["representatives"]])
        await random_run(bench, params, 5, idle=0.3, stall=0.4, seed=8)

    run_pysim(IndexScore(params), scenario)


def test_verilog_of_the_least_unit_has_no_signal_without_bits():
    """Verilator refuses one."""
    assert "[-1:0]" not in convert_once(IndexScore, LEAST, name="nearkv_index_score")


def _deepseek(keys):
    return ScoreWork(mode=MODES["indexer"], heads=64, dim=128, keys=keys)


def test_timing_diagram_of_the_unit():
    """One head, two keys of a beat: the next command in cycle 14, the latency 8."""
    work = ScoreWork(mode=ScoreMode(), heads=1, dim=1, keys=2)
    assert score_latency_cycles(LEAST, wide=False) == 8
    assert operation_cycles(LEAST, work) == 14
    assert operation_cycles(LEAST, ScoreWork(mode=ScoreMode(), heads=1, dim=1, keys=0)) == 2


def test_a_channels_share_of_a_million_beside_the_keys():
    """16,384 keys of 64 heads: 12 cycles each and one for 8 scales, where the memory takes 12.88 to deliver each."""
    params, work = IndexScoreParams(), _deepseek(16384)
    cycles_per_key = 132 / (1.2e12 / 64) * 1.83e9
    assert cycles_per_key == pytest.approx(12.883, abs=1e-3)
    assert work.groups(params) == 3
    assert work.stored_beats(params) * 32 == 16384 * 132
    assert load_cycles(params, work) == 64 * 4
    assert scan_cycles(params, work) == 16384 * 12 + 2048
    assert [score_latency_cycles(params, wide=wide) for wide in (False, True)] == [14, 16]
    assert operation_cycles(params, work) == 256 + 198_656 + 14 + 3 == 198_929
    # With query, filling and the wait for the last score, in less time than the keys take to come.
    assert operation_cycles(params, work) < 0.943 * 16384 * cycles_per_key


def test_other_modes_of_a_channel_beside_their_keys():
    """Cycles a key at heads that share one, and the cycles in which its bytes come."""
    params = IndexScoreParams()
    bytes_per_cycle = 1.2e12 / 64 / 1.83e9
    for name, heads, dim, cycles, size in (
        ("indexer", 32, 128, 8, 128),
        ("best-token", 4, 128, 8, 256),
        ("centroids", 8, 128, 16, 256),
        ("page-bounds", 8, 128, 32, 512),
        ("representatives", 8, 128, 16, 256),
    ):
        work = ScoreWork(mode=MODES[name], heads=heads, dim=dim, keys=8)
        scales = 1 if name == "indexer" else 0
        assert scan_cycles(params, work) == 8 * cycles + scales
        assert (cycles + scales / 8) * bytes_per_cycle <= size + 4 * scales, name


def test_the_queue_holds_what_a_key_a_cycle_needs():
    assert held_scores(SMALL) == 3 + 2 + 6 + 2
    assert held_scores(IndexScoreParams()) == 5 + 5 + 6 + 2


def test_scores_are_what_a_shard_takes():
    shard = TopKShardParams(depth=16384, lanes=32)
    assert key_score_layout(IndexScoreParams(id_bits=14)) == score_layout(shard)


def test_bad_arguments():
    with pytest.raises(TypeError, match="params must be an IndexScoreParams, not 3"):
        IndexScore(3)
    with pytest.raises(TypeError, match="params must be an IndexSelectParams, not 3"):
        IndexSelect(3)
    with pytest.raises(ValueError, match="id_bits of score must be 4, as of an id in a shard, not 14"):
        IndexSelectParams(score=IndexScoreParams(), top_k=TopKParams(shard=TopKShardParams(depth=16, lanes=4), max_k=2))
    with pytest.raises(TypeError, match="spec must be a ScoreSpec, not 1"):
        IndexScoreParams(spec=1)
    for changes, message in (
        ({"max_groups": 17}, "max_groups must be from 1 to 16, not 17"),
        ({"query_rows": 2}, "query_rows must be from 3 to 256, not 2"),
        ({"id_bits": 0}, "id_bits must be from 1 to 24, not 0"),
    ):
        with pytest.raises(ValueError, match=message):
            IndexScoreParams(**changes)
    mode = ScoreMode()
    for name in ("heads", "dim"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
            ScoreWork(**{"mode": mode, "heads": 1, "dim": 1, "keys": 1} | {name: 0})
    # One head, one element and one key too many.
    for work, message in (
        (ScoreWork(mode=mode, heads=7, dim=8, keys=1), "heads must be at most 6, max_groups of 3, not 7"),
        (ScoreWork(mode=mode, heads=4, dim=17, keys=1), "query must take at most 5 rows, query_rows, not 6"),
        (ScoreWork(mode=mode, heads=4, dim=8, keys=129), "keys must be at most 128, what id_bits number, not 129"),
    ):
        with pytest.raises(ValueError, match=message):
            command_word(SMALL, work)
