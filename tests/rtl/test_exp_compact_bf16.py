"""Verilog of the compact bf16 units under Verilator: all 65,536 codes."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.compact_bf16_units import COMPACT_BF16, COMPACT_BF16_SPECS
from tests.helpers.exp_side_by_side import run_every_code

LAYOUTS = (
    *COMPACT_BF16_SPECS,
    COMPACT_BF16.replace(name="stages", evaluation="pipelined"),
    COMPACT_BF16.replace(name="registers", evaluation="pipelined", registers=3),
)


@pytest.mark.parametrize("spec", LAYOUTS, ids=lambda spec: spec.name)
def test_every_code(spec):
    codes = np.arange(1 << 16, dtype=np.uint16)
    operands, results = run_every_code(LAYOUTS)[spec]
    assert operands.payloads == codes.tolist()
    assert np.array_equal(results.payloads, spec.evaluate_codes(codes))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}
    assert set(np.diff(operands.cycles).tolist()) == {spec.interval_cycles}
