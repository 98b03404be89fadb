"""The shift-and-add exponential: all codes under Verilator, and its pipeline under stalls in Amaranth's simulator."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.shift_add import SHIFT_ADD_SPECS
from hw.units.exp import ExpUnit, datapath
from tests.helpers.exp_bench import chosen_codes, run_stalled
from tests.helpers.exp_side_by_side import run_every_code
from tests.helpers.pysim import run_pysim

CODES = np.arange(1 << 16, dtype=np.uint16)
SPECS = {spec.name: spec for spec in SHIFT_ADD_SPECS}
BOTH = SPECS["shift-add11"].replace(evaluation="combinational"), SPECS["shift-add14"].replace(evaluation="pipelined")


@pytest.mark.parametrize("spec", BOTH, ids=lambda spec: spec.name)
def test_every_code(spec):
    operands, results = run_every_code(BOTH)[spec]
    assert operands.payloads == CODES.tolist()
    assert np.array_equal(np.array(results.payloads, np.uint16), spec.evaluate_codes(CODES))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_one_step_a_stage(spec):
    assert len(datapath(spec)) == spec.steps == spec.iterations + 4


def test_idles_and_back_pressure():
    spec = SPECS["shift-add11"].replace(evaluation="pipelined")

    async def run(bench):
        await run_stalled(bench, spec, chosen_codes(spec, 100), 0.3, 0.3)

    run_pysim(ExpUnit(spec), run)
