"""The reduction unit under Verilator: bit for bit the golden model, cycle for cycle the formula and the recurrence.

Scenarios (:mod:`tests.helpers.reduction`): back to back without stalls; head dimensions that change from operation to
operation; idle x back-pressure on every stream over states of every kind and head dimension; every pattern of empty
sources; each stream alone far slower than the rest; corner maxima; wrong ids and faults; bodies of unlike lengths;
reset at many cycles. The largest unit is built with its own gates for sums and products; the others compute those
natively, which ``tests/rtl/test_native_arithmetic.py`` holds equal.
"""

from __future__ import annotations

import pytest

from golden.exp import POLY6, POLY6_SERIAL
from hw.native_arithmetic import NATIVE
from hw.params import ReductionParams
from hw.units.reduction import ReductionUnit
from tests.helpers.rtl import run_cocotb

_TESTS = 1 + 1 + 9 + 2 + 6 + 1 + 1 + 1 + 1


@pytest.mark.parametrize(
    ("head_dim", "num_sources", "exp", "platform"),
    [(256, 4, POLY6, None), (80, 3, POLY6, NATIVE), (64, 5, POLY6_SERIAL, NATIVE)],
    ids=["d256-n4", "d80-n3", "d64-n5-serial"],
)
def test_reduction(head_dim, num_sources, exp, platform):
    params = ReductionParams(head_dim=head_dim, lanes=16, num_sources=num_sources, exp=exp)
    run_cocotb(
        ReductionUnit,
        params,
        module="tests.rtl.tb_reduction",
        expected=_TESTS,
        case={"head_dim": head_dim, "lanes": 16, "num_sources": num_sources, "exp": exp.name},
        platform=platform,
    )
