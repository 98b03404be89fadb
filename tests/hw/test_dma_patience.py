"""Promise: an end before flash waits longer than any die holds a token up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden.dma.nand import NandMemory
from golden.dma.nand_geometry import NandGeometry, NandTimes
from hw.presets.dma import STACK_END, before_flash
from hw.presets.pam import SSD_PIM
from hw.presets.value import Value

GEOMETRY = NandGeometry(dies=1, blocks=4, pages=6, page_slots=2)


def test_patience_by_hand() -> None:
    """256 times 30 + 750 us, 3.8 ms and 8 reads of 30 us are 203.72 ms, in cycles of 1.538 ns."""
    page = SSD_PIM.page
    assert page is not None
    assert page.held_s == pytest.approx(203.48e-3)
    end = before_flash(STACK_END, page, clock_ns=1.538)
    assert end.silence_cycles == STACK_END.silence_cycles + 132_457_738
    assert replace(end, silence_cycles=STACK_END.silence_cycles) == STACK_END


def test_no_write_is_held_longer() -> None:
    """The fullest memory that there may be, overwritten at random: each page is written when its die is idle again."""
    page = SSD_PIM.page
    assert page is not None
    small = replace(page, pages_per_block=Value(GEOMETRY.pages, "1", "as small as the memory here"))
    times = NandTimes(
        read_s=small.page_read_s.number, program_s=small.page_program_s.number, erase_s=small.block_erase_s.number
    )
    memory = NandMemory("flash", GEOMETRY.max_slots, 1, GEOMETRY, times)
    longest = 0.0
    for slot in np.random.default_rng(1).integers(0, GEOMETRY.max_slots, 5000):
        memory.now_s = memory.busy_until_s(0)
        memory.write(int(slot), b"")
        longest = max(longest, memory.busy_until_s(0) - memory.now_s)
    # A block of which all but a page's slots were to be moved was among them.
    assert longest == pytest.approx(small.held_s)
