"""Promise: a channel answers as the golden model does, by legal commands, at the pace of its memory."""

from __future__ import annotations

import numpy as np
import pytest

from hw.memory.kv_rows import deal
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import row_cycles, stream_limit, with_refresh
from tests.helpers.channels import checked_run, make_channel_operation

ATTACC = DEVICE_PRESETS["attacc"].channel
UNLIMITED = DEVICE_PRESETS["attacc-unlimited"].channel
PAM = DEVICE_PRESETS["pam"].channel


def test_head_dimensions_and_token_counts_of_every_kind():
    """Sizes change from operation to operation on one elaborated channel; parts own different numbers of tokens."""
    rng = np.random.default_rng(7)
    operations = [
        make_channel_operation(ATTACC, rng, head_dim=head_dim, tokens=tokens)
        for head_dim, tokens in [
            *((128, tokens) for tokens in (0, 1, 15, 16, 17, 255, 256, 257, 512, 1000)),
            *((64, tokens) for tokens in (1, 500, 513)),
            *((80, 300), (96, 33), (256, 129), (192, 321), (72, 16), (128, 0), (256, 0), (64, 16)),
        ]
    ]
    # Parts that own more than the first, fewer, and none at all.
    uneven = np.arange(16) * 5
    operations += [
        make_channel_operation(ATTACC, rng, head_dim=128, tokens=list(counts)) for counts in (uneven, uneven[::-1])
    ]
    _, counts = checked_run(ATTACC, operations)
    tiles = [-(-int(op.tokens.max()) // (32 // -(-len(op.query) // 64))) for op in operations]
    assert counts["ACTAB"] == counts["PREAB"] == 2 * sum(tiles)
    beats = [-(-len(op.query) // 64) for op in operations]
    assert counts["MACAB"] == sum(2 * int(op.tokens.max()) * b for op, b in zip(operations, beats, strict=True))
    assert counts["BROADCAST"] == sum(ATTACC.command_columns + 4 * b for b in beats)


def test_large_and_special_codes():
    rng = np.random.default_rng(3)
    operations = [
        make_channel_operation(ATTACC, rng, head_dim=128, tokens=500, spread=spread) for spread in (100.0, 1e-4, 1e4)
    ]
    operations[0].keys[0][3, 5] = 0x7C00  # infinity
    operations[1].values[0][2, 100] = 0x7E00  # NaN
    _, counts = checked_run(ATTACC, operations)
    assert counts["MACAB"] == 3 * 2 * 32 * 2


@pytest.mark.parametrize("first", [1, 100, 777, 5070])
def test_refresh_costs_what_the_formula_says(first):
    rng = np.random.default_rng(first)
    operations = [make_channel_operation(ATTACC, rng, head_dim=128, tokens=2048) for _ in range(4)]
    free, _ = checked_run(ATTACC, operations)
    run, counts = checked_run(ATTACC, operations, first_refresh_cycles=first)
    predicted = with_refresh(ATTACC, free.read_cycles[-1], first)
    assert counts["REFAB"] >= 3
    assert abs(run.read_cycles[-1] - predicted) <= max(0.01 * predicted, row_cycles(ATTACC, 32))


@pytest.mark.parametrize("params", [ATTACC, UNLIMITED, PAM], ids=["attacc", "unlimited", "pam"])
def test_streaming_reaches_the_limit_of_memory_or_cap(params):
    """4,096 tokens a bank group, refresh on: at least 99 % of the limit that the rules and the cap leave."""
    rng = np.random.default_rng(5)
    operations = [make_channel_operation(params, rng, head_dim=128, tokens=16 * 1024) for _ in range(4)]
    run, counts = checked_run(params, operations, first_refresh_cycles=params.timing.n_refi)
    reads = run.read_cycles
    assert len(reads) == counts["MACAB"] == 4 * 2 * 1024 * 2
    # By hand, from the rules alone: opening, 31 spaced reads, closing; refresh takes its share of every interval.
    timing = params.timing
    row = 19 + 31 * timing.n_ccdab + 8 + 19
    memory = row / 32 / (1 - 456 / 5070)
    limit = max(memory, 2048 / 100e9 / 0.769e-9 if params is PAM else 0)
    assert float(stream_limit(params, 32).column_cycles) == pytest.approx(limit, rel=1e-12)
    assert limit * (len(reads) - 1) / (reads[-1] - reads[0]) >= 0.99


def test_even_dealing():
    assert deal(0, 4).tolist() == [0, 0, 0, 0]
    assert deal(5, 4).tolist() == [2, 1, 1, 1]
    assert deal(8, 4).tolist() == [2, 2, 2, 2]
