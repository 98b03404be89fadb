"""The finish unit under Verilator: bit for bit the golden model, cycle for cycle formula and recurrence, error bound.

Scenarios (:mod:`tests.helpers.finish`), with bodies from one beat to the most: back to back without stalls; idle x
back-pressure on every stream over states of every kind; each stream alone far slower than the rest; corners as l and o;
accuracy against float64; reset at many cycles.
"""

from __future__ import annotations

import pytest

from hw.units.finish import FinishUnit
from tests.helpers.finish import params_of
from tests.helpers.rtl import run_cocotb

_TESTS = 1 + 9 + 3 + 1 + 1 + 1


_SIZES = {
    "fp16": {"head_dim": 256, "lanes": 16, "op_id_bits": 8, "output_format": "fp16"},
    "bf16": {"head_dim": 64, "lanes": 4, "op_id_bits": 8, "output_format": "bf16"},
}


@pytest.mark.parametrize("name", _SIZES)
def test_finish(name):
    size = _SIZES[name]
    run_cocotb(FinishUnit, params_of(size), module="tests.rtl.tb_finish", expected=_TESTS, case=size)
