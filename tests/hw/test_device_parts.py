# amaranth: UnusedElaboratable=no
"""Promise: the small parts of a channel keep their distances, rates and orders, and refuse sizes that can't work."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.devices.append_walk import AppendWalk
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


def _walk_rows(dut, operations, places, *, place_chance=1.0):
    """Run a walk whose rows close when they are through.

    Return (operation, is value, row, column, wanted) of every read.
    """
    rng = np.random.default_rng(0)
    seen = []

    async def feed(ctx):
        for item in operations:
            ctx.set(dut.rows.payload, item)
            ctx.set(dut.rows.valid, 1)
            await ctx.tick().until(dut.rows.ready)
        ctx.set(dut.rows.valid, 0)

    async def list_places(ctx):
        for item in places:
            while rng.random() >= place_chance:
                await ctx.tick()
            ctx.set(dut.places.payload, item)
            ctx.set(dut.places.valid, 1)
            await ctx.tick().until(dut.places.ready)
            ctx.set(dut.places.valid, 0)

    async def read(ctx):
        idle = 0
        while idle < 200:
            valid = ctx.get(dut.valid)
            if valid:
                what = (dut.operation, dut.is_value, dut.row, dut.column, dut.wanted)
                seen.append(tuple(int(ctx.get(x)) for x in what))
            ctx.set(dut.read, valid)
            ctx.set(dut.closed, not valid)
            idle = 0 if valid else idle + 1
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(feed, background=True)
    simulator.add_testbench(list_places, background=True)
    simulator.add_testbench(read)
    simulator.run()
    return seen


def _walk_item(operation, count, *, selected=False):
    """Return an operation of ``count`` tokens of two columns, 16 a row, and its kv order."""
    tiles = -(-count // 16)
    item = {
        "key_row": 100 * operation,
        "value_row": 100 * operation + 50,
        "tiles": tiles,
        "tile_columns": 32,
        "last_columns": 2 * (count - 16 * (tiles - 1)) if tiles else 0,
        "token_columns": 2,
        "selected": int(selected),
        "append": {},
    }
    return item, list(kv_order(16, count))


def test_rows_come_in_the_order_of_the_units():
    """Tiles of 16 tokens of 2 beats are rows of 32 columns: the walk must be kv_order, row by row."""
    items, expected = [], []
    for operation, count in enumerate([0, 1, 16, 17, 0, 0, 40, 64]):
        item, order = _walk_item(operation, count)
        items.append(item)
        for tile in order:
            is_value = tile.kind == "v"
            row = 100 * operation + 50 * is_value + tile.number
            expected += [(operation % 4, is_value, row, column, (1 << 16) - 1) for column in range(2 * tile.tokens)]
    assert _walk_rows(RowWalk(DEVICE_PRESETS["attacc"].channel), items, []) == expected


@pytest.mark.parametrize("place_chance", [1.0, 0.3])
def test_selected_tokens_come_by_the_list(place_chance):
    """Keys and values of a tile share its places, which come once; between them operations of all tokens."""
    rng = np.random.default_rng(2)
    items, places, expected = [], [], []
    for operation, (count, selected) in enumerate(
        [(1, 1), (16, 1), (20, 0), (33, 1), (0, 1), (64, 1), (17, 0), (5, 1)]
    ):
        item, order = _walk_item(operation, count, selected=selected)
        items.append(item)
        position = np.sort(rng.choice(40 * 16, count, replace=False)) if selected else np.arange(count)
        if selected:
            places += [
                {"place": {"tile": int(p) // 16, "column": int(p) % 16 * 2}, "wanted": 7 * int(p) + 1} for p in position
            ]
        for tile in order:
            for p in position[tile.start : tile.start + tile.tokens]:
                row = 100 * operation + 50 * (tile.kind == "v") + int(p) // 16
                wanted = 7 * int(p) + 1 if selected else (1 << 16) - 1
                expected += [(operation % 4, tile.kind == "v", row, int(p) % 16 * 2 + beat, wanted) for beat in (0, 1)]
    dut = RowWalk(DEVICE_PRESETS["attacc"].channel)
    assert _walk_rows(dut, items, places, place_chance=place_chance) == expected


def test_a_new_token_is_owed_once_in_each_of_its_rows():
    """Key, then value, bank by bank, also when other rows come between; nothing in an operation without one."""
    dut = AppendWalk(DEVICE_PRESETS["attacc"].channel)
    written = []

    async def bench(ctx):
        for valid in (1, 0, 1):
            ctx.set(dut.begin, 1)
            ctx.set(dut.written, 0)
            await ctx.tick()
            ctx.set(dut.begin, 0)
            ctx.set(dut.append, {"valid": valid, "place": {"tile": 3, "column": 10}})
            ctx.set(dut.token_columns, 2)
            # The row of the key twice over: it may be opened again for its next tile.
            for is_value, tile in [(0, 2), (0, 3), (0, 4), (0, 3), (1, 2), (1, 3), (1, 4), (1, 3)]:
                ctx.set(dut.is_value, is_value)
                ctx.set(dut.tile, tile)
                for cycle in range(20):
                    ctx.set(dut.written, ctx.get(dut.due) and cycle % 2)
                    if ctx.get(dut.written):
                        written.append((is_value, tile, ctx.get(dut.bank), ctx.get(dut.column)))
                    await ctx.tick()

    _simulate(dut, bench)
    once = [(is_value, 3, bank, column) for is_value in (0, 1) for bank in range(4) for column in (10, 11)]
    assert written == 2 * once


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
