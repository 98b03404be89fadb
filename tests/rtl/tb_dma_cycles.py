"""cocotb test of the cycles of both ends of the DMA at the sizes of a device."""

from __future__ import annotations

from typing import Any

import cocotb

from hw.presets.dma_bench import DMA_BENCHES
from tests.helpers import dma_cycles
from tests.helpers.cocotb_bench import CocotbBench


@cocotb.test()
async def cycles_of_the_formulas(dut: Any) -> None:
    device = DMA_BENCHES["device"]
    await dma_cycles.assert_cycles(await CocotbBench.start(dut), (device.near, device.far))
