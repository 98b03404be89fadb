"""Promise: sizes that an end of the DMA can't have are refused with what was wanted and given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from golden.kv.address_map import AddressMap, Level
from hw.dma_params import AddressParams, PathParams
from hw.interface.dma import Dma
from hw.presets.dma import STACK_END, TINY_END
from hw.verilog import convert


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("copies", 6, "copies must be a power of two, not 6"),
        ("copies", 2, "copies must be at least 4, not 2"),
        ("regions", 6, "regions must be a power of two, not 6"),
        ("attempts", 1, "attempts must be at least 2, not 1"),
        ("queue_depth", 1, "queue_depth must be at least 2, not 1"),
        ("max_segments", 1, "max_segments must be at least 2, not 1"),
        ("run_frames", 0, "run_frames must be at least 1, not 0"),
        ("reorder_depth", 0, "depth must be at least 1, not 0"),
        ("memory", 256, "memory must be from 0 to 255, not 256"),
        ("peer", 0, "peer must be another memory than 0, not 0"),
        ("groups", ("plane",), "groups and rows must be of column, bank, row, not 'plane'"),
        ("path", PathParams(), "columns of space must have the 32 bytes of a beat, not 8"),
    ],
)
def test_sizes_that_cannot_be(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        replace(TINY_END, **{name: value})


def test_parts_of_another_kind() -> None:
    for name, kind in (("space", "AddressParams"), ("path", "PathParams")):
        with pytest.raises(TypeError, match=rf"^{name} must be of {kind}, not 3$"):
            replace(TINY_END, **{name: 3})


def test_slots_of_odd_bytes() -> None:
    space = AddressMap("odd", (Level("byte", 8), Level("bank", 2), Level("column", 3)), 3)
    with pytest.raises(ValueError, match=r"^slots of space must have a power of two bytes, not 48$"):
        replace(TINY_END, space=AddressParams(space=space), rows=("column",))


def test_widths_of_a_stack() -> None:
    """16 GB of 512-byte tokens are 2^25; of 16 columns each; 16 banks of four bank groups are what has one open row."""
    assert (STACK_END.columns, STACK_END.source_bits, STACK_END.copy_bits, STACK_END.verdicts) == (16, 25, 6, 64)
    assert STACK_END.reorder.groups == 16
    assert STACK_END.address_bits == 36


def test_the_least_of_everything_is_hardware_too():
    """Verilog has no vectors of no bits, which counters up to one would be."""
    counts = dict.fromkeys(("attempts", "queue_depth", "max_segments"), 2)
    params = replace(TINY_END, **counts, run_frames=1, verdict_wait_cycles=1, silence_cycles=1)
    assert "[-1:0]" not in convert(Dma(params), name="dma")
