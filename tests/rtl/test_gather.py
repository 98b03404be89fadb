"""The gather unit under Verilator: the bytes of the ids, cycle for cycle formula and recurrence.

Scenarios (:mod:`tests.helpers.gather`), ids adjacent, scattered, unordered, one and none: back to back without stalls;
idle x back-pressure on every stream; each stream alone far slower than the rest; addresses that don't fit; reset.
"""

from __future__ import annotations

from dataclasses import asdict

from hw.gather_params import GatherParams
from hw.units.gather import Gather
from tests.helpers.rtl import run_cocotb

_TESTS = 1 + 9 + 3 + 1 + 1


def test_gather():
    params = GatherParams()
    run_cocotb(Gather, params, module="tests.rtl.tb_gather", expected=_TESTS, case=asdict(params))
