# amaranth: UnusedElaboratable=no
"""The reduction unit at small sizes, one of them in Amaranth's simulator: bits and cycles, and bad arguments."""

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
)
from hw.timing.reduction_recurrence import weight_queue_depth
from hw.timing.trace import StreamTrace
from hw.units.reduction import ReductionUnit
from tests.helpers.native import run_native
from tests.helpers.partials import mixed_beats
from tests.helpers.pysim import run_pysim
from tests.helpers.reduction import (
    back_to_back,
    empty_patterns,
    faults,
    head_dims,
    random_run,
    reset_anywhere,
    unequal_bodies,
)

_SIZES = {
    "one source": ReductionParams(head_dim=4, lanes=2, num_sources=1, op_id_bits=1),
    "three beats": ReductionParams(head_dim=6, lanes=2, num_sources=2, op_id_bits=4),
    "hidden": ReductionParams(head_dim=26, lanes=2, num_sources=3),
    "serial": ReductionParams(head_dim=4, lanes=2, num_sources=5, exp=POLY6_SERIAL),
}


@pytest.fixture(params=_SIZES.values(), ids=_SIZES.keys())
def params(request):
    return request.param


def _simulate(params, scenario):
    if params is _SIZES["three beats"]:
        run_pysim(ReductionUnit(params), scenario)
    else:
        run_native(ReductionUnit, params, scenario)


def test_back_to_back(params):
    _simulate(params, lambda bench: back_to_back(bench, params, 3))


def test_head_dims(params):
    beats = [2, params.beats, 2, 2, params.beats, params.beats, 2]
    _simulate(params, lambda bench: head_dims(bench, params, beats))


@pytest.mark.parametrize("size", ["three beats", "hidden", "serial"])
def test_unequal_bodies(size):
    params = _SIZES[size]
    _simulate(params, lambda bench: unequal_bodies(bench, params))


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.7), (0.7, 0.0), (0.4, 0.4)])
def test_stalls(params, idle, stall):
    _simulate(params, lambda bench: random_run(bench, params, 6, idle=idle, stall=stall, seed=7))


@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_empty_patterns(params, pause):
    _simulate(params, lambda bench: empty_patterns(bench, params, pause))


def test_faults():
    params = _SIZES["three beats"]
    _simulate(params, lambda bench: faults(bench, params))


def test_reset_anywhere():
    params = _SIZES["three beats"]
    _simulate(params, lambda bench: reset_anywhere(bench, params, [1, 4, 9, 16, 23, 31]))


@pytest.mark.parametrize("exp", [POLY6, POLY6_SERIAL], ids=lambda exp: exp.name)
def test_closed_form_is_the_recurrence_without_stalls(exp):
    """Over sizes that nobody builds, one and mixed: the depth of the queue is enough for every one of them."""
    rng = np.random.default_rng(3)
    for most in (2, 3, 4, 5, 7, 8, 13, 32):
        for num_sources in (1, 2, 3, 4, 8):
            params = ReductionParams(head_dim=2 * most, lanes=2, num_sources=num_sources, exp=exp)
            for beats in ([most], [2], [2, most], [most] * 9, mixed_beats(params, 20, rng)):
                found = predict(params, np.zeros((len(beats), num_sources), bool), beats).body_o
                assert found[-1] + 1 == cycles(params, beats), (most, num_sources, beats)
                assert found[0] == latency_cycles(params, beats[0])
                if num_sources == 1 or params.exp.interval_cycles <= params.num_exp * min(beats):
                    fill = fill_cycles(params, beats[0])
                    assert found[-1] + 1 == fill + num_sources * sum(beats) + 3, (most, num_sources, beats)
            assert cycles(params, []) == 0


def test_a_beat_a_cycle_at_every_head_dim():
    """A unit for 256 elements and 16 lanes merges a partial of 32, 80, 128 or 256 in 2, 5, 8 or 16 cycles."""
    params = ReductionParams(head_dim=256, lanes=16, num_sources=4)
    for head_dim, expected in ((32, 2), (80, 5), (128, 8), (256, 16)):
        beats = head_dim // 16
        assert interval_cycles(params, beats) == expected
        assert cycles(params, [beats] * 101) - cycles(params, [beats] * 100) == 4 * expected
    # 3 + 10 + 1 cycles to a weight: eight heads of 2 beats each are in flight.
    assert weight_queue_depth(params) == 8
    # The first operation waits for its first exponential: 14 + 2 cycles, less the 2 beats before.
    assert fill_cycles(params, 2) == 14
    assert cycles(params, [2, 5, 8, 16]) == 14 + 4 * 31 + 3
    assert latency_cycles(params, 8) == 35
    assert fill_cycles(params, 8) == 8


@pytest.mark.parametrize(("most", "num_sources", "beats", "expected"), [(8, 4, 2, 24), (3, 4, 2, 8), (5, 8, 3, 28)])
def test_slow_exponentials_hold_short_bodies_up(most, num_sources, beats, expected):
    """Serial exponentials, one in 8 cycles each, made for bodies of ``most`` beats: 3 or 7 of them an operation."""
    params = ReductionParams(head_dim=2 * most, lanes=2, num_sources=num_sources, exp=POLY6_SERIAL)
    assert expected == max(num_sources * beats, (num_sources - 1) * 8 / -(-8 // most))
    assert cycles(params, [beats] * 700) - cycles(params, [beats] * 400) == 300 * expected


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
    for refused in (1, 9):
        for call in (interval_cycles, fill_cycles, latency_cycles):
            with pytest.raises(ValueError, match=f"beats must be from 2 to 8, not {refused}"):
                call(ReductionParams(), refused)
        with pytest.raises(ValueError, match=f"beats must be from 2 to 8, not {refused}"):
            cycles(ReductionParams(), [2, refused])
        with pytest.raises(ValueError, match=f"beats must be from 2 to 8, not {refused}"):
            predict(ReductionParams(), np.zeros((1, 4), bool), [refused])
    with pytest.raises(ValueError, match="beats must have an entry for each of 3 operations, not 2"):
        predict(ReductionParams(), np.zeros((3, 4), bool), [2, 2])
    with pytest.raises(ValueError, match=r"empty must be of shape \(operations, 4\), not \(3, 5\)"):
        predict(ReductionParams(), np.zeros((3, 5), bool))
    short = StreamTrace(np.ones(9, bool), np.ones(9, bool))
    with pytest.raises(ValueError, match="trace must reach a ready cycle at or after cycle 26, it ends at 9"):
        predict(ReductionParams(), np.zeros((1, 4), bool), head_o=StreamTrace(short.valid[:9], short.ready))
    with pytest.raises(ValueError, match="trace must hold more than 9 transfers"):
        predict(ReductionParams(num_sources=1), np.zeros((10, 1), bool), head_i=[short])
