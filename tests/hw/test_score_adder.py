# amaranth: UnusedElaboratable=no
"""The score adder in Amaranth's simulator: bits, latency, faults, and bad arguments."""

from __future__ import annotations

import pytest
from amaranth.hdl import Cat, ClockDomain, Module
from amaranth.sim import Simulator

from golden.formats import FP8_E4M3
from hw.timing.score_adder import latency_cycles
from hw.units.score_adder import ScoreAdder
from tests.helpers.score_adder import ScoreBench, corners, lost_step, random_sums, reset_forgets


class _PysimBench(ScoreBench):
    def __init__(self, adder, context, reset):
        super().__init__(adder.slices)
        # The simulator settles the whole design after every write.
        self._written = Cat(reset, *(part for port in adder.i for part in (port.valid, port.sum)))
        self._adder, self._context = adder, context

    async def step(self, valids, codes, *, reset=False):
        word = int(reset)
        for number, (valid, code) in enumerate(zip(valids, codes, strict=True)):
            word |= (int(code) << 1 | int(valid)) << 1 + 33 * number
        self._context.set(self._written, word)
        outputs = (self._adder.o.valid, self._adder.o.sum, self._adder.fault)
        _, _, valid, total, fault = await self._context.tick().sample(*outputs)
        return bool(valid), int(total), bool(fault)


def _run(slices, *scenarios):
    domain = ClockDomain("sync")
    adder = ScoreAdder(slices)
    top = Module()
    top.domains += domain
    top.submodules.dut = adder
    finished = False

    async def testbench(context):
        nonlocal finished
        for scenario in scenarios:
            await scenario(_PysimBench(adder, context, domain.rst))
        finished = True

    simulator = Simulator(top)
    simulator.add_clock(1e-9)
    simulator.add_testbench(testbench)
    simulator.run()
    assert finished


@pytest.mark.parametrize("slices", [2, 4, 16])
def test_sums(slices):
    _run(slices, lambda bench: random_sums(bench, 100, 0.3, seed=1), lambda bench: corners(bench, 100, seed=2))


@pytest.mark.parametrize("slices", [2, 4])
def test_lost_step_and_reset(slices):
    _run(slices, lost_step, reset_forgets)


def test_latency_of_the_docstring():
    assert [latency_cycles(slices) for slices in (2, 4, 8, 16)] == [1, 2, 3, 4]


def test_bad_arguments():
    for refused in (1, 32):
        with pytest.raises(ValueError, match=f"slices must be from 2 to 16, not {refused}"):
            ScoreAdder(refused)
    with pytest.raises(ValueError, match="slices must be a power of two, not 6"):
        ScoreAdder(6)
    with pytest.raises(TypeError, match=r"slices must be an integer, not 2\.0"):
        latency_cycles(2.0)
    with pytest.raises(ValueError, match="fmt must be a format with an infinity, not 'fp8_e4m3'"):
        ScoreAdder(4, FP8_E4M3)
