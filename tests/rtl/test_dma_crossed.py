"""Both ends of the DMA with crossings to their link, under Verilator in two and three clocks of any ratio and phase.

Random moves and copies with idles, back-pressure and faults end as the golden mover's do, whatever the clocks; without
faults the link sends nothing twice, as its timeout covers the crossings; a reset in any cycle, that each clock begins
and ends when it likes, loses nothing.
"""

from __future__ import annotations

from tests.helpers.dma_crossed import CrossedPair
from tests.helpers.dma_runs import CROSSED
from tests.helpers.rtl import run_cocotb


def test_dma_crossed():
    run_cocotb(CrossedPair, CROSSED, module="tests.rtl.tb_dma_crossed", expected=12, case={"descriptors": 400})
