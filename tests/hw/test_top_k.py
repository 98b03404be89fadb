# amaranth: UnusedElaboratable=no
"""The top-k unit at small sizes in Amaranth's simulator: the bit and the cycle contract, and bad arguments."""

from __future__ import annotations

import numpy as np
import pytest

from hw.timing.top_k import ShardWork, counts_latency_cycles, digit_cycles, select_cycles
from hw.top_k_params import TopKParams, TopKShardParams
from hw.units.top_k import TopK
from hw.units.top_k_merge import TopKMerge
from hw.units.top_k_shard import TopKShard
from tests.helpers.pysim import run_pysim
from tests.helpers.top_k import back_to_back, faults, one_slow_stream, random_run, reset_anywhere

_SIZES = {
    "one shard": TopKParams(shard=TopKShardParams(depth=8, lanes=2, id_bits=4), max_k=8),
    "two shards": TopKParams(shard=TopKShardParams(depth=8, lanes=4, digit_bits=2, id_bits=6), shards=2, max_k=5),
}


@pytest.fixture(params=_SIZES.values(), ids=_SIZES.keys())
def params(request):
    return request.param


def test_back_to_back(params):
    run_pysim(TopK(params), lambda bench: back_to_back(bench, params))


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.7), (0.6, 0.4)])
def test_stalls(params, idle, stall):
    run_pysim(TopK(params), lambda bench: random_run(bench, params, 4, idle=idle, stall=stall, seed=7))


@pytest.mark.parametrize("slow", ["command", "scan", "scores", "selected"])
def test_one_slow_stream(slow):
    params = _SIZES["two shards"]
    run_pysim(TopK(params), lambda bench: one_slow_stream(bench, params, slow))


def test_faults():
    params = _SIZES["two shards"]
    run_pysim(TopK(params), lambda bench: faults(bench, params))


def test_reset_anywhere():
    params = _SIZES["one shard"]
    run_pysim(TopK(params), lambda bench: reset_anywhere(bench, params, [1, 3, 4, 9, 14, 40, 170]))


def test_timing_diagram_of_the_shard():
    # Four scores from cycle 1 on: numbers in cycle 7 and, digits being of one bit, 8; the merge answers in cycle 9.
    assert counts_latency_cycles(4) == 7
    assert counts_latency_cycles(0) == 2


def test_share_of_a_million_beside_the_keys():
    """64 shards of 15,625 scores: the figure of the docstring, and at most 5 % of the keys' time from 64K up."""
    params = TopKParams(shards=64)
    cycles_per_key = 132 / 1.2e12 * 64 * 1.83e9
    assert cycles_per_key == pytest.approx(12.88, abs=0.01)
    shares = {}
    for tokens in (1 << 16, 1 << 17, 1 << 18, 1 << 19, 1_000_000):
        each = -(-tokens // 64)
        rows = -(-each // 32)
        cycles = select_cycles(params, rows, 63, rows)
        shares[tokens] = cycles / (each * cycles_per_key)
    assert select_cycles(params, 489, 63, 489) == 7 * (489 + 16 + 6 + 4) + 16 + 6 + 63 + 10 + 489 == 4189
    assert digit_cycles(params, 489) == 515
    assert shares[1_000_000] == pytest.approx(4189 / (15625 * cycles_per_key))
    assert shares[1 << 16] == pytest.approx(0.0404, abs=1e-4)
    assert all(share <= 0.05 for share in shares.values())


def test_work_of_sparse_ids():
    params = TopKShardParams(depth=64, lanes=4)
    work = ShardWork.of(params, np.array([33, 2, 9]), np.array([2, 33]))
    assert work == ShardWork(3, (True, *[False] * 7, True))
    assert work.rows == 9
    assert ShardWork.of(params, np.array([], int), np.array([], int)) == ShardWork(0, (False,))


def test_bad_arguments():
    shard = TopKShardParams()
    with pytest.raises(TypeError, match="params must be a TopKParams, not TopKShardParams"):
        TopK(shard)
    with pytest.raises(TypeError, match="params must be a TopKParams, not 3"):
        TopKMerge(3)
    with pytest.raises(TypeError, match="params must be a TopKShardParams, not TopKParams"):
        TopKShard(TopKParams())
    for changes, message in (
        ({"lanes": 12}, "lanes must be a power of two, not 12"),
        ({"lanes": 1}, "lanes must be from 2 to 128, not 1"),
        ({"depth": 32}, "depth must be from 64 to 16777216, not 32"),
        ({"depth": 96}, "depth must be a power of two, not 96"),
        ({"digit_bits": 3}, "digit_bits must be 1, 2 or 4, not 3"),
        ({"digit_bits": 8}, "digit_bits must be from 1 to 4, not 8"),
        ({"id_bits": 13}, "id_bits must be from 14 to 32, not 13"),
    ):
        with pytest.raises(ValueError, match=message):
            shard.replace(**changes)
    with pytest.raises(TypeError, match="shard must be a TopKShardParams, not 1"):
        TopKParams(shard=1)
    with pytest.raises(ValueError, match="shards must be from 1 to 256, not 257"):
        TopKParams(shards=257)
    with pytest.raises(ValueError, match="max_k must be from 1 to 16384, not 16385"):
        TopKParams(max_k=16385)
    with pytest.raises(ValueError, match="shard must be from 0 to 0, not 1"):
        select_cycles(TopKParams(), 1, 1, 1)
    with pytest.raises(ValueError, match="rows must be from 1 to 512, not 513"):
        digit_cycles(TopKParams(), 513)
    with pytest.raises(ValueError, match="own_rows must be from 1 to 1, not 0"):
        select_cycles(TopKParams(), 1, 0, 0)
    with pytest.raises(ValueError, match="count must be at least 0, not -1"):
        counts_latency_cycles(-1)
