"""cocotb tests of the cycles of both ends of the DMA at the sizes of a device."""

from __future__ import annotations

import logging
from typing import Any

import cocotb

from tests.helpers import dma_cycles, dma_rates
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.dma import World
from tests.helpers.rtl import case


@cocotb.test()
async def cycles_of_the_formulas(dut: Any) -> None:
    await dma_cycles.assert_cycles(await CocotbBench.start(dut), dma_rates.SIZES[case()["sizes"]])


@cocotb.test()
async def rates(dut: Any) -> None:
    """Both directions at once: 4 KiB that lie together, single tokens, and those in 8 bits, over what the link moves.

    Of a flit's 256 bytes 248 are payload; a token's frame is 520 bytes raw, 272 in 8 bits, that of 32 verdicts 40.
    """
    sizes = case()["sizes"]
    bench = await CocotbBench.start(dut)
    found = {}
    for what, run, compressed in (("4 KiB", 8, False), ("tokens", 1, False), ("tokens in 8 bits", 1, True)):
        for memories, kind in (("memories that answer at once", World), ("memories with rows", dma_rates.RowWorld)):
            world = kind(bench, dma_rates.SIZES[sizes], seed=1)
            await dma_rates.run(world, tokens=case()["tokens"], run=run, compressed=compressed)
            found[what, memories] = rates = dma_rates.rates(world)
            logging.getLogger("cocotb").info("%s, %s, %s: %s of the link", sizes, what, memories, rates)
    for what, least in case()["least"].items():
        assert all(rate >= least for rate in found[what, "memories that answer at once"].values()), (what, found)
