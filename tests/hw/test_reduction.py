# amaranth: UnusedElaboratable=no
"""The reduction unit at small sizes in Amaranth's simulator: the bit and the cycle contract, and bad arguments."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp import POLY6, POLY6_SERIAL
from hw.params import FinishParams, ReductionParams
from hw.timing.reduction import (
    cycles,
    fill_cycles,
    interval_cycles,
    latency_cycles,
    predict,
    weight_queue_depth,
)
from hw.timing.trace import StreamTrace
from hw.units.reduction import ReductionUnit
from tests.helpers.pysim import run_pysim
from tests.helpers.reduction import back_to_back, empty_patterns, faults, random_run, reset_anywhere

_SIZES = {
    "one source": ReductionParams(head_dim=4, lanes=2, num_sources=1, op_id_bits=1),
    "three beats": ReductionParams(head_dim=6, lanes=2, num_sources=2, op_id_bits=4),
    "hidden": ReductionParams(head_dim=26, lanes=2, num_sources=3),
    "serial": ReductionParams(head_dim=4, lanes=2, num_sources=5, exp=POLY6_SERIAL),
}


@pytest.fixture(params=_SIZES.values(), ids=_SIZES.keys())
def params(request):
    return request.param


def test_back_to_back(params):
    run_pysim(ReductionUnit(params), lambda bench: back_to_back(bench, params, 3))


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.7), (0.7, 0.0), (0.4, 0.4)])
def test_stalls(params, idle, stall):
    run_pysim(ReductionUnit(params), lambda bench: random_run(bench, params, 6, idle=idle, stall=stall, seed=7))


@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_empty_patterns(params, pause):
    run_pysim(ReductionUnit(params), lambda bench: empty_patterns(bench, params, pause))


def test_faults():
    params = _SIZES["three beats"]
    run_pysim(ReductionUnit(params), lambda bench: faults(bench, params))


def test_reset_anywhere():
    params = _SIZES["three beats"]
    run_pysim(ReductionUnit(params), lambda bench: reset_anywhere(bench, params, [1, 4, 9, 16, 23, 31]))


@pytest.mark.parametrize("exp", [POLY6, POLY6_SERIAL], ids=lambda exp: exp.name)
def test_closed_form_is_the_recurrence_without_stalls(exp):
    """Over sizes that nobody builds: the depth of the queue is enough for every one of them."""
    for beats in (2, 3, 4, 5, 7, 8, 13, 32):
        for num_sources in (1, 2, 3, 4, 8):
            params = ReductionParams(head_dim=2 * beats, lanes=2, num_sources=num_sources, exp=exp)
            for operations in (1, 2, 9):
                found = predict(params, np.zeros((operations, num_sources), bool)).body_o
                assert found[-1] + 1 == cycles(params, operations), (beats, num_sources, operations)
                assert found[0] == latency_cycles(params)
            assert cycles(params, 0) == 0


def test_a_partial_of_128_elements_takes_eight_cycles():
    params = ReductionParams(head_dim=128, lanes=16, num_sources=4)
    assert interval_cycles(params) == 8
    assert cycles(params, 101) - cycles(params, 100) == 4 * 8
    assert latency_cycles(params) == 35
    # 3 + 10 + 1 cycles to a weight: two heads of 8 beats each are in flight.
    assert weight_queue_depth(params) == 2
    assert fill_cycles(params) == 8


def test_timing_diagram_of_the_docstring():
    params = ReductionParams(head_dim=4, lanes=2, num_sources=2)
    found = predict(params, np.zeros((1, 2), bool))
    assert [cycles.tolist() for cycles in found.head_i] == [[0], [1]]
    assert [cycles.tolist() for cycles in found.body_i] == [[3, 4], [16, 17]]
    assert found.head_o.tolist() == [17]
    assert found.body_o.tolist() == [19, 20]


def test_num_exp_keeps_the_interval():
    params = ReductionParams(head_dim=32, lanes=16, exp=POLY6_SERIAL)
    assert (params.beats, POLY6_SERIAL.interval_cycles, params.num_exp) == (2, 8, 4)
    assert interval_cycles(params) == 2


def test_many_empty_sources_cost_a_cycle_each():
    params = ReductionParams(head_dim=4, lanes=2, num_sources=8)
    empty = np.ones((20, 8), bool)
    empty[:, 3] = False
    assert set(np.diff(predict(params, empty).body_o[1::2]).tolist()) == {8}


def test_bad_arguments():
    with pytest.raises(TypeError, match="params must be a ReductionParams, not FinishParams"):
        ReductionUnit(FinishParams())
    with pytest.raises(ValueError, match="operations must be at least 0, not -1"):
        cycles(ReductionParams(), -1)
    with pytest.raises(ValueError, match=r"empty must be of shape \(operations, 4\), not \(3, 5\)"):
        predict(ReductionParams(), np.zeros((3, 5), bool))
    short = StreamTrace(np.ones(9, bool), np.ones(9, bool))
    with pytest.raises(ValueError, match="trace must reach a ready cycle at or after cycle 32, it ends at 9"):
        predict(ReductionParams(), np.zeros((1, 4), bool), head_o=StreamTrace(short.valid[:9], short.ready))
    with pytest.raises(ValueError, match="trace must hold more than 9 transfers"):
        predict(ReductionParams(num_sources=1), np.zeros((10, 1), bool), head_i=[short])
