"""The reduction unit under Verilator: bit for bit the golden model, cycle for cycle the formula and the recurrence.

Scenarios (:mod:`tests.helpers.reduction`): back to back without stalls; idle x back-pressure on every stream over
states of every kind; every pattern of empty sources; each stream alone far slower than the rest; corner maxima;
wrong ids and faults; reset at many cycles.
"""

from __future__ import annotations

import pytest

from golden.exp import POLY6, POLY6_SERIAL
from hw.params import ReductionParams
from hw.units.reduction import ReductionUnit
from tests.helpers.rtl import run_cocotb

_TESTS = 1 + 9 + 2 + 6 + 1 + 1 + 1


@pytest.mark.parametrize(
    ("head_dim", "num_sources", "exp"),
    [(64, 4, POLY6), (128, 3, POLY6), (32, 5, POLY6_SERIAL)],
    ids=["d64-n4", "d128-n3", "d32-n5-serial"],
)
def test_reduction(head_dim, num_sources, exp):
    params = ReductionParams(head_dim=head_dim, lanes=16, num_sources=num_sources, exp=exp)
    run_cocotb(
        ReductionUnit,
        params,
        module="tests.rtl.tb_reduction",
        expected=_TESTS,
        case={"head_dim": head_dim, "lanes": 16, "num_sources": num_sources, "exp": exp.name},
    )
