"""Verilog of representative polynomials under Verilator: all 65,536 codes, bits and cycles."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.polynomial_specs import FIXED_SPECS, POLYNOMIAL_SPECS
from hw.cosim import run_streams
from hw.units.exp import ExpUnit
from hw.verilog import convert

SPECS = {spec.name: spec for spec in (*POLYNOMIAL_SPECS, *FIXED_SPECS)}
CHOSEN = {
    "poly6-f14-tapered": {},
    "poly6-f14-centred": {},
    "poly6-f14-estrin": {"evaluation": "pipelined"},
    "poly6-f14-softmax": {"evaluation": "pipelined", "registers": 2},
    "poly6-f14-serial": {},
    "poly3-f14-cut": {},
    "poly4-f18-q0.16": {},
}


@pytest.mark.parametrize("name", CHOSEN)
def test_every_code(name):
    spec = SPECS[name].replace(**CHOSEN[name])
    codes = np.arange(1 << 16, dtype=np.uint16)
    run = run_streams(convert(ExpUnit(spec), name="dut"), "dut", {"i": codes}, {"o": codes.size})
    operands, results = run.streams["i"], run.streams["o"]
    assert operands.payloads == codes.tolist()
    assert np.array_equal(np.array(results.payloads, dtype=np.uint16), spec.evaluate_codes(codes))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}
    assert set(np.diff(operands.cycles).tolist()) == {spec.interval_cycles}
