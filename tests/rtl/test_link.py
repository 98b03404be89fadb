"""Both ends of a link under Verilator: flits arrive once and in order, with bits flipped and beats lost either way.

Scenarios (:mod:`tests.helpers.link`): no faults, and then every cycle as stated; faults, idle inputs, refused outputs;
reset amid faults.
"""

from __future__ import annotations

from tests.helpers.link import LinkEnds
from tests.helpers.rtl import run_cocotb
from tests.rtl.tb_link import PARAMS


def test_link():
    run_cocotb(LinkEnds, PARAMS, module="tests.rtl.tb_link", expected=7)
