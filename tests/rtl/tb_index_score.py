"""cocotb tests of the index scoring unit; the size comes with the run."""

from __future__ import annotations

from typing import Any

import cocotb

from tests.helpers import index_score
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


@cocotb.test()
async def back_to_back(dut: Any) -> None:
    bench = await CocotbBench.start(dut)
    await index_score.back_to_back(bench, index_score.params_of(case()), index_score.modes())


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.3, 0.8], stall=[0.0, 0.3, 0.8])
async def random_run(dut: Any, idle: float, stall: float) -> None:
    bench = await CocotbBench.start(dut)
    params = index_score.params_of(case())
    await index_score.random_run(bench, params, 12, idle=idle, stall=stall, seed=cocotb.RANDOM_SEED)


@cocotb.test()
@cocotb.parametrize(slow=["command", "query", "keys", "scores"])
async def one_slow_stream(dut: Any, slow: str) -> None:
    await index_score.one_slow_stream(await CocotbBench.start(dut), index_score.params_of(case()), slow)


@cocotb.test()
async def reset_anywhere(dut: Any) -> None:
    bench = await CocotbBench.start(dut)
    await index_score.reset_anywhere(bench, index_score.params_of(case()), range(1, 160, 3))
