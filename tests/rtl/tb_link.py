"""cocotb tests of both ends of a link."""

from __future__ import annotations

from typing import Any

import cocotb

from golden.dma.flits import FlitFormat
from hw.dma_params import FlitParams, LinkParams
from tests.helpers import link
from tests.helpers.cocotb_bench import CocotbBench

PARAMS = LinkParams(flit=FlitParams(flits=FlitFormat(64), beat_bytes=16), window=8, timeout_cycles=120, attempts=8)


@cocotb.test()
@cocotb.parametrize(
    chances=[(0.0, 0.0, 0.0), (0.0, 0.6, 0.0), (0.0, 0.0, 0.6), (0.02, 0.0, 0.0), (0.1, 0.0, 0.0), (0.05, 0.3, 0.5)]
)
async def once_and_in_order(dut: Any, chances: tuple[float, float, float]) -> None:
    faults, idle, stall = chances
    bench = await CocotbBench.start(dut)
    await link.through(bench, PARAMS, 150, faults=faults, idle=idle, stall=stall, seed=cocotb.RANDOM_SEED)


@cocotb.test()
async def reset_anywhere(dut: Any) -> None:
    await link.reset_anywhere(await CocotbBench.start(dut), PARAMS, [1, 3, 6, 10, 15, 23, 40, 70])
