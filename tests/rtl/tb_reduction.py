"""cocotb tests of the reduction unit; the size comes with the run."""

from __future__ import annotations

from typing import Any

import cocotb

from golden.exp import POLY6, POLY6_SERIAL
from hw.params import ReductionParams
from tests.helpers import reduction
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


def _params() -> ReductionParams:
    size = case()
    exp = {spec.name: spec for spec in (POLY6, POLY6_SERIAL)}[size.pop("exp")]
    return ReductionParams(**size, exp=exp)


@cocotb.test()
async def back_to_back(dut: Any) -> None:
    await reduction.back_to_back(await CocotbBench.start(dut), _params(), 20)


@cocotb.test()
async def head_dims(dut: Any) -> None:
    most = _params().beats
    await reduction.head_dims(await CocotbBench.start(dut), _params(), [2, max(2, most // 2), most, 2, 2, most, 2] * 2)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.3, 0.8], stall=[0.0, 0.3, 0.8])
async def random_run(dut: Any, idle: float, stall: float) -> None:
    bench = await CocotbBench.start(dut)
    for seed in (cocotb.RANDOM_SEED, int(10 * idle + stall)):
        await reduction.random_run(bench, _params(), 15, idle=idle, stall=stall, seed=seed)


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.5])
async def empty_patterns(dut: Any, pause: float) -> None:
    await reduction.empty_patterns(await CocotbBench.start(dut), _params(), pause)


@cocotb.test()
@cocotb.parametrize(slow=["head_i__0", "head_i__2", "body_i__0", "body_i__1", "head_o", "body_o"])
async def one_slow_stream(dut: Any, slow: str) -> None:
    await reduction.one_slow_stream(await CocotbBench.start(dut), _params(), slow)


@cocotb.test()
async def corner_maxima(dut: Any) -> None:
    await reduction.corner_maxima(await CocotbBench.start(dut), _params())


@cocotb.test()
async def faults(dut: Any) -> None:
    await reduction.faults(await CocotbBench.start(dut), _params())


@cocotb.test()
async def unequal_bodies(dut: Any) -> None:
    await reduction.unequal_bodies(await CocotbBench.start(dut), _params())


@cocotb.test()
async def reset_anywhere(dut: Any) -> None:
    await reduction.reset_anywhere(await CocotbBench.start(dut), _params(), [1, 2, 3, 5, 8, 13, 17, 21, 30, 37, 50, 71])
