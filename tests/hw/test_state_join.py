# amaranth: UnusedElaboratable=no
"""The state join at small sizes in Amaranth's simulator: the bit and the cycle contract, and bad arguments."""

from __future__ import annotations

import numpy as np
import pytest

from hw.params import ProcessingParams, ReductionParams
from hw.timing.state_join import cycles, predict
from hw.timing.trace import StreamTrace
from hw.units.state_join import StateJoin
from tests.helpers.partials import mixed_beats
from tests.helpers.pysim import run_pysim
from tests.helpers.state_join import (
    back_to_back,
    faults,
    missing_slices,
    one_slow_stream,
    random_run,
    reset_anywhere,
    unequal_slices,
)

_SIZES = {
    "two slices": ProcessingParams(head_dim=4, lanes=2, slices=2, op_id_bits=1),
    "four slices": ProcessingParams(head_dim=6, lanes=2, slices=4),
}


@pytest.fixture(params=_SIZES.values(), ids=_SIZES.keys())
def params(request):
    return request.param


def test_back_to_back(params):
    run_pysim(StateJoin(params), lambda bench: back_to_back(bench, params, 12))


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.7), (0.7, 0.0), (0.4, 0.4)])
def test_stalls(params, idle, stall):
    run_pysim(StateJoin(params), lambda bench: random_run(bench, params, 12, idle=idle, stall=stall, seed=7))


@pytest.mark.parametrize("slow", ["head_i__1", "body_i__0", "head_o", "body_o"])
def test_one_slow_stream(slow):
    params = _SIZES["two slices"]
    run_pysim(StateJoin(params), lambda bench: one_slow_stream(bench, params, slow))


def test_unequal_slices(params):
    run_pysim(StateJoin(params), lambda bench: unequal_slices(bench, params))


def test_faults(params):
    run_pysim(StateJoin(params), lambda bench: faults(bench, params))


def test_missing_slices(params):
    run_pysim(StateJoin(params), lambda bench: missing_slices(bench, params))


def test_reset_anywhere():
    params = _SIZES["two slices"]
    run_pysim(StateJoin(params), lambda bench: reset_anywhere(bench, params, [1, 2, 3, 4, 5, 7, 9, 12, 17]))


def test_timing_diagram_of_the_docstring():
    found = predict(_SIZES["two slices"], np.full((2, 2), 2))
    assert found.head_i.tolist() == [0, 1]
    assert [cycles.tolist() for cycles in found.body_i] == [[1, 2, 5, 6], [3, 4, 7, 8]]
    assert found.head_o.tolist() == [1, 2]
    assert found.body_o.tolist() == [2, 3, 4, 5, 6, 7, 8, 9]


def test_closed_form_is_the_recurrence_without_stalls():
    rng = np.random.default_rng(1)
    for slices in (2, 4, 16):
        params = ProcessingParams(head_dim=16, lanes=2, slices=slices)
        for beats in ([1], [8] * 9, [1, 8, 1, 1], mixed_beats(params, 20, rng, fewest=1)):
            found = predict(params, np.repeat(beats, slices).reshape(-1, slices)).body_o
            assert found[-1] + 1 == cycles(params, [slices * count for count in beats])
        assert cycles(params, []) == 0
    # Four slices of 2 beats: 8 cycles a state of 128 elements.
    params = ProcessingParams(head_dim=32, lanes=16, slices=4)
    assert cycles(params, [8] * 101) - cycles(params, [8] * 100) == 8


def test_empty_operations_cost_a_cycle_each_and_wait_for_no_body():
    params = _SIZES["two slices"]
    beats = np.array([[2, 2], [2, 2]] + [[0, 0]] * 5 + [[2, 2]])
    # No body of the first is ever offered until cycle 100.
    late = StreamTrace(np.arange(130) >= 100, np.ones(130, bool))
    found = predict(params, beats, body_i=[late, late])
    assert found.head_i.tolist() == [0, 1, 2, 3, 4, 5, 6, 104]


def test_bad_arguments():
    with pytest.raises(TypeError, match="params must be a ProcessingParams, not ReductionParams"):
        StateJoin(ReductionParams())
    one = ProcessingParams()
    for call in (StateJoin, lambda params: cycles(params, []), lambda params: predict(params, np.ones((1, 1), int))):
        with pytest.raises(ValueError, match="slices must be at least 2, not 1"):
            call(one)
    params = _SIZES["two slices"]
    for refused in (1, 5):
        with pytest.raises(ValueError, match=f"beats must be from 2 to 4, not {refused}"):
            cycles(params, [2, refused])
    with pytest.raises(ValueError, match=r"beats must be of shape \(operations, 2\), not \(2, 3\)"):
        predict(params, np.ones((2, 3), int))
    short = StreamTrace(np.ones(3, bool), np.ones(3, bool))
    with pytest.raises(ValueError, match="trace must hold more than 3 transfers"):
        predict(params, np.full((2, 2), 2), body_i=[short, short])
