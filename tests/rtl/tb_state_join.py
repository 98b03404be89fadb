"""cocotb tests of the state join; the size comes with the run."""

from __future__ import annotations

from typing import Any

import cocotb

from hw.params import ProcessingParams
from tests.helpers import state_join
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


@cocotb.test()
async def back_to_back(dut: Any) -> None:
    await state_join.back_to_back(await CocotbBench.start(dut), ProcessingParams(**case()), 40)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.3, 0.8], stall=[0.0, 0.3, 0.8])
async def random_run(dut: Any, idle: float, stall: float) -> None:
    bench = await CocotbBench.start(dut)
    params = ProcessingParams(**case())
    await state_join.random_run(bench, params, 40, idle=idle, stall=stall, seed=cocotb.RANDOM_SEED)


@cocotb.test()
@cocotb.parametrize(slow=["head_i__0", "head_i__3", "body_i__0", "body_i__2", "head_o", "body_o"])
async def one_slow_stream(dut: Any, slow: str) -> None:
    await state_join.one_slow_stream(await CocotbBench.start(dut), ProcessingParams(**case()), slow)


@cocotb.test()
async def unequal_slices(dut: Any) -> None:
    await state_join.unequal_slices(await CocotbBench.start(dut), ProcessingParams(**case()))


@cocotb.test()
async def faults(dut: Any) -> None:
    await state_join.faults(await CocotbBench.start(dut), ProcessingParams(**case()))


@cocotb.test()
async def missing_slices(dut: Any) -> None:
    await state_join.missing_slices(await CocotbBench.start(dut), ProcessingParams(**case()))


@cocotb.test()
async def reset_anywhere(dut: Any) -> None:
    cuts = [1, 2, 3, 4, 5, 8, 13, 17, 21, 30, 37]
    await state_join.reset_anywhere(await CocotbBench.start(dut), ProcessingParams(**case()), cuts)
