"""The state join under Verilator: bit for bit the whole states, cycle for cycle the formula and the recurrence.

Scenarios (:mod:`tests.helpers.state_join`): back to back without stalls; idle x back-pressure on every stream over
states of every kind and size; each kind of stream alone far slower than the rest; slices of unlike lengths; wrong
fields and faults; sources whose state is missing; reset at many cycles.
"""

from __future__ import annotations

import pytest

from hw.params import ProcessingParams
from hw.units.state_join import StateJoin
from tests.helpers.rtl import run_cocotb

_TESTS = 1 + 9 + 6 + 1 + 1 + 1 + 1


@pytest.mark.parametrize(("head_dim", "slices"), [(64, 4), (32, 16)], ids=["d256-n4", "d512-n16"])
def test_state_join(head_dim, slices):
    size = {"head_dim": head_dim, "lanes": 16, "slices": slices}
    run_cocotb(StateJoin, ProcessingParams(**size), module="tests.rtl.tb_state_join", expected=_TESTS, case=size)
