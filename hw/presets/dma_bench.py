"""Benches of the DMA: an HBM3 stack's end and a DIMM's, at the sizes and in the variants that rates are shown of."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from golden.kv.address_map import AddressMap, Level
from hw.dma_bench_params import DmaBenchParams, OpenRowParams
from hw.dma_engine_params import DmaParams
from hw.dma_params import AddressParams, LinkParams, PathParams
from hw.presets.dram import DRAM_TIMINGS

__all__ = ["DMA_BENCHES"]

_HBM3 = DRAM_TIMINGS["hbm3-5200-pam"].spec
_DDR4 = DRAM_TIMINGS["ddr4-3200"].spec
_ROWS = 64

_NEAR = AddressMap(
    "four pseudo-channels of HBM3, a slot in one row",
    (
        Level("byte", 32),
        Level("column", 16),
        Level("channel", 4),
        Level("column", 2),
        Level("bankgroup", 4),
        Level("bank", 4),
        Level("rank", 2),
        Level("row", _ROWS // 2),
    ),
    2,
)
"""Rows of 1 KB, 16 banks in four groups and two ranks, as ``hbm3-16gb`` has them; fewer channels and rows."""

_FAR = AddressMap(
    "four chips of DDR4 in lock step, four times, a slot over four banks",
    (
        Level("byte", 32),
        Level("bankgroup", 4),
        Level("column", 4),
        Level("channel", 4),
        Level("column", 32),
        Level("bank", 4),
        Level("rank", 2),
        Level("row", _ROWS // 4),
    ),
    3,
)
"""8-pin chips by JEDEC JESD79-4: rows of 1 KB, 16 banks in four groups; two ranks, as ``ddr4-32gb`` has them. Four
chips are 32 pins, whose burst of 8 has the 32 bytes of a column; their rows together have 4 KB. A DIMM has two of these
channels, here are those of two DIMMs."""

_NEAR_LONG = AddressMap(
    "four pseudo-channels of HBM3, a long slot over a row of each",
    (
        Level("byte", 32),
        Level("column", 4),
        Level("channel", 4),
        Level("column", 8),
        Level("bankgroup", 4),
        Level("bank", 4),
        Level("rank", 2),
        Level("row", _ROWS // 2),
    ),
    4,
)
_FAR_LONG = AddressMap(
    "four chips of DDR4 in lock step, four times, a long slot over four banks of each",
    (
        Level("byte", 32),
        Level("bankgroup", 4),
        Level("channel", 4),
        Level("column", 8),
        Level("column", 16),
        Level("bank", 4),
        Level("rank", 2),
        Level("row", _ROWS // 4),
    ),
    4,
)
"""Long slots lie over all channels: a column stream of one would wait for the channel that it is in."""


def _bench(near: AddressMap, far: AddressMap, *, payload_beats: int) -> DmaBenchParams:
    path = PathParams(link=LinkParams(window=8), payload_beats=payload_beats)
    ends = [
        DmaParams(
            space=AddressParams(space=space),
            path=path,
            groups=("channel", "bankgroup", "bank"),
            rows=("rank", "row"),
            reorder_depth=32,
            memory=number,
            peer=1 - number,
        )
        for number, space in enumerate((near, far))
    ]
    return DmaBenchParams(
        near=ends[0],
        far=ends[1],
        near_memory=OpenRowParams(timing=_HBM3),
        far_memory=OpenRowParams(timing=_DDR4),
        clock_ns=2 * _HBM3.clock_ns,
        link_cycles=16,
    )


_DEVICE = _bench(_NEAR, _FAR, payload_beats=16)


def _with(**sizes: int) -> DmaBenchParams:
    return replace(_DEVICE, near=replace(_DEVICE.near, **sizes), far=replace(_DEVICE.far, **sizes))


def _with_queues(reads_waiting: int) -> DmaBenchParams:
    near, far = (replace(memory, reads_waiting=reads_waiting) for memory in (_DEVICE.near_memory, _DEVICE.far_memory))
    return replace(_DEVICE, near_memory=near, far_memory=far)


DMA_BENCHES = MappingProxyType(
    {
        "device": _DEVICE,
        "long-slots": _bench(_NEAR_LONG, _FAR_LONG, payload_beats=128),
        "no-reorder": _with(reorder_depth=1),
        "no-packing": _with(run_frames=1),
        "long-queues": _with_queues(32),
    }
)
"""Benches by name: tokens of one head, tokens of eight heads in one slot, what takes part left out, and memories in
whose channels as many reads wait as in a controller's."""
