"""Promise: a bench of the DMA is what its ends and memories allow, and its times are those of the timing presets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hw.dma_bench_params import UNITS, OpenRowParams
from hw.presets.dma_bench import DMA_BENCHES
from hw.presets.dram import DRAM_TIMINGS

DEVICE = DMA_BENCHES["device"]


def test_times_are_rounded_up_to_parts_of_a_cycle() -> None:
    """A cycle of the ends is two of HBM3, whose tCCD_S of 2 is one; DDR4's of 4 x 0.625 ns is 1.6255 of 1.538 ns."""
    assert DEVICE.clock_ns == 1.538
    assert DEVICE.units(DEVICE.near_memory, 2) == UNITS == 256
    assert DEVICE.units(DEVICE.near_memory, 19) == 9.5 * 256
    assert DEVICE.units(DEVICE.far_memory, 4) == 417
    assert 416 < 2.5 / 1.538 * 256 < 417
    assert DEVICE.units(DEVICE.far_memory, 76) == 7907
    assert 7906 < 47.5 / 1.538 * 256 < 7907


def test_memories_have_the_banks_of_their_organisations() -> None:
    """16 banks and two ranks a channel; 1 KB rows, of four chips together at the far end."""
    for name, row_columns in (("near", 32), ("far", 128)):
        for bench in DMA_BENCHES.values():
            sizes = getattr(bench, name).space.space.sizes
            assert (sizes["channel"], sizes["rank"], sizes["bankgroup"], sizes["bank"]) == (4, 2, 4, 4)
            assert sizes["column"] == row_columns
            assert sizes["byte"] == 32


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        ({"clock_ns": 0.0}, ValueError, "clock_ns must be finite and above 0, not 0.0"),
        ({"clock_ns": True}, TypeError, "clock_ns must be a number, not True"),
        ({"link_cycles": 0}, ValueError, "link_cycles must be at least 1, not 0"),
        ({"near": 3}, TypeError, "near must be a DmaParams, not 3"),
        ({"far_memory": None}, TypeError, "far_memory must be a OpenRowParams, not None"),
        ({"far": replace(DEVICE.far, peer=7)}, ValueError, "memory of far must be 1 and its peer 0"),
        ({"far": DMA_BENCHES["long-slots"].far}, ValueError, "columns of far must be the 16 of near, not 128"),
    ],
)
def test_what_cannot_be_is_refused(part: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        replace(DEVICE, **part)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"reads_waiting": 1}, "reads_waiting must be at least 2, not 1"),
        ({"queue_cycles": 0}, "queue_cycles must be at least 1, not 0"),
        ({"write_batch": 1}, "write_batch must be at least 2, not 1"),
        ({"write_batch": 12}, "write_batch must be a power of two, not 12"),
    ],
)
def test_queues_that_cannot_be_are_refused(part: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        OpenRowParams(timing=DRAM_TIMINGS["ddr4-3200"].spec, **part)


def test_a_memory_has_the_coordinates_that_it_names() -> None:
    with pytest.raises(ValueError, match=r"^coordinates of far_memory must be of .*, not 'plane'$"):
        replace(DEVICE, far_memory=replace(DEVICE.far_memory, channel="plane"))
