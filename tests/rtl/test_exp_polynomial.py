"""Verilog of representative polynomials under Verilator: all 65,536 codes, bits and cycles."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.polynomial_specs import FIXED_SPECS, POLYNOMIAL_SPECS
from tests.helpers.exp_side_by_side import run_every_code

BY_NAME = {spec.name: spec for spec in (*POLYNOMIAL_SPECS, *FIXED_SPECS)}
CHANGES = {
    "poly6-f14-tapered": {},
    "poly6-f14-centred": {},
    "poly6-f14-estrin": {"evaluation": "pipelined"},
    "poly6-f14-softmax": {"evaluation": "pipelined", "registers": 2},
    "poly6-f14-serial": {},
    "poly3-f14-cut": {},
    "poly4-f18-q0.16": {},
}
SPECS = tuple(BY_NAME[name].replace(**changes) for name, changes in CHANGES.items())


@pytest.mark.parametrize("spec", SPECS, ids=CHANGES)
def test_every_code(spec):
    codes = np.arange(1 << 16, dtype=np.uint16)
    operands, results = run_every_code(SPECS)[spec]
    assert operands.payloads == codes.tolist()
    assert np.array_equal(np.array(results.payloads, dtype=np.uint16), spec.evaluate_codes(codes))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}
    assert set(np.diff(operands.cycles).tolist()) == {spec.interval_cycles}
