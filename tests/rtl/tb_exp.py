"""cocotb tests of the exponential unit; its name and the number of codes come as the test case."""

from __future__ import annotations

from typing import Any

import cocotb

from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.exp_bench import SPECS, chosen_codes, run_back_to_back, run_blocked, run_reset, run_stalled
from tests.helpers.exp_compact import CLOCKED
from tests.helpers.rtl import case

NAME, COUNT = case()
SPEC = (SPECS | CLOCKED)[NAME]


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.3, 0.9], stall=[0.0, 0.3, 0.9])
async def idles_and_back_pressure(dut: Any, idle: float, stall: float) -> None:
    await run_stalled(await CocotbBench.start(dut), SPEC, chosen_codes(SPEC, COUNT), idle, stall)


@cocotb.test()
async def back_to_back(dut: Any) -> None:
    await run_back_to_back(await CocotbBench.start(dut), SPEC, chosen_codes(SPEC, 2 * COUNT))


@cocotb.test()
async def blocked_output(dut: Any) -> None:
    await run_blocked(await CocotbBench.start(dut), SPEC, chosen_codes(SPEC, 80))


@cocotb.test()
async def reset_at_any_age(dut: Any) -> None:
    await run_reset(await CocotbBench.start(dut), SPEC, chosen_codes(SPEC, 80)[:20])
