"""cocotb tests of packer and unpacker; which of the two, and its size, come with the run."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np

from golden.dma.flits import FlitFormat
from hw.dma_params import FlitParams
from tests.helpers import flits
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.rtl import case


def _params() -> FlitParams:
    return FlitParams(flits=FlitFormat(case()["flit_bytes"]), beat_bytes=case()["beat_bytes"])


def _run() -> Any:
    return {"packer": flits.pack_all, "unpacker": flits.unpack_all}[case()["unit"]]


@cocotb.test()
@cocotb.parametrize(pauses=[(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.3, 0.3)])
async def bytes_and_cycles(dut: Any, pauses: tuple[float, float]) -> None:
    idle, stall = pauses
    bench = await CocotbBench.start(dut)
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    runs = [flits.frames_of(int(rng.integers(1, 8)), 600, rng) for _ in range(6)]
    await _run()(bench, _params(), runs, rng, idle=idle, stall=stall)


@cocotb.test()
async def reset_between(dut: Any) -> None:
    await flits.reset_between(await CocotbBench.start(dut), _params(), _run(), [1, 2, 3, 4, 6, 9])
