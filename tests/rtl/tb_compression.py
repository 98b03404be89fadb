"""cocotb tests of compressor and decompressor; which of the two, and its size, come with the run."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np

from golden.dma.compression import BlockCompression
from golden.formats import FORMATS
from hw.dma_params import CompressionParams
from tests.helpers import compression
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


def _params() -> CompressionParams:
    blocks = BlockCompression(fmt=FORMATS[case()["fmt"]], block=case()["block"])
    return CompressionParams(compression=blocks, lanes=case()["lanes"])


def _run() -> Any:
    return {"compressor": compression.compress_all, "decompressor": compression.decompress_all}[case()["unit"]]


@cocotb.test()
@cocotb.parametrize(pauses=[(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.3, 0.3)])
async def bits_and_cycles(dut: Any, pauses: tuple[float, float]) -> None:
    idle, stall = pauses
    bench = await CocotbBench.start(dut)
    params = _params()
    payloads = compression.payloads_of(params, 15, np.random.default_rng(cocotb.RANDOM_SEED))
    await _run()(bench, params, payloads, idle=idle, stall=stall)


@cocotb.test()
async def reset_between(dut: Any) -> None:
    await compression.reset_between(await CocotbBench.start(dut), _params(), _run(), [1, 2, 3, 4, 6])
