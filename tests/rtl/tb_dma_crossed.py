"""cocotb tests of two ends of the DMA in clocks that have nothing to do with each other, nor with the link's."""

from __future__ import annotations

import logging
from random import Random
from typing import Any

import cocotb

from hw.timing.dma_crossed import round_trip_cycles
from tests.helpers import dma_failures, dma_runs
from tests.helpers.dma import World
from tests.helpers.dma_clocks import ClocksBench, SettledBench
from tests.helpers.dma_crossed import DOMAINS
from tests.helpers.dma_ends import ENDS, Faults
from tests.helpers.rtl import case

HBM_PS, DDR_PS, ONE_PS = 1538, 2500, 2000
"""Half the clock of HBM3-5200, a quarter of that of DDR4-3200, and one for all."""

CLOCKS = [(HBM_PS, DDR_PS, 1000), (HBM_PS, DDR_PS, 5300), (ONE_PS, ONE_PS, ONE_PS), (1000, 4700, 1538)]
"""Periods of near end, far end and link: a fast link, a slow one, three clocks alike in any phase, a slow end."""


def _periods(clocks: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(DOMAINS, clocks, strict=True))


@cocotb.test()
@cocotb.parametrize(clocks=CLOCKS, pauses=[(0.0, 0.0, 0.0), (0.2, 0.2, 0.01)])
async def as_the_golden_mover(dut: Any, clocks: tuple[int, int, int], pauses: tuple[float, float, float]) -> None:
    idle, stall, faults = pauses
    some = Faults(link=faults, read=faults / 2, write=faults / 2)
    bench = await SettledBench.start(dut, dma_runs.CROSSED, _periods(clocks))
    world = World(bench, dma_runs.SMALL, seed=cocotb.RANDOM_SEED, faults=some)
    await dma_runs.traffic(world, count=case()["descriptors"] // 8, idle=idle, stall=stall)
    again = [int(getattr(dut, f"{name}_again").value) for name in ENDS]
    logging.getLogger("cocotb").info("%d cycles, sent again %s", world.bench.cycle, again)
    assert not any(getattr(dut, f"{name}_down").value for name in ENDS)
    if not any(pauses):
        # Without faults nothing is sent twice: the timeout covers the crossings.
        near, far, link = (1e-12 * period for period in clocks)
        times = {"clock_s": near, "link_s": link, "peer_s": far, "wire_s": 2 * near}
        assert round_trip_cycles(dma_runs.CROSSED[0], **times) < dma_runs.CROSSED[0].dma.path.link.timeout_cycles
        assert again == [0, 0]


@cocotb.test()
@cocotb.parametrize(clocks=CLOCKS)
async def reset_in_any_cycle(dut: Any, clocks: tuple[int, int, int]) -> None:
    """Of all three, in any phase; each ends its own when it likes."""
    random = Random(cocotb.RANDOM_SEED)
    cuts = [random.randrange(1, 300) for _ in range(8)]
    bench = await ClocksBench.start(dut, dma_runs.CROSSED, _periods(clocks))
    await dma_failures.reset_anywhere(World(bench, dma_runs.SMALL, seed=cocotb.RANDOM_SEED), cuts)
