"""cocotb tests of the DMA's data path."""

from __future__ import annotations

import logging
from typing import Any

import cocotb

from golden.dma.frames import Kind
from hw.dma_params import LinkParams, PathParams
from tests.helpers import path
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case

PARAMS = PathParams(link=LinkParams(timeout_cycles=400, attempts=8), payload_beats=128)


@cocotb.test()
@cocotb.parametrize(chances=[(0.0, 0.3, 0.0), (0.0, 0.0, 0.5), (0.01, 0.0, 0.0), (0.03, 0.2, 0.3)])
async def whole_and_in_order(dut: Any, chances: tuple[float, float, float]) -> None:
    faults, idle, stall = chances
    bench = await CocotbBench.start(dut)
    count = case()["payloads"] // 4
    await path.payloads_through(bench, PARAMS, count, faults=faults, idle=idle, stall=stall, seed=cocotb.RANDOM_SEED)
    assert not dut.fault.value


@cocotb.test()
async def rates(dut: Any) -> None:
    """4 KiB at a time, then tokens of 512 bytes (key and value at head dimension 128), raw and in 8 bits.

    Of a flit's 256 bytes 248 are payload, and a frame has 8 of header: 4096 / 4104, 512 / 520 and 512 / 272 of that.
    """
    bench = await CocotbBench.start(dut)
    for kind, count, beats, wire_bytes in (
        (Kind.RAW, 12, 128, 4104),
        (Kind.RAW, 60, 16, 520),
        (Kind.COMPRESSED, 60, 16, 272),
    ):
        found = await path.rate(bench, PARAMS, kind, count, beats)
        wanted = 32 * beats / wire_bytes * 248 / 256
        logging.getLogger("cocotb").info("rate of %s, %d beats: %.4f of the link's", kind.name, beats, found)
        # The last of at least 66 flits may be filled with zeros; else no cycle of the link is lost.
        assert wanted * (1 - 1 / 66) <= found <= wanted, (kind, beats, found, wanted)
