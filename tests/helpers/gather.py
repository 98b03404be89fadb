"""Scenarios of the gather unit, for both simulators: every run is held to the bytes of the ids and to the cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.retrieval.bursts import Rows, bursts
from hw.payloads import pack, unpack
from hw.timing.gather import GatherWork, cycles, predict
from hw.units.gather import burst_layout, rows_layout
from hw.units.top_k_layouts import selected_layout

if TYPE_CHECKING:
    from hw.gather_params import GatherParams
    from tests.helpers.streams import StreamBench

__all__ = ["Operation", "back_to_back", "faults", "one_slow_stream", "random_run", "reset_anywhere", "run"]


@dataclass
class Operation:
    """Ids, where their rows lie, and whether the operation came with a fault, or gets one."""

    params: GatherParams
    ids: list[int]
    rows: Rows
    came_faulty: bool = False
    gets_faulty: bool = False

    @classmethod
    def make(cls, params: GatherParams, kind: str, rng: np.random.Generator) -> Operation:
        """Return an operation of a kind, none of whose addresses overflows."""
        top = 1 << params.id_bits
        count = {"empty": 0, "one": 1}.get(kind, int(rng.integers(2, 30)))
        if kind == "run":
            start = int(rng.integers(0, top - count))
            ids = list(range(start, start + count))
        elif kind == "unordered":
            ids = rng.integers(max(0, top - 9), top, count).tolist()
        else:
            window = min(2 * count + 1, top)
            start = int(rng.integers(0, top - window + 1))
            ids = sorted((start + rng.permutation(window)[:count]).tolist())
        row = int(rng.integers(1, 1 << params.row_bits))
        stride = row if rng.random() < 0.7 else int(rng.integers(0, 1 << params.row_bits))
        space = (1 << params.address_bits) - (top - 1) * stride
        rows = Rows(
            base_bytes=int(rng.integers(0, space)),
            stride_bytes=stride,
            row_bytes=row,
            burst_rows=int(rng.integers(1, params.max_burst_rows + 1)),
        )
        return cls(params, ids, rows, bool(rng.random() < 0.3))

    def bursts(self) -> list[tuple[int, int, int]]:
        return [(burst.address_bytes, burst.length_bytes, burst.rows) for burst in bursts(self.ids, self.rows)]

    def items(self) -> list[tuple[int, int]]:
        """Return ids by row, as lane 0's and a mask: every other row begins with an id, the others where lanes end."""
        lanes = self.params.lanes
        found: list[tuple[int, int]] = []
        for number in self.ids:
            if found:
                first, mask = found[-1]
                place = number - first
                if 0 <= place < lanes and mask >> place == 0:
                    found[-1] = (first, mask | 1 << place)
                    continue
            first = number - number % lanes if len(found) % 2 else number
            found.append((first, 1 << number - first))
        return found

    def work(self) -> GatherWork:
        """Return what the timing model must know."""
        return GatherWork(
            tuple(mask.bit_count() for _, mask in self.items()), tuple(rows for _, _, rows in self.bursts())
        )

    def expected(self) -> list[int]:
        """Return the payloads of the bursts and of the end."""
        layout, wrap = burst_layout(self.params), (1 << self.params.address_bits) - 1
        items = [
            pack(layout, address=address & wrap, length=length, rows=rows, end=0, fault=0)
            for address, length, rows in self.bursts()
        ]
        return [*items, pack(layout, address=0, length=0, rows=0, end=1, fault=self.came_faulty or self.gets_faulty)]

    def send(self, bench: StreamBench, rows: float = 0.0, selected: float = 0.0) -> None:
        """Queue the operation's inputs."""
        payload = pack(
            rows_layout(self.params),
            base=self.rows.base_bytes,
            stride=self.rows.stride_bytes,
            row_bytes=self.rows.row_bytes,
            burst_rows=self.rows.burst_rows,
        )
        layout = selected_layout(self.params.id_bits, self.params.lanes)
        items = [pack(layout, first=first, lanes=mask, end=0, fault=0) for first, mask in self.items()]
        items.append(pack(layout, first=0, lanes=0, end=1, fault=self.came_faulty))
        bench.send("rows", [payload], idle=rows)
        bench.send("selected", items, idle=selected)


