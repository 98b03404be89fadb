"""The smallest bench of two ends of the DMA: tokens of 32 bytes in beats of 8, memories of two channels."""

from __future__ import annotations

from dataclasses import replace

from golden.kv.address_map import AddressMap, Level
from hw.dma_bench_params import DmaBenchParams, OpenRowParams
from hw.dma_params import AddressParams
from hw.presets.dma import TINY_END
from hw.presets.dram import DRAM_TIMINGS

__all__ = ["LINK_CYCLES", "TINY_BENCH"]

LINK_CYCLES = 3

_BYTE, _CHANNEL = Level("byte", 8), Level("channel", 2)
_NEAR = AddressMap(
    "near",
    (_BYTE, Level("column", 4), _CHANNEL, Level("column", 2), Level("bankgroup", 2), Level("bank", 2), Level("row", 4)),
    2,
)
_FAR = AddressMap(
    "far",
    (_BYTE, Level("bankgroup", 2), Level("column", 2), _CHANNEL, Level("column", 4), Level("bank", 2), Level("row", 4)),
    3,
)
_ENDS = [
    replace(TINY_END, space=AddressParams(space=space), groups=("bankgroup", "bank"), memory=number, peer=1 - number)
    for number, space in enumerate((_NEAR, _FAR))
]

TINY_BENCH = DmaBenchParams(
    near=_ENDS[0],
    far=_ENDS[1],
    near_memory=OpenRowParams(timing=DRAM_TIMINGS["hbm3-5200-pam"].spec, groups=("bankgroup",)),
    far_memory=OpenRowParams(timing=DRAM_TIMINGS["ddr4-3200"].spec, groups=("bankgroup",)),
    clock_ns=1.538,
    link_cycles=LINK_CYCLES,
)
