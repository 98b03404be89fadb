"""The top-k unit under Verilator: ids of a plain sort, cycle for cycle formula and recurrence.

Scenarios (:mod:`tests.helpers.top_k`), scores of every kind in random order of ids, k from 0 to beyond all scores: back
to back without stalls; idle x back-pressure on every stream; each kind of stream alone far slower than the rest; NaN,
ids that come twice and ids that don't fit; reset at many cycles. Then a channel's share of a million scores.
"""

from __future__ import annotations

import pytest

from hw.benches.top_k import select_once
from hw.top_k_params import TopKParams, TopKShardParams
from hw.units.top_k import TopK
from tests.helpers.rtl import run_cocotb
from tests.helpers.top_k import params_of

_TESTS = 1 + 9 + 4 + 1 + 1

_SIZES = {
    "three shards": {"depth": 32, "lanes": 4, "digit_bits": 4, "id_bits": 7, "shards": 3, "max_k": 70},
    "short digits": {"depth": 64, "lanes": 8, "digit_bits": 2, "id_bits": 6, "shards": 1, "max_k": 64},
}


@pytest.mark.parametrize("name", _SIZES)
def test_top_k(name):
    size = _SIZES[name]
    run_cocotb(TopK, params_of(size), module="tests.rtl.tb_top_k", expected=_TESTS, case=size)


def test_a_channels_share_of_a_million():
    """16,384 scores in random order, half of them tied: golden ids, every cycle that of the model, and by hand."""
    params = TopKParams(shard=TopKShardParams(depth=16384, lanes=32, id_bits=20), max_k=2048)
    for k in (2048, 32):
        found = select_once(params, 16384, k)
        assert (found["scores"], found["k"]) == (16384, k)
        # Seven sweeps of 512 rows, 20 cycles each between them, and the one that gives ids.
        assert found["select_cycles"] == 7 * (512 + 20) + 26 + 512
