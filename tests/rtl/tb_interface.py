"""cocotb tests of reorder unit, address generator and re-layout buffer; which of them comes with the run."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np

from hw.dma_params import AddressParams, RelayoutParams, ReorderParams
from hw.memory.address_maps import stack_interleaved
from hw.presets import DRAM_ORGANISATIONS
from tests.helpers import interface
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


@cocotb.test()
@cocotb.parametrize(pauses=[(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.3, 0.3)])
async def as_the_golden_model(dut: Any, pauses: tuple[float, float]) -> None:
    idle, stall = pauses
    bench = await CocotbBench.start(dut)
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    if case() == "reorder":
        params = ReorderParams()
        commands = interface.commands_of(params, 300, 3, rng)
        await interface.reorder_all(bench, params, commands, idle=idle, stall=stall)
    elif case() == "generate":
        space = stack_interleaved(32, DRAM_ORGANISATIONS["hbm3-16gb"].spec, slot_bytes=512)
        slots = rng.integers(0, 2 * space.slots, 60).tolist()
        await interface.generate_all(bench, AddressParams(space=space), slots, idle=idle, stall=stall)
    else:
        await interface.relayout_all(bench, RelayoutParams(), 60, rng, idle=idle, stall=stall)
