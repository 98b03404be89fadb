"""The index scoring unit under Verilator: golden scores bit for bit, cycle for cycle formula and recurrence.

Scenarios (:mod:`tests.helpers.index_score`), numbers of every kind: every mode back to back without stalls; idle x
back-pressure on every stream; each stream alone far slower than the rest; reset at many cycles. Then a channel's share
of a million keys.
"""

from __future__ import annotations

import pytest

from golden.retrieval.index_spec import ScoreSpec
from hw.benches.index_score import scan_once
from hw.index_score_params import IndexScoreParams
from hw.native_arithmetic import NATIVE
from hw.units.index_score import IndexScore
from tests.helpers.index_score import params_of
from tests.helpers.rtl import run_cocotb

_TESTS = 1 + 9 + 4 + 1

_SIZES = {
    "two lanes": {
        "beat_bytes": 8,
        "head_lanes": 2,
        "wide_head_lanes": 1,
        "wide_format": "fp16",
        "max_groups": 3,
        "query_rows": 5,
        "id_bits": 7,
    },
    "five lanes": {
        "beat_bytes": 16,
        "head_lanes": 5,
        "wide_head_lanes": 3,
        "wide_format": "bf16",
        "max_groups": 2,
        "query_rows": 6,
        "id_bits": 8,
    },
}
_PLATFORMS = {"two lanes": None, "five lanes": NATIVE}
"""The larger one with the machine's arithmetic: it is built in half the time."""


@pytest.mark.parametrize("name", _SIZES)
def test_index_score(name):
    size = _SIZES[name]
    run_cocotb(
        IndexScore,
        params_of(size),
        module="tests.rtl.tb_index_score",
        expected=_TESTS,
        case=size,
        platform=_PLATFORMS[name],
    )


def test_a_channels_share_of_a_million():
    """16,384 keys of 128 elements and 8 heads in two groups: golden scores, every cycle that of the model, by hand."""
    params = IndexScoreParams(spec=ScoreSpec(head_lanes=4, wide_head_lanes=1), max_groups=2, query_rows=8)
    found = scan_once(params, heads=8, dim=128, keys=16384)
    assert found["key_rate_share"] is None
    # Eight cycles a key, one for the scales of eight keys; the query, the last key's turn and latency around.
    assert found["keys_cycles"] == 16384 * 8 + 2048 - 1
    assert found["cycles"] == 1 + 8 * 4 + 16384 * 8 + 2048 + 3 + 2 + 6 + 1
    # Keys that come at 10 bytes a cycle, 13.2 cycles each, are scored as fast, the query and the last score included.
    paced = scan_once(params, heads=8, dim=128, keys=2048, bytes_per_cycle=10)
    arrival = 2048 * 132 / 10
    assert arrival + 32 < paced["cycles"] <= arrival + 32 + 20
    assert paced["key_rate_share"] == pytest.approx(arrival / paced["cycles"])
    assert paced["key_rate_share"] >= 0.98
