"""Ends of the DMA at the sizes of the unit presets."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from golden.dma.compression import BlockCompression
from golden.dma.flits import FlitFormat
from golden.formats import FP16
from golden.kv.address_map import AddressMap, Level
from hw.dma_engine_params import DmaParams
from hw.dma_params import AddressParams, CompressionParams, FlitParams, LinkParams, PathParams
from hw.memory.address_maps import stack_token_major
from hw.presets.dram import DRAM_ORGANISATIONS

if TYPE_CHECKING:
    from hw.presets.memory_device import PageTiming

__all__ = ["STACK_END", "TINY_END", "before_flash"]

STACK_END = DmaParams(
    space=AddressParams(space=stack_token_major(1, DRAM_ORGANISATIONS["hbm3-16gb"].spec, slot_bytes=512)),
    path=PathParams(link=LinkParams(window=16), payload_beats=16),
    groups=("bankgroup", "bank"),
    rows=("row",),
)
"""One HBM3 stack; key and value of one head of dimension 128 move together."""

TINY_END = DmaParams(
    space=AddressParams(
        space=AddressMap(
            "tiny",
            (Level("byte", 8), Level("column", 2), Level("bank", 2), Level("column", 2), Level("row", 8)),
            slot_levels=3,
        )
    ),
    path=PathParams(
        compression=CompressionParams(compression=BlockCompression(fmt=FP16, block=8), lanes=4),
        link=LinkParams(flit=FlitParams(flits=FlitFormat(32), beat_bytes=8), window=4, timeout_cycles=128),
        payload_beats=4,
    ),
    groups=("bank",),
    rows=("row",),
    reorder_depth=4,
    regions=2,
    copies=4,
    queue_depth=2,
    max_segments=2,
    verdict_wait_cycles=64,
    silence_cycles=4096,
)
"""Tokens of 32 bytes, in beats of 8: key and value of one head of dimension 8."""


def before_flash(end: DmaParams, page: PageTiming, *, clock_ns: float) -> DmaParams:
    """Return an end whose peer has flash: it waits for a verdict as long as a die may hold a token up.

    ``silence_cycles`` of the end are for the way there and back. To them come :attr:`PageTiming.held_s` and a page read
    for each slot that the peer gathers for what it sends, which may go first.

    Parameters
    ----------
    end : DmaParams
        The end, its peer one of the same sizes.
    page : PageTiming
        The peer's flash.
    clock_ns : float
        Clock of the end.
    """
    held_s = page.held_s + end.regions * page.page_read_s.number
    return replace(end, silence_cycles=end.silence_cycles + ceil(held_s / (clock_ns * 1e-9)))
