"""cocotb tests of both ends of the DMA where the far one has flash."""

from __future__ import annotations

import logging
from random import Random
from typing import TYPE_CHECKING, Any

import cocotb

from golden.dma.descriptors import Status
from tests.helpers import dma_failures, dma_runs
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.dma_ends import Faults
from tests.helpers.dma_nand import GEOMETRY, SCALE, NandWorld, recount
from tests.helpers.rtl import case

if TYPE_CHECKING:
    from golden.dma.descriptors import Completion

SLOT_BYTES = 32


def _report(world: NandWorld) -> None:
    """Log what the flash did, and demand that an independent count comes to the same."""
    logging.getLogger("cocotb").info("%s", world.flash.description())
    flash = world.flash.flash
    assert flash.written_slots == len(flash.order)
    programmed, erased = recount(flash.order)
    assert (flash.programmed_pages, flash.erased_blocks) == (programmed, erased)
    assert flash.write_amplification == programmed * GEOMETRY.page_slots / len(flash.order)


@cocotb.test()
@cocotb.parametrize(pauses=[(0.0, 0.0, 0.0), (0.2, 0.3, 0.01)])
async def as_the_golden_mover(dut: Any, pauses: tuple[float, float, float]) -> None:
    idle, stall, faults = pauses
    some = Faults(link=faults, read=faults / 2, write=faults / 2)
    world = NandWorld(await CocotbBench.start(dut), dma_runs.SMALL, seed=cocotb.RANDOM_SEED, faults=some)
    count = case()["descriptors"] // 2
    await dma_runs.traffic(world, count=count, idle=idle, stall=stall)
    _report(world)
    flash, behind = world.flash.flash, world.flash.behind
    columns = world.flash.params.columns
    # Each slot was gathered from its columns, beside the seven that were there from the beginning.
    assert world.bench.count("far_write") == columns * (flash.written_slots - 7)
    assert (
        world.bench.count("far_check") + world.bench.count("far_fetch") == behind.buffer_columns + behind.page_columns
    )
    # No page is read that nothing was asked of.
    assert flash.read_pages <= behind.page_columns
    # A few descriptors do not fill it once.
    if count >= 150:
        assert flash.erased_blocks > 5
        assert flash.write_amplification > 1.0
        assert behind.conflict_columns > 0


async def _ended(world: NandWorld, tag: int) -> Completion:
    while tag not in world.completions:
        await world.step()
        assert world.bench.cycle < 20000
    world.check()
    return world.completions[tag]


@cocotb.test()
async def once_there_and_back(dut: Any) -> None:
    """Twelve tokens there cost six programs, and their read-back no page; back in one go each page is read once.

    Slots 0 and 2, 1 and 3, 4 and 6 ... share a page: one die has the even ones. 0, 4 and 8 alone are of three pages.
    """
    world = NandWorld(await CocotbBench.start(dut), dma_runs.SMALL, seed=1)
    flash, behind = world.flash.flash, world.flash.behind
    await world.bench.reset()
    world.memory_delay = 0.0
    for _ in range(12):
        world.append("near")
    everything = [(0, 12 * SLOT_BYTES)]
    world.submit("near", 0, everything, move=True, compressed=False, destination=1)
    await _ended(world, 0)
    assert world.homes("far") == list(range(12))
    assert (flash.programmed_pages, flash.erased_blocks, flash.write_amplification) == (6, 0, 1.0)
    assert (behind.buffer_columns, behind.page_columns, behind.conflict_columns) == (12 * 4, 0, 0)
    for _ in range(500):
        await world.step()
    world.submit("far", 1, everything, move=False, compressed=False, destination=0)
    await _ended(world, 1)
    assert (flash.read_pages, behind.page_columns, behind.read_amplification) == (6, 12 * 4, 1.0)
    _report(world)


@cocotb.test()
async def a_lone_token_costs_its_page(dut: Any) -> None:
    """Three of twelve tokens, each in another page of two: twice the columns that are asked for are read."""
    world = NandWorld(await CocotbBench.start(dut), dma_runs.SMALL, seed=1)
    await world.bench.reset()
    for _ in range(12):
        world.append("far")
    for _ in range(1000):
        await world.step()
    segments = [(slot * SLOT_BYTES, SLOT_BYTES) for slot in (0, 4, 8)]
    world.submit("far", 0, segments, move=True, compressed=False, destination=0)
    await _ended(world, 0)
    assert (world.flash.flash.read_pages, world.flash.behind.read_amplification) == (3, 2.0)
    _report(world)


@cocotb.test()
async def reset_in_any_cycle(dut: Any) -> None:
    """Flash keeps what was verified, wherever it is by then, and goes on with what it does."""
    random = Random(cocotb.RANDOM_SEED)
    cuts = [random.randrange(1, 500) for _ in range(30)]
    world = NandWorld(await CocotbBench.start(dut), dma_runs.SMALL, seed=cocotb.RANDOM_SEED)
    await dma_failures.reset_anywhere(world, cuts)
    _report(world)
    assert world.flash.flash.erased_blocks > 0


@cocotb.test()
async def flash_that_is_slower_than_patience(dut: Any) -> None:
    """Hold the second page of a die up by a program of 3,657 cycles, where 3,000 without a verdict are the end.

    That counts as a link that is down, though the link itself waits for a receiver that is full: nothing is lost, what
    was verified is there, and two more pages move after a reset, once nothing is in their way.
    """
    world = NandWorld(await CocotbBench.start(dut), dma_runs.SMALL, seed=1, scale=SCALE / 30)
    await world.bench.reset()
    for _ in range(12):
        world.append("near")
    world.submit("near", 0, [(0, 12 * SLOT_BYTES)], move=True, compressed=False, destination=1)
    first = await _ended(world, 0)
    assert first.status is Status.LINK_DOWN
    assert world.bench.cycle > dma_runs.SMALL[0].silence_cycles
    # Pages 0 2 and 1 3 are being programmed, 4 and 5 wait in the write buffers, 6 would fill a page.
    assert first.done == 6
    await world.reset()
    world.check()
    assert world.homes("far") == list(range(6))
    for _ in range(8000):
        await world.step()
    world.submit("near", 1, [(6 * SLOT_BYTES, 4 * SLOT_BYTES)], move=True, compressed=False, destination=1)
    second = await _ended(world, 1)
    assert (second.status, second.done) == (Status.OK, 4)
    _report(world)
