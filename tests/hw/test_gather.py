# amaranth: UnusedElaboratable=no
"""The gather unit in Amaranth's simulator: bursts of the ids, every cycle, and bad arguments."""

from __future__ import annotations

from itertools import pairwise

import pytest

from golden.retrieval.bursts import Burst, Rows, bursts
from hw.gather_params import GatherParams
from hw.timing.gather import GatherWork, cycles, predict
from hw.units.gather import Gather
from tests.helpers.gather import back_to_back, faults, one_slow_stream, random_run, reset_anywhere
from tests.helpers.pysim import run_pysim

_PARAMS = GatherParams(id_bits=7, address_bits=20, row_bits=9, max_burst_rows=5, lanes=4)


def test_back_to_back():
    run_pysim(Gather(_PARAMS), lambda bench: back_to_back(bench, _PARAMS))


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.7), (0.6, 0.0), (0.4, 0.4)])
def test_stalls(idle, stall):
    run_pysim(Gather(_PARAMS), lambda bench: random_run(bench, _PARAMS, 12, idle=idle, stall=stall, seed=7))


@pytest.mark.parametrize("slow", ["rows", "selected", "stall"])
def test_one_slow_stream(slow):
    run_pysim(Gather(_PARAMS), lambda bench: one_slow_stream(bench, _PARAMS, slow))


def test_faults_and_reset():
    run_pysim(Gather(_PARAMS), lambda bench: faults(bench, _PARAMS))
    run_pysim(Gather(_PARAMS), lambda bench: reset_anywhere(bench, _PARAMS, [1, 2, 3, 4, 5, 9, 20]))


def test_timing_diagram_of_the_docstring():
    found = predict([GatherWork((2, 1), (2, 1)), GatherWork((1,), (1,)), GatherWork((1, 3), (4,)), GatherWork((), ())])
    assert found["rows"].tolist()[:2] == [0, 8]
    assert found["selected"].tolist()[:3] == [0, 2, 3]
    assert found["bursts"].tolist()[:3] == [6, 7, 8]
    # What follows an operation is as long as its ids and four cycles: its first ids wait already.
    assert [int(later - sooner) for sooner, later in pairwise(found["rows"])] == [3 + 5, 1 + 4, 4 + 4]
    assert [cycles(count) for count in (0, 1, 3)] == [5, 7, 9]


def test_rows_of_latent_attention():
    """By hand: 1,152 B rows, three adjacent of which two fit a burst; blocks of 128 tokens."""
    rows = Rows(base_bytes=4096, stride_bytes=1152, row_bytes=1152, burst_rows=2)
    assert bursts([0, 1, 2, 7], rows) == [Burst(4096, 2304, 2), Burst(6400, 1152, 1), Burst(12160, 1152, 1)]
    block = Rows(base_bytes=0, stride_bytes=147_456, row_bytes=147_456, burst_rows=1)
    assert bursts([3], block) == [Burst(442_368, 147_456, 1)]
    assert bursts([], rows) == []
    # Rows with a gap between them can't be one burst.
    apart = Rows(base_bytes=0, stride_bytes=1280, row_bytes=1152, burst_rows=8)
    assert bursts([0, 1], apart) == [Burst(0, 1152, 1), Burst(1280, 1152, 1)]


def test_bad_arguments():
    with pytest.raises(TypeError, match="params must be a GatherParams, not 3"):
        Gather(3)
    for changes, message in (
        ({"id_bits": 33}, "id_bits must be from 1 to 32, not 33"),
        ({"address_bits": 7}, "address_bits must be from 8 to 64, not 7"),
        ({"row_bits": 0}, "row_bits must be from 1 to 32, not 0"),
        ({"max_burst_rows": 0}, "max_burst_rows must be from 1 to 4096, not 0"),
        ({"lanes": 129}, "lanes must be from 2 to 128, not 129"),
    ):
        with pytest.raises(ValueError, match=message):
            _PARAMS.replace(**changes)
    with pytest.raises(ValueError, match="row_bytes must be at least 1, not 0"):
        Rows(base_bytes=0, stride_bytes=0, row_bytes=0, burst_rows=1)
    with pytest.raises(TypeError, match=r"base_bytes must be an integer, not 0\.5"):
        Rows(base_bytes=0.5, stride_bytes=0, row_bytes=1, burst_rows=1)
    with pytest.raises(ValueError, match="ids must be at least 0, not -1"):
        cycles(-1)
