"""cocotb tests of the score adder; the number of slices comes with the run."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from tests.helpers import score_adder
from tests.helpers.rtl import case


class _CocotbBench(score_adder.ScoreBench):
    def __init__(self, dut: Any) -> None:
        super().__init__(case()["slices"])
        self._dut = dut
        Clock(dut.clk, 2, unit="ns", impl="gpi").start()

    async def step(self, valids: list[bool], codes: list[int], *, reset: bool = False) -> tuple[bool, int, bool]:
        dut = self._dut
        dut.rst.value = int(reset)
        for number, (valid, code) in enumerate(zip(valids, codes, strict=True)):
            getattr(dut, f"i__{number}__valid").value = int(valid)
            getattr(dut, f"i__{number}__sum").value = code
        await RisingEdge(dut.clk)
        return bool(int(dut.o__valid.value)), int(dut.o__sum.value), bool(int(dut.fault.value))


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.5])
async def random_sums(dut: Any, pause: float) -> None:
    await score_adder.random_sums(_CocotbBench(dut), 5000, pause, cocotb.RANDOM_SEED)


@cocotb.test()
async def corners(dut: Any) -> None:
    await score_adder.corners(_CocotbBench(dut), 5000, cocotb.RANDOM_SEED)


@cocotb.test()
async def lost_step(dut: Any) -> None:
    await score_adder.lost_step(_CocotbBench(dut))


@cocotb.test()
async def reset_forgets(dut: Any) -> None:
    await score_adder.reset_forgets(_CocotbBench(dut))
