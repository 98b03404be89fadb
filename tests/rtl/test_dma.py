"""Both ends of the DMA under Verilator: a thousand descriptors at both ends at once, each beside the golden mover.

Scenarios (:mod:`tests.helpers.dma_runs`, :mod:`tests.helpers.dma_failures`): random moves and copies of tokens that are
read meanwhile, raw and in 8 bits, with idles and back-pressure on every stream, damaged and lost flits, columns that
can't be read or are written wrong; every reason to refuse a descriptor; a destination that is full, tokens and slots
that fail at every attempt, a link that goes down in either direction, a reset in any cycle. Nothing is lost, doubled or
leaked, and no copy in the table is ever written over.

The same with flash at the far end (:mod:`tests.helpers.dma_nand`): columns gather in its write buffer, which answers
the read-back; dies that program, collect and erase let reads wait and hold back what is written; pages are read whole.
What is written equals what the golden mover writes to :class:`golden.dma.nand.NandMemory`, write amplification is that
of a naive recount, read amplification what was worked out by hand.
"""

from __future__ import annotations

from tests.helpers.dma_ends import DmaPair
from tests.helpers.dma_runs import SMALL
from tests.helpers.rtl import run_cocotb


def test_dma():
    run_cocotb(DmaPair, SMALL, module="tests.rtl.tb_dma", expected=12, case={"descriptors": 1000})


def test_flash_at_the_far_end():
    run_cocotb(DmaPair, SMALL, module="tests.rtl.tb_dma_nand", expected=6, case={"descriptors": 300})
