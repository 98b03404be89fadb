"""The compact degree-6 units' Verilog under Verilator: all 65,536 codes, and the cycle contract of the clocked ones."""

from __future__ import annotations

import numpy as np
import pytest

from hw.timing.exp import cycles, predict
from hw.units.exp import ExpUnit
from tests.helpers.exp_compact import CLOCKED, SERIAL, UNITS
from tests.helpers.exp_side_by_side import run_every_code
from tests.helpers.rtl import run_cocotb

CODES = np.arange(1 << 16, dtype=np.uint16)
SPECS = (*UNITS.values(), CLOCKED["serial-nonpositive"])


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_code(spec):
    operands, results = run_every_code(SPECS)[spec]
    assert operands.payloads == CODES.tolist()
    assert np.array_equal(np.array(results.payloads, dtype=np.uint16), spec.evaluate_codes(CODES))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}
    assert set(np.diff(operands.cycles).tolist()) == {spec.interval_cycles}
    assert results.cycles[-1] - operands.cycles[0] + 1 == cycles(spec, CODES.size)


@pytest.mark.parametrize("spec", CLOCKED.values(), ids=CLOCKED)
def test_cocotb(spec):
    run_cocotb(ExpUnit, spec, module="tests.rtl.tb_exp", expected=12, case=[spec.name, 200])


def test_serial_takes_an_operand_as_its_result_leaves():
    assert (SERIAL.latency_cycles, SERIAL.interval_cycles) == (8, 8)
    predicted = predict(SERIAL, 3)
    assert predicted.operand.tolist() == [0, 8, 16]
    assert predicted.result.tolist() == predicted.result_presented.tolist() == [8, 16, 24]
