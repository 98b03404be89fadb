# amaranth: UnusedElaboratable=no
"""Promise: shard and merge hold their streams and say what the golden model says, each placed by itself."""

from __future__ import annotations

import numpy as np
import pytest

from golden.formats import FP32
from golden.retrieval.radix import digit_counts, ordered_keys, quotas, select, threshold
from hw.payloads import pack
from hw.timing.top_k import counts_latency_cycles, merge_interval_cycles, merge_latency_cycles
from hw.top_k_params import TopKParams, TopKShardParams
from hw.units.top_k_layouts import scan_layout, score_layout, selected_layout
from hw.units.top_k_merge import TopKMerge
from hw.units.top_k_shard import TopKShard
from tests.helpers.pysim import run_pysim

_SHARD = TopKShardParams(depth=16, lanes=4, digit_bits=4, id_bits=5)


def _dialogue(shards, k):
    """Return, for each shard, the numbers it gives and the answers it gets, by the golden model."""
    keys = [ordered_keys(scores) for scores in shards]
    found = threshold(keys, k, _SHARD.digit_bits)
    numbers = [[] for _ in keys]
    digits = [found.key >> 4 * place & 15 for place in reversed(range(_SHARD.digits))]
    for digit in range(_SHARD.digits):
        prefix = found.key >> 32 - 4 * digit
        for mine, part in zip(numbers, keys, strict=True):
            counts = digit_counts(part, prefix, digit, _SHARD.digit_bits)
            mine.extend(counts[::-1].tolist())
            last = int(counts[digits[digit]])
            if digit == _SHARD.digits - 1:
                mine.append(last)
    return numbers, [[*digits, quota] for quota in quotas(keys, found)], found


def _scores(rng, count):
    return rng.choice([-1.0, 0.0, 0.25, 0.5, 3.0, 3.0000002], count).astype(np.float32)


@pytest.mark.parametrize(("shards", "idle", "stall"), [(5, 0.0, 0.0), (5, 0.3, 0.6), (5, 0.6, 0.3), (64, 0.0, 0.0)])
def test_merge(shards, idle, stall):
    rng = np.random.default_rng(6)
    params = TopKParams(shard=_SHARD, shards=shards, max_k=8 * shards)
    ks = [0, 1, 7, 8 * shards, 4 * shards]
    work = [_dialogue([_scores(rng, int(rng.integers(9, 17))) for _ in range(shards)], k) for k in ks]

    async def scenario(bench):
        bench.send("command", ks, idle=idle)
        for s in range(shards):
            bench.send(f"counts__{s}", [number for numbers, _, _ in work for number in numbers[s]], idle=idle)
            bench.stall(f"choice__{s}", stall)
        each = _SHARD.digits + 1
        await bench.until(**{f"choice__{s}": each * len(ks) for s in range(shards)})
        await bench.advance(3)
        for s in range(shards):
            assert bench.items(f"choice__{s}") == [answer for _, answers, _ in work for answer in answers[s]]
        if not idle:
            commands = bench.trace("command").transfers
            levels = {5: 3, 64: 6}[shards]
            assert np.diff(commands).tolist() == [8 * (16 + levels + 1) + shards + 3] * (len(ks) - 1)
            assert merge_interval_cycles(params) == 8 * (16 + levels + 1) + shards + 3
            first = {int(bench.trace(f"choice__{s}").transfers[0] - commands[0]) for s in range(shards)}
            assert first == {merge_latency_cycles(params)} == {17 + levels}

    run_pysim(TopKMerge(params), scenario)


def test_timing_diagram_of_the_merge():
    params = TopKParams(shard=_SHARD.replace(digit_bits=1), shards=2, max_k=4)

    async def scenario(bench):
        bench.send("command", [1])
        for s in range(2):
            bench.send(f"counts__{s}", [1, 0] * 32 + [1])
        await bench.until(choice__1=33)
        start = bench.trace("counts__0").transfers[62] - 1
        assert (bench.trace("counts__0").transfers[62:] - start).tolist() == [1, 2, 5]
        assert (bench.trace("choice__0").transfers[31:] - start).tolist() == [4, 7]
        assert (bench.trace("choice__1").transfers[31:] - start).tolist() == [4, 8]
        assert bench.items("choice__0") == [1] * 33
        assert bench.items("choice__1") == [1] * 32 + [0]

    run_pysim(TopKMerge(params), scenario)


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.3, 0.6), (0.6, 0.3)])
def test_shard(idle, stall):
    """It gives the numbers of the golden model and, told the threshold of all, its own ids."""
    rng = np.random.default_rng(7)
    ours, others = [_scores(rng, 13) for _ in range(3)], [_scores(rng, 15) for _ in range(3)]
    work = [_dialogue([mine, other], 9) for mine, other in zip(ours, others, strict=True)]
    layout = selected_layout(_SHARD.id_bits, _SHARD.lanes)

    async def scenario(bench):
        expected = []
        for scores, (_, answers, found) in zip(ours, work, strict=True):
            bench.send("scan", [pack(scan_layout(_SHARD), count=13, base=3)], idle=idle)
            codes = FP32.to_codes(scores)
            order = rng.permutation(13)
            beats = [pack(score_layout(_SHARD), score=int(codes[number]), id=int(number)) for number in order]
            bench.send("scores", beats, idle=idle)
            bench.send("choice", answers[0], idle=idle)
            ids = select(ordered_keys(scores), found.key, answers[0][-1])
            for row in range(_SHARD.rows):
                lanes = sum(1 << lane for lane in range(4) if 4 * row + lane in ids)
                expected += [pack(layout, first=3 + 4 * row, lanes=lanes, end=0, fault=0)] if lanes else []
            expected.append(pack(layout, first=0, lanes=0, end=1, fault=0))
        bench.stall("counts", stall)
        bench.stall("selected", stall)
        await bench.until(selected=len(expected))
        assert bench.items("selected") == expected
        assert bench.items("counts") == [number for numbers, _, _ in work for number in numbers[0]]
        if not idle:
            scan = bench.trace("scan").transfers
            # After reset the store is cleared, a row a cycle.
            assert scan[0] == _SHARD.rows
            assert bench.trace("counts").transfers[0] - scan[0] == counts_latency_cycles(13) == 16

    run_pysim(TopKShard(_SHARD), scenario)
