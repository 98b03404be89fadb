"""Packer and unpacker under Verilator: bytes of the golden model, cycles of the recurrences.

Scenarios (:mod:`tests.helpers.flits`): frames of any length in runs, idle inputs and refused outputs; reset.
"""

from __future__ import annotations

import pytest

from hw.dma_params import FlitParams
from hw.interface.packer import Packer
from hw.interface.unpacker import Unpacker
from tests.helpers.rtl import run_cocotb

UNITS = {"packer": Packer, "unpacker": Unpacker}


@pytest.mark.parametrize("name", UNITS)
def test_flits(name):
    case = {"unit": name, "flit_bytes": 256, "beat_bytes": 32}
    run_cocotb(UNITS[name], FlitParams(), module="tests.rtl.tb_flits", expected=5, case=case)
