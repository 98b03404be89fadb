"""Promise: what a slot each way takes of a memory's buses is counted right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hw.presets.dma_bench import DMA_BENCHES
from hw.timing.dma_memory import bus_cycles

DEVICE = DMA_BENCHES["device"]


def test_buses_by_hand() -> None:
    """16 columns over 4 channels, three times; 32 writes, of 8 slots, between a turn to write and one to read.

    HBM3: 12 columns of 2 cycles, and an eighth of 17 - 2 and of 6 + 2 + 11 - 2. DDR4: 12 of 4, 14 - 4, 16 + 4 + 12 - 4.
    """
    assert bus_cycles(DEVICE, "near") == pytest.approx((24 + 32 / 8) / 2)
    assert bus_cycles(DEVICE, "far") == pytest.approx((48 + 38 / 8) * 0.625 / 1.538)


def test_long_slots_and_longer_turns() -> None:
    """128 columns take eight times as much; half as many writes in a row turn twice as often."""
    assert bus_cycles(DMA_BENCHES["long-slots"], "far") == pytest.approx(8 * bus_cycles(DEVICE, "far"))
    shorter = replace(DEVICE, near_memory=replace(DEVICE.near_memory, write_batch=16))
    assert bus_cycles(shorter, "near") == pytest.approx((24 + 64 / 8) / 2)
