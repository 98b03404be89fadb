# amaranth: UnusedElaboratable=no
"""Promise: the link and the memories of the bench keep the times they state, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from amaranth.sim import Simulator

from hw.dma_bench_params import UNITS
from hw.interface.bench_channel import BenchChannel
from hw.interface.bench_link import BenchLink, Wire
from hw.interface.bench_rows import RowTimer
from hw.interface.dma_bench import DmaBench
from hw.presets.dma_bench import DMA_BENCHES

DEVICE = DMA_BENCHES["device"]
DDR4 = replace(DEVICE, clock_ns=0.625)
"""Ends in the clock of the far memory: its times are whole cycles."""

START = 1000


def columns_of(orders: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """Return cycles from the order to the column, and whether a row is opened, of (group, bank, row, write)."""
    timer = RowTimer(DDR4, DDR4.far, DDR4.far_memory, looks=1)
    found = []

    async def order(context: Any) -> None:
        context.set(timer.now, START * UNITS)
        for group, bank, row, write in orders:
            context.set(timer.address.bankgroup, group)
            context.set(timer.address.bank, bank)
            context.set(timer.address.row, row)
            context.set(timer.looks[0].bankgroup, group)
            context.set(timer.looks[0].bank, bank)
            context.set(timer.looks[0].row, row)
            context.set(timer.write, write)
            context.set(timer.go, 1)
            column = context.get(timer.column)
            assert context.get(timer.ready[0]) <= column
            found.append((column // UNITS - START, context.get(timer.opens)))
            assert column % UNITS == 0
            await context.tick()

    simulator = Simulator(timer)
    simulator.add_clock(1e-9)
    simulator.add_testbench(order)
    simulator.run()
    return found


def test_columns_of_open_rows_groups_and_directions() -> None:
    """DDR4: n_rcd 24, n_ccdl 8, n_ccds 4, n_rtw 14, n_cwl + n_bl + n_wtrl 32, n_rtpl 12, n_rp 24, n_ras 52, n_rc 76."""
    orders = [
        ((0, 0, 1, 0), (24, 1)),  # opened
        ((0, 0, 1, 0), (32, 0)),  # n_ccdl behind
        ((1, 0, 1, 0), (36, 1)),  # opened at 4 by n_rrds, ready at 28; n_ccds behind
        ((1, 0, 1, 1), (50, 0)),  # n_rtw behind
        ((0, 0, 1, 0), (82, 0)),  # 32 behind the write
        ((0, 0, 2, 0), (142, 1)),  # closed at 82 + 12, opened at 118
        ((1, 0, 3, 0), (146, 1)),  # written at 50, closed at 50 + 20 + 24, opened at 118
    ]
    assert columns_of([order for order, _ in orders]) == [wanted for _, wanted in orders]


def test_the_fifth_row_waits_for_the_first_of_four() -> None:
    """Opened at 0, 4, 8 and 12, the fifth at n_faw 26; the sixth, of the group of the first, 4 behind."""
    orders = [(0, 0, 1, 0), (1, 0, 1, 0), (2, 0, 1, 0), (3, 0, 1, 0), (0, 1, 1, 0), (1, 1, 1, 0)]
    assert columns_of(orders) == [(24, 1), (28, 1), (32, 1), (36, 1), (50, 1), (54, 1)]


@pytest.mark.parametrize("waiting", [4, 32])
def test_so_many_reads_wait_in_a_channel(waiting: int) -> None:
    """While time stands still, columns of one bank are ordered for 24, 32, 40 and 48: the last is 48 cycles ahead."""
    channel = BenchChannel(DDR4, DDR4.far, replace(DDR4.far_memory, reads_waiting=waiting))
    taken = 0

    async def drive(context: Any) -> None:
        nonlocal taken
        context.set(channel.fetch.valid, 1)
        for _ in range(60):
            taken += context.get(channel.fetch.ready)
            await context.tick()

    simulator = Simulator(channel)
    simulator.add_clock(1e-9)
    simulator.add_testbench(drive)
    simulator.run()
    assert taken == 4 + waiting


@pytest.mark.parametrize(("beats", "cycles"), [(1, 1), (2, 5), (1, 4), (3, 7)])
def test_the_link_takes_so_many_beats_and_brings_them_later(beats: int, cycles: int) -> None:
    link = BenchLink(8, 5)
    taken, came = [], []

    async def drive(context: Any) -> None:
        context.set(link.beats, beats)
        context.set(link.cycles, cycles)
        context.set(link.i.valid, 1)
        for cycle in range(10 * cycles):
            context.set(link.i.payload, cycle % 256)
            if context.get(link.o.valid):
                came.append((cycle, context.get(link.o.payload)))
            if context.get(link.i.ready):
                taken.append(cycle)
            await context.tick()
        assert context.get(link.offered) == len(taken) == 10 * beats

    simulator = Simulator(link)
    simulator.add_clock(1e-9)
    simulator.add_testbench(drive)
    simulator.run()
    assert taken == [cycle for cycle in range(10 * cycles) if (cycle + 1) * beats // cycles > cycle * beats // cycles]
    assert came == [(cycle + 5, cycle % 256) for cycle in taken if cycle + 5 < 10 * cycles]


def test_what_is_no_bench_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^params must be a DmaBenchParams, not 3$"):
        DmaBench(3)
    with pytest.raises(TypeError, match=r"^bench must be a DmaBenchParams, not 3$"):
        RowTimer(3, DEVICE.far, DEVICE.far_memory, looks=0)
    with pytest.raises(ValueError, match=r"^cycles must be at least 1, not 0$"):
        Wire(8, 0)


def test_what_is_for_simulation_says_so() -> None:
    assert DmaBench.simulation_only
    assert BenchLink.simulation_only
