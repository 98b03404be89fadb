"""Rates of both ends of the DMA at the sizes of a device: tokens of 512 bytes over beats of 32 bytes."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from golden.dma.compression import BlockCompression
from golden.dma.descriptors import Status
from golden.formats import FP16
from golden.kv.address_map import AddressMap, Level
from hw.dma_engine_params import DmaParams
from hw.dma_params import AddressParams, CompressionParams, LinkParams, PathParams
from hw.interface.dma_layouts import fetch_address_layout
from hw.payloads import unpack
from tests.helpers.dma import World
from tests.helpers.dma_ends import ENDS, End

if TYPE_CHECKING:
    from tests.helpers.streams import StreamBench

__all__ = ["DEVICE", "SIZES", "RowWorld", "rates", "run"]

_COLUMNS = Level("column", 16)
_NEAR = AddressMap("near", (Level("byte", 32), _COLUMNS, Level("column", 4), Level("bank", 16), Level("row", 16)), 2)
_FAR = AddressMap(
    "far",
    (Level("byte", 32), Level("bank", 4), Level("column", 4), Level("column", 16), Level("bank", 4), Level("row", 16)),
    3,
)
"""Slots in one row of one bank, as HBM's are token-major, and slots over four banks, as a DIMM's are interleaved."""


def _ends(**sizes: int) -> tuple[DmaParams, DmaParams]:
    path = PathParams(
        compression=CompressionParams(compression=BlockCompression(fmt=FP16, block=32), lanes=16),
        link=LinkParams(window=16),
        payload_beats=16,
    )
    return tuple(
        DmaParams(
            space=AddressParams(space=space),
            path=path,
            groups=("bank",),
            rows=("row",),
            reorder_depth=64,
            memory=number,
            peer=1 - number,
            **sizes,
        )
        for number, space in enumerate((_NEAR, _FAR))
    )


DEVICE = _ends()
"""Both ends with everything: 64 copies in flight."""

SIZES = {
    "device": DEVICE,
    "no packing": tuple(replace(one, run_frames=1) for one in DEVICE),
    "no reorder": tuple(replace(one, reorder_depth=1) for one in DEVICE),
}
"""The same with flits of its own for each token, and with reads in the order of addresses."""

CLOCK_NS = 2 * 0.769
"""The ends' clock: half of that of HBM3-5200, at which the logic beside it runs."""

ROW_MISS_CYCLES = {"near": ceil((19 + 19) * 0.769 / CLOCK_NS), "far": ceil((24 + 24) * 0.625 / CLOCK_NS)}
"""Precharge and activation: HBM3 as the near end, DDR4-3200 as the far one (arXiv:2602.11521, table 1)."""

COLUMN_CYCLES = {"near": ceil(4 * 0.769 / CLOCK_NS), "far": ceil(8 * 0.625 / CLOCK_NS)}
"""From column to column of one bank (tCCD_L of the same table)."""

_CAS_CYCLES = 20
_QUEUE_CYCLES = 24
"""Reads that a memory has taken and not begun, in cycles of its data bus: then it takes no more."""


class RowWorld(World):
    """Memories with open rows: a column a cycle in the order in which reads come, each when its bank can give it."""

    def __init__(self, bench: StreamBench, params: tuple[DmaParams, DmaParams], *, seed: int) -> None:
        super().__init__(bench, params, seed=seed)
        self.open_rows: dict[tuple[str, int], int] = {}
        self.bank_free: dict[tuple[str, int], int] = {}
        self.bus_free = dict.fromkeys(ENDS, 0)
        self.due: dict[str, deque[tuple[int, dict[str, int]]]] = {name: deque() for name in ENDS}
        self.rows_opened = dict.fromkeys(ENDS, 0)

    def readable(self, end: End) -> list[dict[str, int]]:
        """Take the reads whose columns are there."""
        name, now = end.name, self.bench.cycle
        for told in end.reads:
            where = unpack(fetch_address_layout(end.params), told["address"])
            bank, row = (name, where["bank"]), where["row"]
            start = max(now, self.bank_free.get(bank, 0))
            if self.open_rows.get(bank) != row:
                self.open_rows[bank] = row
                self.rows_opened[name] += 1
                start += ROW_MISS_CYCLES[name]
            self.bus_free[name] = max(self.bus_free[name] + 1, start)
            self.bank_free[bank] = self.bus_free[name] + COLUMN_CYCLES[name]
            self.due[name].append((self.bus_free[name] + _CAS_CYCLES, told))
        end.reads.clear()
        self.bench.stall(f"{name}_fetch", float(self.bus_free[name] > now + _QUEUE_CYCLES))
        due, found = self.due[name], []
        while due and due[0][0] <= now:
            found.append(due.popleft()[1])
        return found


async def run(world: World, *, tokens: int, run: int, compressed: bool) -> None:
    """Move ``tokens`` both ways at once, in runs of so many that lie together, the runs in any order.

    The link takes a beat in 2 of 5 cycles, so that it and nothing else is what tokens wait for.
    """
    bench, params = world.bench, world.ends["near"].params
    await bench.reset()
    world.memory_delay = 0.0
    waiting: dict[str, list[list[tuple[int, int]]]] = {}
    given = dict.fromkeys(ENDS, 0)
    for name in ENDS:
        size = world.ends[name].params.space.space.slot_bytes
        for _ in range(tokens):
            world.append(name)
        starts = [start * size for start in range(0, tokens, run)]
        world.random.shuffle(starts)
        many = 1 if run > 1 else world.ends[name].params.max_segments
        waiting[name] = [
            [(start, run * size) for start in starts[place : place + many]] for place in range(0, len(starts), many)
        ]
        bench.stall(f"{name}_sending", 0.6)
    tags = sum(len(lists) for lists in waiting.values())
    while len(world.completions) < tags:
        for number, name in enumerate(ENDS):
            ended = sum(tag % 2 == number for tag in world.completions)
            if waiting[name] and given[name] - ended < params.queue_depth:
                peer = world.ends[name].params.peer
                tag = 2 * given[name] + number
                world.submit(name, tag, waiting[name].pop(0), move=True, compressed=compressed, destination=peer)
                given[name] += 1
        await world.step()
        assert bench.cycle < 200 * params.columns * tokens
    assert {one.status for one in world.completions.values()} == {Status.OK}
    world.check()


def rates(world: World) -> dict[str, float]:
    """Return for each direction the bytes of tokens over those that the link could have moved meanwhile.

    What is counted lies between a fifth of the columns written and the last tenth.
    """
    found = {}
    for name in ENDS:
        written = world.bench.trace(f"{world.ends[name].peer}_write").transfers
        first, last = len(written) // 5, len(written) * 9 // 10
        ready = world.bench.trace(f"{name}_sending").ready[written[first] : written[last]].sum()
        found[name] = round(float((last - first) / ready), 4)
    return found
