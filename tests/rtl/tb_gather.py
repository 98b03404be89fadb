"""cocotb tests of the gather unit; the size comes with the run."""

from __future__ import annotations

from typing import Any

import cocotb

from hw.gather_params import GatherParams
from tests.helpers import gather
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


@cocotb.test()
async def back_to_back(dut: Any) -> None:
    await gather.back_to_back(await CocotbBench.start(dut), GatherParams(**case()))


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.3, 0.8], stall=[0.0, 0.3, 0.8])
async def random_run(dut: Any, idle: float, stall: float) -> None:
    bench = await CocotbBench.start(dut)
    await gather.random_run(bench, GatherParams(**case()), 60, idle=idle, stall=stall, seed=cocotb.RANDOM_SEED)


@cocotb.test()
@cocotb.parametrize(slow=["rows", "selected", "stall"])
async def one_slow_stream(dut: Any, slow: str) -> None:
    await gather.one_slow_stream(await CocotbBench.start(dut), GatherParams(**case()), slow)


@cocotb.test()
async def faults(dut: Any) -> None:
    await gather.faults(await CocotbBench.start(dut), GatherParams(**case()))


@cocotb.test()
async def reset_anywhere(dut: Any) -> None:
    await gather.reset_anywhere(await CocotbBench.start(dut), GatherParams(**case()), list(range(1, 60)))
