"""cocotb tests of the finish unit; the size comes with the run."""

from __future__ import annotations

from typing import Any

import cocotb

from tests.helpers import finish
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


@cocotb.test()
async def back_to_back(dut: Any) -> None:
    await finish.back_to_back(await CocotbBench.start(dut), finish.params_of(case()), 12)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.3, 0.8], stall=[0.0, 0.3, 0.8])
async def random_run(dut: Any, idle: float, stall: float) -> None:
    bench = await CocotbBench.start(dut)
    await finish.random_run(bench, finish.params_of(case()), 40, idle=idle, stall=stall, seed=cocotb.RANDOM_SEED)


@cocotb.test()
@cocotb.parametrize(slow=["head", "body", "output"])
async def one_slow_stream(dut: Any, slow: str) -> None:
    await finish.one_slow_stream(await CocotbBench.start(dut), finish.params_of(case()), slow)


@cocotb.test()
async def corners(dut: Any) -> None:
    await finish.corners(await CocotbBench.start(dut), finish.params_of(case()))


@cocotb.test()
async def accuracy(dut: Any) -> None:
    await finish.accuracy(await CocotbBench.start(dut), finish.params_of(case()), 300)


@cocotb.test()
async def reset_anywhere(dut: Any) -> None:
    cuts = [1, 2, 7, 13, 14, 15, 16, 17, 19, 24, 29, 33, 48]
    await finish.reset_anywhere(await CocotbBench.start(dut), finish.params_of(case()), cuts)
