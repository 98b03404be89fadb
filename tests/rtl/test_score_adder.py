"""The score adder under Verilator: bit for bit NumPy's float32 tree, every sum exactly the latency after its parts.

Scenarios (:mod:`tests.helpers.score_adder`): random parts with and without gaps; corners; inputs that disagree; reset.
"""

from __future__ import annotations

import pytest

from hw.units.score_adder import ScoreAdder
from tests.helpers.rtl import run_cocotb

_TESTS = 2 + 1 + 1 + 1


@pytest.mark.parametrize("slices", [2, 4, 16])
def test_score_adder(slices):
    run_cocotb(ScoreAdder, slices, module="tests.rtl.tb_score_adder", expected=_TESTS, case={"slices": slices})
