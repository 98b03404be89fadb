# amaranth: UnusedElaboratable=no
"""Polynomials with every option, and every layout, in Amaranth's simulator: bits and cycles."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp import POLY6, POLY6_SERIAL
from golden.exp.polynomial_specs import FIXED_SPECS, POLYNOMIAL_SPECS
from hw.timing.exp import cycles, predict
from hw.timing.formulas import interval_formula, latency_formula
from hw.timing.trace import StreamTrace
from hw.units.exp import ExpUnit, datapath, serial_layout
from tests.helpers.exp_bench import chosen_codes, run_back_to_back, run_blocked, run_reset, run_stalled
from tests.helpers.pysim import run_pysim

SPECS = {spec.name: spec for spec in POLYNOMIAL_SPECS}
FIXED = {spec.name: spec for spec in FIXED_SPECS}

LAYOUTS = {
    "combinational": {"evaluation": "combinational"},
    "pipelined": {"evaluation": "pipelined"},
    "one register": {"evaluation": "pipelined", "registers": 1},
    "three registers": {"evaluation": "pipelined", "registers": 3},
    "serial": {"evaluation": "serial"},
}
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def simulate(spec, scenario, *arguments):
    async def run(bench):
        await scenario(bench, spec, *arguments)

    run_pysim(ExpUnit(spec), run)


@pytest.mark.parametrize("evaluation", ["combinational", "pipelined"])
@pytest.mark.parametrize("name", SPECS)
def test_every_default_spec(name, evaluation):
    spec = SPECS[name].replace(evaluation="serial" if SPECS[name].evaluation == "serial" else evaluation)
    simulate(spec, run_stalled, chosen_codes(spec, 300), 0.1, 0.1)


@pytest.mark.parametrize("evaluation", ["combinational", "pipelined"])
@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_up", "truncated"])
@pytest.mark.parametrize("name", FIXED)
def test_fixed_point(name, rounding, evaluation):
    spec = FIXED[name].replace(rounding=rounding, evaluation=evaluation)
    rng = np.random.default_rng(3)
    codes = [0, 1, 0xFFFF, 0x7FFF, 0x8000, 709, 710, 711, *rng.integers(0, 1 << 16, 100).tolist()]
    codes += rng.integers((1 << 16) - 12_000, 1 << 16, 150).tolist()
    simulate(spec, run_stalled, codes, 0.1, 0.1)


@pytest.mark.parametrize("products", ["truncated", "rounded"])
@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_up", "truncated"])
def test_rounding_on_one_multiplier(rounding, products):
    spec = POLY6_SERIAL.replace(coefficients=(65537, 45420, 15741, 3643, 627, 92, 9))
    spec = spec.replace(rounding=rounding, products=products)
    simulate(spec, run_stalled, chosen_codes(spec, 120), 0.0, 0.1)


@pytest.mark.parametrize("evaluation", ["combinational", "pipelined", "serial"])
@pytest.mark.parametrize("subnormals", ["rounded", "flushed"])
@pytest.mark.parametrize("domain", ["full", "nonpositive"])
def test_domain_and_subnormals(domain, subnormals, evaluation):
    spec = SPECS["poly3-f12"].replace(domain=domain, subnormals=subnormals, evaluation=evaluation)
    simulate(spec, run_stalled, chosen_codes(spec, 200), 0.0, 0.1)


@pytest.mark.parametrize("scheme", ["horner", "estrin"])
def test_centred_and_rounded(scheme):
    coefficients = (23171, 16061 - 8, 2788 * 2, 323 * 4, 21 * 8, 2 * 16, 5 * 32)
    spec = SPECS["poly6-f14"].replace(coefficients=coefficients, centred=True, products="rounded", scheme=scheme)
    simulate(spec, run_stalled, chosen_codes(spec, 150), 0.0, 0.1)


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.9)])
@layouts
def test_idles_and_back_pressure_of_every_layout(layout, idle, stall):
    spec = SPECS["poly3-f12"].replace(**LAYOUTS[layout])
    simulate(spec, run_stalled, chosen_codes(spec, 80), idle, stall)


@layouts
def test_full_speed_of_every_layout(layout):
    spec = SPECS["poly3-f12"].replace(**LAYOUTS[layout])
    simulate(spec, run_back_to_back, chosen_codes(spec, 100))


@layouts
def test_blocked_output_of_every_layout(layout):
    spec = SPECS["poly3-f12"].replace(**LAYOUTS[layout])
    simulate(spec, run_blocked, chosen_codes(spec, 80)[:20])


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "combinational"])
def test_reset_of_every_layout(layout):
    spec = SPECS["poly3-f12"].replace(**LAYOUTS[layout])
    simulate(spec, run_reset, chosen_codes(spec, 80)[:20])


@layouts
def test_closed_form_is_the_recurrence_without_stalls(layout):
    spec = SPECS["poly3-f12"].replace(**LAYOUTS[layout])
    predicted = predict(spec, 20)
    assert predicted.result.tolist() == [cycles(spec, count) - 1 for count in range(1, 21)]
    assert set((predicted.result - predicted.operand).tolist()) == {spec.latency_cycles}


def test_prediction_of_a_combinational_unit_by_hand():
    spec = POLY6.replace(evaluation="combinational")
    valid = np.array([False, True, True, True, True, False, True])
    ready = np.array([True, False, False, True, True, True, True])
    offered = StreamTrace(valid, ready)
    found = predict(spec, 3, operand=offered, result=StreamTrace(valid, ready))
    assert [column.tolist() for column in found] == [[3, 4, 6], [3, 4, 6], [1, 4, 6]]


@pytest.mark.parametrize(
    ("changes", "latency", "interval"),
    [
        ({"evaluation": "combinational"}, "0", "1"),
        ({}, "degree + 4", "1"),
        ({"scheme": "estrin"}, "steps", "1"),
        ({"registers": 2}, "registers", "1"),
        ({"evaluation": "serial"}, "degree + 4", "degree + 2"),
    ],
)
def test_formulas(changes, latency, interval):
    spec = SPECS["poly6-f14"].replace(evaluation="pipelined").replace(**changes)
    for found, text, cycles_wanted in (
        (latency_formula(spec), latency, spec.latency_cycles),
        (interval_formula(spec), interval, spec.interval_cycles),
    ):
        assert found.formula == text
        assert eval(found.formula, {**found.values, "__builtins__": {}}) == found.cycles == cycles_wanted
        assert set(found.variables) == set(found.values)


@pytest.mark.parametrize("name", [*SPECS, *FIXED])
def test_as_many_steps_as_the_spec_says(name):
    spec = SPECS.get(name) or FIXED[name]
    assert len(datapath(spec)) == spec.steps


def test_a_family_without_a_datapath_is_refused():
    with pytest.raises(TypeError, match="spec must be of a family with a datapath, not 3"):
        datapath(3)
    with pytest.raises(TypeError, match="spec must be of a family with a serial layout, not 3"):
        serial_layout(3, None, None, None)
