# amaranth: UnusedElaboratable=no
"""Promise: the marks of a read are there in the cycle in which its data reach the units, at any pace of the reads."""

from __future__ import annotations

import numpy as np
from amaranth.sim import Simulator

from hw.devices.read_marks import ReadMarks
from hw.presets.devices import DEVICE_PRESETS


def test_marks_come_with_the_data():
    """Reads as close as the memory takes them, and further apart: each shows its marks n_cl cycles later."""
    params = DEVICE_PRESETS["attacc-unlimited"].channel
    dut = ReadMarks(params, parts=5)
    rng = np.random.default_rng(1)
    gaps = [params.timing.n_ccdab] * 12 + rng.integers(params.timing.n_ccdab, 40, 20).tolist()
    reads = {int(cycle): int(rng.integers(1 << 16)) for cycle in np.cumsum(gaps)}
    seen = {}

    async def bench(ctx):
        for cycle in range(max(reads) + params.timing.n_cl + 1):
            ctx.set(dut.read, cycle in reads)
            ctx.set(dut.wanted, reads.get(cycle, 0))
            seen[cycle] = ctx.get(dut.arriving)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(reads) == 32
    assert {cycle: seen[cycle + params.timing.n_cl] for cycle in reads} == {c: marks % 32 for c, marks in reads.items()}
