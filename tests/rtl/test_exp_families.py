"""Verilog of the piecewise, table, Schraudolph and direct exponentials under Verilator: all 65,536 codes."""

from __future__ import annotations

import numpy as np
import pytest

from golden.exp.direct import DIRECT_SPECS
from golden.exp.schraudolph import SCHRAUDOLPH_SPECS
from golden.exp.segment_units import SEGMENT_SPECS
from golden.exp.table_units import TABLE_SPECS
from hw.cosim import run_streams
from hw.units.exp import ExpUnit
from hw.verilog import convert
from tests.helpers.exp_families import CODES

SPECS = {spec.name: spec for spec in (*SEGMENT_SPECS, *TABLE_SPECS, *SCHRAUDOLPH_SPECS, *DIRECT_SPECS)}


@pytest.mark.parametrize(
    ("name", "evaluation"),
    [
        ("linear-32-14", "combinational"),
        ("quadratic-8-16", "pipelined"),
        ("linear-8-10-bf16", "pipelined"),
        ("table-1024", "combinational"),
        ("schraudolph-offset", "combinational"),
        ("schraudolph-corrected-bf16", "pipelined"),
        ("direct-6-8", "combinational"),
        ("taylor-6-2", "pipelined"),
    ],
)
def test_every_code(name, evaluation):
    spec = SPECS[name].replace(evaluation=evaluation)
    run = run_streams(convert(ExpUnit(spec), name="dut"), "dut", {"i": CODES.astype(np.uint16)}, {"o": CODES.size})
    operands, results = run.streams["i"], run.streams["o"]
    assert operands.payloads == CODES.tolist()
    assert np.array_equal(np.array(results.payloads, dtype=np.uint16), spec.evaluate_codes(CODES))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}
    assert set(np.diff(operands.cycles).tolist()) == {1}
