"""Reorder unit, address generator and re-layout buffer under Verilator, at their default sizes.

Scenarios (:mod:`tests.helpers.interface`): every choice, address and column is the golden model's, with idle inputs and
refused outputs; without either every output has its cycle.
"""

from __future__ import annotations

import pytest

from hw.dma_params import AddressParams, RelayoutParams, ReorderParams
from hw.interface.address_generator import AddressGenerator
from hw.interface.relayout_buffer import RelayoutBuffer
from hw.interface.reorder import CommandReorder
from hw.memory.address_maps import stack_interleaved
from hw.presets import DRAM_ORGANISATIONS
from tests.helpers.rtl import run_cocotb

SPACE = stack_interleaved(32, DRAM_ORGANISATIONS["hbm3-16gb"].spec, slot_bytes=512)
UNITS = {
    "reorder": (CommandReorder, ReorderParams()),
    "generate": (AddressGenerator, AddressParams(space=SPACE)),
    "relayout": (RelayoutBuffer, RelayoutParams()),
}


@pytest.mark.parametrize("name", UNITS)
def test_interface(name):
    unit, params = UNITS[name]
    run_cocotb(unit, params, module="tests.rtl.tb_interface", expected=4, case=name)
