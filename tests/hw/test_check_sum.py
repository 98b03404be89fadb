# amaranth: UnusedElaboratable=no
"""Promise: the check sum in hardware is zlib's, whatever the width of a beat, and begins anew when told."""

from __future__ import annotations

import zlib
from random import Random

import pytest
from amaranth.sim import Simulator

from hw.interface.check_sum import CheckSum


@pytest.mark.parametrize("beat_bytes", [1, 4, 8, 32])
def test_sums_are_those_of_zlib(beat_bytes):
    unit, random, done = CheckSum(beat_bytes), Random(beat_bytes), []

    async def testbench(ctx):
        for beats in (1, 2, 7):
            content = random.randbytes(beats * beat_bytes)
            for start in range(0, len(content), beat_bytes):
                # What does not count must not matter.
                ctx.set(unit.valid, 0)
                ctx.set(unit.data, random.getrandbits(8 * beat_bytes))
                await ctx.tick()
                ctx.set(unit.valid, 1)
                ctx.set(unit.start, int(start == 0))
                ctx.set(unit.data, int.from_bytes(content[start : start + beat_bytes], "little"))
                await ctx.tick()
                assert ctx.get(unit.crc) == zlib.crc32(content[: start + beat_bytes])
            done.append(beats)

    simulator = Simulator(unit)
    simulator.add_clock(1e-9)
    simulator.add_testbench(testbench)
    simulator.run()
    assert done == [1, 2, 7]


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"^beat_bytes must be at least 1, not 0$"):
        CheckSum(0)
