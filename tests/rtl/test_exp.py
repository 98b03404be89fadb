"""The exponential unit's Verilog under Verilator: cocotb scenarios, and all 65,536 codes."""

from __future__ import annotations

import numpy as np
import pytest

from hw.timing.exp import cycles
from hw.units.exp import ExpUnit
from tests.helpers.exp_bench import SPECS
from tests.helpers.exp_oracle import exact_exp, rounded_exp
from tests.helpers.exp_side_by_side import run_every_code
from tests.helpers.rtl import run_cocotb

both = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


@both
def test_cocotb(spec):
    run_cocotb(ExpUnit, spec, module="tests.rtl.tb_exp", expected=12, case=[spec.name, 500])


@both
def test_every_code(spec):
    codes = np.arange(1 << spec.fmt.bits, dtype=np.uint16)
    operands, results = run_every_code(tuple(SPECS.values()))[spec]
    assert operands.payloads == codes.tolist()
    found = np.array(results.payloads, dtype=np.uint16)

    assert np.array_equal(found, spec.evaluate_codes(codes))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}
    assert set(np.diff(operands.cycles).tolist()) == {spec.interval_cycles}
    assert results.cycles[-1] - operands.cycles[0] + 1 == cycles(spec, codes.size)

    # The correctly rounded oracle: every code is right or next to right, and the figures hold.
    oracle = rounded_exp(spec.fmt)
    assert np.abs(found.astype(int) - oracle.astype(int)).max() == 1
    exact = exact_exp(spec.fmt)
    normal = (exact >= spec.fmt.min_normal) & (oracle < spec.fmt.inf_code)
    relative = np.abs(spec.fmt.from_codes(found[normal]).astype(np.float64) / exact[normal] - 1)
    assert relative.max() <= 0.000502
    assert np.mean(found[normal] == oracle[normal]) >= 0.993
    assert found[0] == found[spec.fmt.sign_mask] == spec.fmt.one_code
