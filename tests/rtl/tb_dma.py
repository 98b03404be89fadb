"""cocotb tests of both ends of the DMA."""

from __future__ import annotations

import logging
from typing import Any

import cocotb

from golden.dma.descriptors import Status
from tests.helpers import dma_cycles, dma_failures, dma_runs
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.dma import World
from tests.helpers.dma_ends import ENDS, Faults
from tests.helpers.rtl import case


@cocotb.test()
@cocotb.parametrize(
    pauses=[(0.0, 0.0, 0.0), (0.3, 0.3, 0.0), (0.0, 0.6, 0.01), (0.2, 0.1, 0.02)],
)
async def as_the_golden_mover(dut: Any, pauses: tuple[float, float, float]) -> None:
    idle, stall, faults = pauses
    bench = await CocotbBench.start(dut)
    some = Faults(link=faults, read=faults / 2, write=faults / 2)
    world = World(bench, dma_runs.SMALL, seed=cocotb.RANDOM_SEED, faults=some)
    await dma_runs.traffic(world, count=case()["descriptors"] // 4, idle=idle, stall=stall)
    logging.getLogger("cocotb").info(
        "%d cycles, retries %d %d", bench.cycle, *(int(getattr(dut, f"{name}_retries").value) for name in ENDS)
    )
    assert not any(getattr(dut, f"{name}_down").value for name in ENDS)


@cocotb.test()
async def refusals(dut: Any) -> None:
    """Each has the status of the golden model's rules, worked out by hand; and as many descriptors as there is room."""
    found = await dma_failures.refused(await CocotbBench.start(dut))
    statuses = [one.status for one in found]
    assert statuses[:12] == [
        Status.ZERO_LENGTH,
        Status.ZERO_LENGTH,
        Status.UNMAPPED,
        Status.UNMAPPED,
        Status.UNMAPPED,
        Status.MISALIGNED,
        Status.MISALIGNED,
        Status.OVERLAP,
        Status.OVERLAP,
        Status.SAME_PLACE,
        Status.ZERO_LENGTH,
        Status.QUEUE_FULL,
    ]
    # Of five descriptors three are accepted; of their slots the first alone holds a token.
    assert statuses[12:] == [Status.OK, Status.UNMAPPED, Status.UNMAPPED, Status.QUEUE_FULL, Status.QUEUE_FULL]
    assert [one.done for one in found] == [0] * 12 + [1, 0, 0, 0, 0]


@cocotb.test()
async def destination_full(dut: Any) -> None:
    found = await dma_failures.full(await CocotbBench.start(dut))
    assert (found.status, found.done) == (Status.DESTINATION_FULL, 18)


@cocotb.test()
@cocotb.parametrize(fault=["unreadable", "spoilt"])
async def a_token_that_fails(dut: Any, fault: str) -> None:
    first, second = await dma_failures.unusable(await CocotbBench.start(dut), fault)
    status = Status.READ_ERROR if fault == "unreadable" else Status.CRC_MISMATCH
    assert (first.status, first.done) == (status, 2)
    assert (second.status, second.done) == (Status.OK, 3)


@cocotb.test()
@cocotb.parametrize(after=[0, 50])
async def link_down(dut: Any, after: int) -> None:
    for streams in ({"sending", "acknowledgement"}, {"sending"}, {"acknowledgement"}):
        found = await dma_failures.cut(await CocotbBench.start(dut), streams, after)
        for one in found.values():
            assert one.status in (Status.LINK_DOWN, Status.OK)
            assert (one.status is Status.OK) == (one.done == 7)
        assert Status.LINK_DOWN in [one.status for one in found.values()]


@cocotb.test()
async def reset_in_any_cycle(dut: Any) -> None:
    cuts = [1, 5, 9, 14, 20, 26, 33, 41, 52, 60, 71, 83, 97, 110, 131, 150, 180, 220, 270, 340]
    world = World(await CocotbBench.start(dut), dma_runs.SMALL, seed=len(cuts))
    await dma_failures.reset_anywhere(world, cuts)


@cocotb.test()
async def cycles_of_the_formulas(dut: Any) -> None:
    await dma_cycles.assert_cycles(await CocotbBench.start(dut), dma_runs.SMALL)
