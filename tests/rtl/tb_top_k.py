"""cocotb tests of the top-k unit; the size comes with the run."""

from __future__ import annotations

from typing import Any

import cocotb

from tests.helpers import top_k
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


@cocotb.test()
async def back_to_back(dut: Any) -> None:
    await top_k.back_to_back(await CocotbBench.start(dut), top_k.params_of(case()))


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.3, 0.8], stall=[0.0, 0.3, 0.8])
async def random_run(dut: Any, idle: float, stall: float) -> None:
    bench = await CocotbBench.start(dut)
    await top_k.random_run(bench, top_k.params_of(case()), 8, idle=idle, stall=stall, seed=cocotb.RANDOM_SEED)


@cocotb.test()
@cocotb.parametrize(slow=["command", "scan", "scores", "selected"])
async def one_slow_stream(dut: Any, slow: str) -> None:
    await top_k.one_slow_stream(await CocotbBench.start(dut), top_k.params_of(case()), slow)


@cocotb.test()
async def faults(dut: Any) -> None:
    await top_k.faults(await CocotbBench.start(dut), top_k.params_of(case()))


@cocotb.test()
async def reset_anywhere(dut: Any) -> None:
    await top_k.reset_anywhere(
        await CocotbBench.start(dut), top_k.params_of(case()), [*range(1, 40, 2), *range(40, 800, 37)]
    )
