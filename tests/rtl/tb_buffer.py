"""cocotb tests of a one-item buffer: the test bench under test."""

from __future__ import annotations

from typing import Any

import cocotb

from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


@cocotb.test()
async def keeps_order_under_stalls(dut: Any) -> None:
    bench = await CocotbBench.start(dut)
    count = case()["items"]
    bench.send("i", range(count), idle=0.4)
    bench.stall("o", 0.4)
    await bench.until(o=count, timeout_cycles=100 * count)
    assert bench.items("o") == list(range(count))


@cocotb.test()
async def forgets_at_reset(dut: Any) -> None:
    bench = await CocotbBench.start(dut)
    bench.stall("o", 1.0)
    bench.send("i", [7])
    await bench.advance(5)
    await bench.reset()
    bench.stall("o", 0.0)
    bench.send("i", [9])
    await bench.until(o=1, timeout_cycles=10)
    assert bench.items("o") == [9]
