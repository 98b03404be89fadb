"""The compact units' Verilog under Verilator: all 65,536 codes, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.compact_units import COMPACT_SPECS
from tests.helpers.exp_side_by_side import run_every_code

CODES = np.arange(1 << 16, dtype=np.uint16)
SPECS = {
    **COMPACT_SPECS,
    "registers": COMPACT_SPECS["compact16-95"].replace(name="registers", evaluation="pipelined", registers=3),
}


@pytest.mark.parametrize("name", SPECS)
def test_every_code(name):
    spec = SPECS[name]
    operands, results = run_every_code(tuple(SPECS.values()))[spec]
    assert operands.payloads == CODES.tolist()
    assert np.array_equal(np.array(results.payloads, np.uint16), spec.evaluate_codes(CODES))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}
