# amaranth: UnusedElaboratable=no
"""hw.units.exp in Amaranth's simulator, and hw.timing.exp."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.hdl import Const, Signal, signed

from golden.exp import POLY6, POLY6_SERIAL
from hw.timing.exp import cycles, predict
from hw.timing.trace import StreamTrace
from hw.units.exp import ExpUnit
from hw.units.exp.datapath import assign
from tests.helpers.exp_bench import (
    SPECS,
    VARIANTS,
    chosen_codes,
    run_back_to_back,
    run_blocked,
    run_reset,
    run_stalled,
)
from tests.helpers.pysim import run_pysim

both = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


def simulate(spec, scenario, *arguments):
    async def run(bench):
        await scenario(bench, spec, *arguments)

    run_pysim(ExpUnit(spec), run)


@both
def test_chosen_codes_back_to_back(spec):
    simulate(spec, run_back_to_back, chosen_codes(spec, 250))


@both
def test_one_operand(spec):
    simulate(spec, run_back_to_back, [spec.fmt.one_code])


@pytest.mark.parametrize("evaluation", ["pipelined", "serial"])
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda spec: spec.name)
def test_any_spec(variant, evaluation):
    spec = variant.replace(evaluation=evaluation)
    simulate(spec, run_stalled, chosen_codes(spec, 80), 0.1, 0.1)


@pytest.mark.parametrize("stall", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("idle", [0.0, 0.5])
@both
def test_idles_and_back_pressure(spec, idle, stall):
    simulate(spec, run_stalled, chosen_codes(spec, 80), idle, stall)


@both
def test_blocked_output(spec):
    simulate(spec, run_blocked, chosen_codes(spec, 80)[:20])


@both
def test_reset_at_any_age(spec):
    simulate(spec, run_reset, chosen_codes(spec, 80)[:20])


@pytest.mark.parametrize("spec", [None, "poly6", type(POLY6)])
def test_constructor_refuses_anything_but_a_spec(spec):
    with pytest.raises(TypeError, match=f"spec must be an ExpSpec, not {spec!r}"):
        ExpUnit(spec)


@pytest.mark.parametrize(
    ("target", "value", "text"),
    [
        (Signal(8, name="sum"), Const(0, 9), r"sum must hold unsigned\(9\), not unsigned\(8\)"),
        (Signal(8, name="sum"), Const(0, signed(4)), r"sum must hold signed\(4\), not unsigned\(8\)"),
        (Signal(signed(8), name="sum"), Const(0, 8), r"sum must hold unsigned\(8\), not signed\(8\)"),
    ],
)
def test_assign_refuses_to_cut(target, value, text):
    with pytest.raises(ValueError, match=text):
        assign(target, value)


@pytest.mark.parametrize(
    ("target", "value"),
    [
        (Signal(9), Const(0, 9)),
        (Signal(signed(9)), Const(0, 8)),
        (Signal(signed(9)), Const(0, signed(9))),
    ],
)
def test_assign_takes_what_fits(target, value):
    statement = assign(target, value)
    assert statement.lhs is target
    assert statement.rhs is value


@pytest.mark.parametrize(
    ("spec", "count", "expected"),
    [
        (POLY6, 0, 0),
        (POLY6, 1, 11),
        (POLY6, 100, 110),
        (POLY6_SERIAL, 0, 0),
        (POLY6_SERIAL, 1, 11),
        (POLY6_SERIAL, 3, 27),
    ],
)
def test_closed_form(spec, count, expected):
    assert cycles(spec, count) == expected


def test_closed_form_of_a_negative_count():
    with pytest.raises(ValueError, match="count must be at least 0, not -1"):
        cycles(POLY6, -1)


@both
def test_closed_form_is_the_recurrence_without_stalls(spec):
    predicted = predict(spec, 50)
    assert predicted.result.tolist() == [cycles(spec, count) - 1 for count in range(1, 51)]
    assert predicted.result_presented.tolist() == predicted.result.tolist()
    assert np.diff(predicted.operand).tolist() == [spec.interval_cycles] * 49


def offers(cycles_offered):
    """Return the trace of a sender whose items are offered, and taken, in these cycles."""
    valid = np.zeros(max(cycles_offered) + 1, dtype=np.bool_)
    valid[cycles_offered] = True
    return StreamTrace(valid, valid)


def readiness(ready):
    ready = np.array(ready, dtype=np.bool_)
    return StreamTrace(np.zeros_like(ready), ready)


def test_prediction_by_hand():
    operand, result = offers([0, 1, 11]), readiness([False] * 13 + [True] * 20)
    # Pipelined: the first result waits in cycles 10 to 12, and the operand of cycle 11 with it.
    pipelined = predict(POLY6, 3, operand=operand, result=result)
    assert [column.tolist() for column in pipelined] == [[0, 1, 13], [13, 14, 23], [10, 14, 23]]
    # Serial: the second sum is ready in 16, long after the wait.
    serial = predict(POLY6_SERIAL, 3, operand=operand, result=result)
    assert [column.tolist() for column in serial] == [[0, 8, 16], [13, 18, 26], [10, 18, 26]]


@both
def test_prediction_of_nothing(spec):
    assert [column.tolist() for column in predict(spec, 0)] == [[], [], []]


@both
def test_prediction_of_bad_input(spec):
    with pytest.raises(ValueError, match="count must be at least 0, not -1"):
        predict(spec, -1)
    with pytest.raises(ValueError, match="trace must hold more than 2 transfers"):
        predict(spec, 3, operand=offers([0, 5]))
    with pytest.raises(ValueError, match="trace must reach a ready cycle at or after cycle 10, it ends at 10"):
        predict(spec, 1, result=readiness([True] * 10))
