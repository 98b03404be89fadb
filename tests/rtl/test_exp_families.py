"""Verilog of the piecewise, table, Schraudolph and direct exponentials under Verilator: all 65,536 codes."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.direct import DIRECT_SPECS
from golden.exp.schraudolph import SCHRAUDOLPH_SPECS
from golden.exp.segment_units import SEGMENT_SPECS
from golden.exp.table_units import TABLE_SPECS
from tests.helpers.exp_families import CODES
from tests.helpers.exp_side_by_side import run_every_code

BY_NAME = {spec.name: spec for spec in (*SEGMENT_SPECS, *TABLE_SPECS, *SCHRAUDOLPH_SPECS, *DIRECT_SPECS)}
EVALUATIONS = {
    "linear-32-14": "combinational",
    "quadratic-8-16": "pipelined",
    "linear-8-10-bf16": "pipelined",
    "table-1024": "combinational",
    "schraudolph-offset": "combinational",
    "schraudolph-corrected-bf16": "pipelined",
    "direct-6-8": "combinational",
    "taylor-6-2": "pipelined",
}
SPECS = tuple(BY_NAME[name].replace(evaluation=evaluation) for name, evaluation in EVALUATIONS.items())


@pytest.mark.parametrize("spec", SPECS, ids=EVALUATIONS)
def test_every_code(spec):
    operands, results = run_every_code(SPECS)[spec]
    assert operands.payloads == CODES.tolist()
    assert np.array_equal(np.array(results.payloads, dtype=np.uint16), spec.evaluate_codes(CODES))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}
    assert set(np.diff(operands.cycles).tolist()) == {1}
