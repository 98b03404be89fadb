# amaranth: UnusedElaboratable=no
"""Promise: between clocks of any ratio and phase every item of a stream arrives once, in order."""

from __future__ import annotations

from random import Random

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from hw.interface.crossing import Crossing


def run(write_ns: float, read_ns: float, phase_ns: float, idle: float, stall: float, count: int = 120) -> list[int]:
    """Send 0, 1, 2, ... through a crossing; return the cycles of the reading clock in which they arrived."""
    top, unit = Module(), Crossing(16, depth=8, source="near", target="far")
    top.domains += [ClockDomain("near"), ClockDomain("far")]
    top.submodules.unit = unit
    random, found, cycles = Random(1), [], []

    async def write(ctx):
        for number in range(count):
            while random.random() < idle:
                await ctx.tick("near")
            ctx.set(unit.i.payload, number)
            ctx.set(unit.i.valid, 1)
            await ctx.tick("near").until(unit.i.ready)
            ctx.set(unit.i.valid, 0)

    async def read(ctx):
        offered, cycle = None, 0
        while len(found) < count:
            ready = random.random() >= stall
            ctx.set(unit.o.ready, int(ready))
            _, _, valid, payload = await ctx.tick("far").sample(unit.o.valid, unit.o.payload)
            assert offered is None or (valid and payload == offered)
            if valid and ready:
                found.append(payload)
                cycles.append(cycle)
            offered = payload if valid and not ready else None
            cycle += 1

    simulator = Simulator(top)
    simulator.add_clock(write_ns * 1e-9, domain="near")
    simulator.add_clock(read_ns * 1e-9, phase=phase_ns * 1e-9, domain="far")
    simulator.add_testbench(write)
    simulator.add_testbench(read)
    simulator.run()
    assert found == list(range(count))
    return cycles


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.3, 0.3)])
@pytest.mark.parametrize(
    ("write_ns", "read_ns", "phase_ns"), [(1.0, 1.0, 0.3), (0.769, 0.625, 0.1), (1.0, 4.7, 0.0), (5.3, 1.0, 0.9)]
)
def test_everything_arrives_once(write_ns, read_ns, phase_ns, idle, stall):
    run(write_ns, read_ns, phase_ns, idle, stall)


@pytest.mark.parametrize(("write_ns", "read_ns"), [(1.0, 1.0), (1.0, 3.0), (3.0, 1.0)])
def test_an_item_a_cycle_of_the_slower_clock(write_ns, read_ns):
    cycles = run(write_ns, read_ns, 0.3, 0.0, 0.0)
    slower_cycles = (cycles[-1] - cycles[20]) * read_ns / max(write_ns, read_ns)
    assert slower_cycles == pytest.approx(len(cycles) - 21, abs=1)


@pytest.mark.parametrize("lead_ns", [-9.0, 0.0, 7.3])
@pytest.mark.parametrize(
    ("write_ns", "read_ns", "phase_ns"), [(1.0, 1.0, 0.3), (0.769, 0.625, 0.1), (1.0, 4.7, 0.0), (5.3, 1.0, 0.9)]
)
def test_a_reset_of_both_sides_empties_it(write_ns, read_ns, phase_ns, lead_ns):
    """However full it is, in whatever place its pointers are, and whichever side is reset first and longer."""
    top, unit, random = Module(), Crossing(16, depth=4, source="near", target="far"), Random(1)
    near, far = ClockDomain("near"), ClockDomain("far")
    top.domains += [near, far]
    top.submodules.unit = unit
    rounds: list[list[int]] = [[]]

    async def write(ctx):
        number = 0
        while True:
            held = ctx.get(near.rst)
            number = 0 if held else number
            ctx.set(unit.i.payload, len(rounds) << 8 | number)
            ctx.set(unit.i.valid, not held)
            _, _, ready, reset = await ctx.tick("near").sample(unit.i.ready, near.rst)
            number += ready and not held and not reset

    async def read(ctx):
        while True:
            ready = not ctx.get(far.rst) and random.random() < 0.7
            ctx.set(unit.o.ready, ready)
            _, _, valid, payload, reset = await ctx.tick("far").sample(unit.o.valid, unit.o.payload, far.rst)
            if valid and ready and not reset and not ctx.get(near.rst):
                rounds[-1].append(payload)

    async def reset(ctx):
        sides = (near.rst, far.rst) if lead_ns < 0 else (far.rst, near.rst)
        for _ in range(12):
            await ctx.delay(random.uniform(20, 60) * 1e-9)
            await ctx.delay(random.random() * 1e-9)
            ctx.set(sides[0], 1)
            await ctx.delay(abs(lead_ns) * 1e-9)
            ctx.set(sides[1], 1)
            rounds.append([])
            await ctx.delay(4 * max(write_ns, read_ns) * 1e-9)
            first, second = random.sample(sides, 2)
            ctx.set(first, 0)
            await ctx.delay(abs(lead_ns) * random.random() * 1e-9)
            ctx.set(second, 0)
        await ctx.delay(50e-9)

    simulator = Simulator(top)
    simulator.add_clock(write_ns * 1e-9, domain="near")
    simulator.add_clock(read_ns * 1e-9, phase=phase_ns * 1e-9, domain="far")
    simulator.add_testbench(write, background=True)
    simulator.add_testbench(read, background=True)
    simulator.add_testbench(reset)
    simulator.run()
    assert rounds == [[number << 8 | place for place in range(len(got))] for number, got in enumerate(rounds, 1)]
    assert min(len(got) for got in rounds) > 0


def test_bad_arguments():
    for depth, message in ((3, "at least 4, not 3"), (6, "a power of two, not 6")):
        with pytest.raises(ValueError, match=rf"^depth must be {message}$"):
            Crossing(8, depth=depth, source="a", target="b")
    with pytest.raises(ValueError, match=r"^target must be another domain than 'a', not 'a'$"):
        Crossing(8, depth=4, source="a", target="a")