async def run(
    bench: StreamBench, operations: list[Operation], *, rows: float = 0, selected: float = 0, stall: float = 0
) -> None:
    """Run operations after a reset: the bytes read are those of the ids, the cycles those of the recurrence."""
    await bench.reset()
    for operation in operations:
        operation.send(bench, rows, selected)
    bench.stall("bursts", stall)
    expected = [item for operation in operations for item in operation.expected()]
    await bench.until(bursts=len(expected), timeout_cycles=50_000)
    await bench.advance(4)
    items = bench.items("bursts")
    assert items == expected

    # Row by row, without the golden model: every id's bytes are read once, in order.
    found = [unpack(burst_layout(operations[0].params), item) for item in items]
    for operation in operations:
        wanted = [operation.rows.base_bytes + number * operation.rows.stride_bytes for number in operation.ids]
        read: list[int] = []
        while not (burst := found.pop(0))["end"]:
            assert burst["length"] == burst["rows"] * operation.rows.row_bytes
            assert 1 <= burst["rows"] <= operation.rows.burst_rows
            read += [burst["address"] + place * operation.rows.row_bytes for place in range(burst["rows"])]
        assert read == [address & ((1 << operation.params.address_bits) - 1) for address in wanted]

    streams = ("rows", "selected", "bursts")
    predicted = predict([operation.work() for operation in operations], {name: bench.trace(name) for name in streams})
    for name in streams:
        assert predicted[name].tolist() == bench.trace(name).transfers.tolist(), name


async def back_to_back(bench: StreamBench, params: GatherParams) -> None:
    """Operations of every kind without a stall, then each alone: the closed form."""
    rng = np.random.default_rng(1)
    operations = [Operation.make(params, kind, rng) for kind in ("run", "some", "empty", "unordered", "one", "empty")]
    await run(bench, operations)
    for operation in operations:
        await run(bench, [operation])
        assert bench.trace("rows").transfers[0] == 0
        assert bench.trace("bursts").transfers[-1] + 1 == cycles(len(operation.ids))


async def random_run(
    bench: StreamBench, params: GatherParams, count: int, *, idle: float, stall: float, seed: int
) -> None:
    """Random operations with random pauses on every stream."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["run", "some", "unordered", "one", "empty"], count)
    operations = [Operation.make(params, str(kind), rng) for kind in kinds]
    await run(bench, operations, rows=idle, selected=idle, stall=stall)


async def one_slow_stream(bench: StreamBench, params: GatherParams, slow: str) -> None:
    """One stream moves in a tenth of the cycles."""
    rng = np.random.default_rng(2)
    operations = [Operation.make(params, kind, rng) for kind in ("some", "empty", "run", "one", "unordered")]
    await run(bench, operations, **{slow: 0.9})


async def faults(bench: StreamBench, params: GatherParams) -> None:
    """Tell at the end of its operation, of that one alone, that an address doesn't fit; the largest one does."""
    most = (1 << params.address_bits) - 1

    def at(base_bytes: int) -> Rows:
        return Rows(base_bytes=base_bytes, stride_bytes=1, row_bytes=1, burst_rows=1)

    await run(
        bench,
        [
            Operation(params, [1, 2], at(most - 1), gets_faulty=True),
            Operation(params, [0, 1], at(most - 1)),
            Operation(params, [], at(most), came_faulty=True),
            Operation(params, [0], at(most)),
        ],
    )


async def reset_anywhere(bench: StreamBench, params: GatherParams, cuts: list[int]) -> None:
    """Break off after each number of cycles; the next run must know nothing of it."""
    rng = np.random.default_rng(4)
    broken = [Operation.make(params, kind, rng) for kind in ("run", "some")]
    for cut in cuts:
        await bench.reset()
        for operation in broken:
            operation.send(bench)
        bench.stall("bursts", 0.4)
        await bench.advance(cut)
        await run(bench, [Operation.make(params, kind, rng) for kind in ("some", "run")])
