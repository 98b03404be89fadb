# amaranth: UnusedElaboratable=no
"""Promise: the small parts of a channel keep their distances, rates and orders, and refuse sizes that can't work."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.devices.clock_enable import ClockEnable
from hw.devices.power_cap import PowerCap
from hw.devices.refresh import RefreshTimer
from hw.devices.row_walk import RowWalk
from hw.devices.spacing import Spacing
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.kv_order import kv_order


def _simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("cycles", [1, 2, 7])
def test_spacing_lets_the_next_event_come_after_exactly_its_cycles(cycles):
    dut = Spacing(cycles)
    ready = []

    async def bench(ctx):
        ctx.set(dut.event, 1)
        assert ctx.get(dut.ready)
        await ctx.tick()
        ctx.set(dut.event, 0)
        for _ in range(cycles + 1):
            ready.append(ctx.get(dut.ready))
            await ctx.tick()

    _simulate(dut, bench)
    assert ready == [0] * (cycles - 1) + [1, 1]


@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(5, 16), Fraction(2, 3)], ids=str)
def test_enable_is_spread_evenly(ratio):
    dut = ClockEnable(ratio)
    seen = []

    async def bench(ctx):
        for _ in range(96):
            seen.append(ctx.get(dut.enable))
            await ctx.tick()

    _simulate(dut, bench)
    assert sum(seen) == 96 * ratio
    total = np.cumsum(seen)
    assert all(int((t + 1) * ratio) == total[t] for t in range(96))


def test_logic_as_fast_as_the_memory_is_always_enabled():
    dut = ClockEnable(Fraction(1))
    seen = []

    async def bench(ctx):
        seen.append(ctx.get(dut.enable))

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [1]


@pytest.mark.parametrize(("period", "burst"), [(Fraction(20480, 769), 32), (Fraction(13, 2), 2), (Fraction(5), 4)])
def test_the_cap_grants_its_rate_and_no_more_than_its_burst(period, burst):
    dut = PowerCap(period, burst)
    granted = []

    async def bench(ctx):
        for cycle in range(3000):
            # Greedy, but for a pause that fills the bucket.
            take = ctx.get(dut.ready) and not 1000 <= cycle < 2000
            ctx.set(dut.take, take)
            if take:
                granted.append(cycle)
            await ctx.tick()

    _simulate(dut, bench)
    for first in range(len(granted)):
        for last in range(first, min(first + 2 * burst + 40, len(granted))):
            window = granted[last] - granted[first] + 1
            assert last - first + 1 <= window / period + burst
    greedy = [cycle for cycle in granted if cycle < 1000]
    assert len(greedy) >= 1000 / period + burst - 1


def test_refreshes_are_owed_one_an_interval():
    dut = RefreshTimer(10)
    owed = []

    async def bench(ctx):
        for cycle in range(60):
            ctx.set(dut.start, cycle == 0)
            ctx.set(dut.first_cycles, 4)
            owed.append(ctx.get(dut.owed))
            # The second is given late, with the third.
            ctx.set(dut.done, cycle in (8, 30, 31))
            await ctx.tick()

    _simulate(dut, bench)
    # Start in cycle 0; due 4, 14, 24, 34, ... cycles behind the next one.
    expected = [
        sum(cycle > 4 + 10 * k for k in range(6)) - sum(cycle > done for done in (8, 30, 31)) > 0 for cycle in range(60)
    ]
    assert [bool(value) for value in owed] == expected


def test_without_refresh_none_is_owed():
    dut = RefreshTimer(5)
    owed = []

    async def bench(ctx):
        ctx.set(dut.start, 1)
        for _ in range(30):
            owed.append(ctx.get(dut.owed))
            await ctx.tick()
            ctx.set(dut.start, 0)

    _simulate(dut, bench)
    assert not any(owed)


def test_rows_come_in_the_order_of_the_units():
    """Tiles of 16 tokens of 2 beats are rows of 32 columns: the walk must be kv_order, row by row."""
    dut = RowWalk(DEVICE_PRESETS["attacc"].channel)
    tokens = [0, 1, 16, 17, 0, 0, 40, 64]
    seen, expected = [], []
    for operation, count in enumerate(tokens):
        base = 100 * operation
        for tile in kv_order(16, count):
            row = base + tile.number + (50 if tile.kind == "v" else 0)
            expected.append((operation % 4, tile.kind == "v", row, 2 * tile.tokens))

    async def feed(ctx):
        for operation, count in enumerate(tokens):
            tiles = -(-count // 16)
            last = 2 * (count - 16 * (tiles - 1)) if tiles else 0
            item = {"key_row": 100 * operation, "value_row": 100 * operation + 50, "tiles": tiles}
            ctx.set(dut.rows.payload, item | {"tile_columns": 32, "last_columns": last})
            ctx.set(dut.rows.valid, 1)
            await ctx.tick().until(dut.rows.ready)
        ctx.set(dut.rows.valid, 0)

    async def read(ctx):
        while len(seen) < len(expected):
            if ctx.get(dut.valid):
                seen.append(
                    (ctx.get(dut.operation), bool(ctx.get(dut.is_value)), ctx.get(dut.row), ctx.get(dut.columns))
                )
                ctx.set(dut.advance, 1)
            await ctx.tick()
            ctx.set(dut.advance, 0)

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(feed)
    simulator.add_testbench(read)
    simulator.run()
    assert seen == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Spacing(0), "cycles must be at least 1, not 0"),
        (lambda: ClockEnable(Fraction(3, 2)), "ratio must be above 0 and at most 1, not 3/2"),
        (lambda: PowerCap(Fraction(1, 2), 4), "period must be at least 1 cycle, not 1/2"),
        (lambda: PowerCap(Fraction(5), 1), "burst_columns must be at least 2, not 1"),
        (lambda: RefreshTimer(1), "interval_cycles must be at least 2, not 1"),
    ],
)
def test_sizes_that_cannot_work_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
