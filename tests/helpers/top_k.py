"""Scenarios of the top-k unit, for both simulators: every run is held to a plain sort and to the cycles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.formats import FP32
from hw.payloads import pack
from hw.timing.top_k import ShardWork, predict, select_cycles
from hw.top_k_params import TopKParams, TopKShardParams
from hw.units.top_k_layouts import scan_layout, score_layout, selected_layout
from tests.helpers.floats import corner_codes, random_codes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.helpers.streams import StreamBench

__all__ = ["KINDS", "Operation", "back_to_back", "faults", "one_slow_stream", "params_of", "random_run"]
__all__ += ["reset_anywhere", "run", "sorted_top_k"]

KINDS = ("random", "ties", "equal", "specials", "neighbours", "negative", "empty", "one", "full")


def params_of(case: Mapping[str, Any]) -> TopKParams:
    """Return the parameters of a test case, those of a shard beside the others."""
    shard = {name: value for name, value in case.items() if name not in ("shards", "max_k")}
    return TopKParams(shard=TopKShardParams(**shard), shards=case["shards"], max_k=case["max_k"])


def sorted_top_k(ids: list[int], codes: list[int], k: int) -> list[int]:
    """Return what a plain sort takes, ascending: numbers by value and id, then NaN by id."""

    def rank(pair: tuple[int, int]) -> tuple[bool, float, int]:
        value = float(FP32.from_codes(np.array([pair[1]], np.uint32))[0])
        return math.isnan(value), 0.0 if math.isnan(value) else -value, pair[0]

    return sorted(number for number, _ in sorted(zip(ids, codes, strict=True), key=rank)[:k])


@dataclass
class Operation:
    """One selection: k, and for each shard its base, its ids and their codes in the order in which they come."""

    params: TopKParams
    k: int
    bases: list[int]
    ids: list[list[int]]
    codes: list[list[int]]
    faults: list[bool]

    @classmethod
    def make(cls, params: TopKParams, kind: str, k: int | None, rng: np.random.Generator) -> Operation:
        """Return an operation of a kind; k None is any that means something for its number of scores."""
        depth = params.shard.depth
        ids, codes = [], []
        for _ in range(params.shards):
            count = {"empty": 0, "one": int(rng.random() < 0.5), "full": depth}.get(kind)
            count = int(rng.integers(0, depth + 1)) if count is None else count
            reach = int(rng.integers(max(count, 1), depth + 1))
            ids.append(rng.permutation(reach)[:count].tolist())
            codes.append([int(code) for code in _codes(kind, count, rng)])
        total = sum(map(len, ids))
        if k is None:
            k = int(rng.choice([0, 1, total // 3, total // 2, total - 1, total, total + 1, params.max_k]))
        k = min(max(k, 0), params.max_k)
        slack = int(rng.integers(0, (1 << params.shard.id_bits) - params.shards * depth + 1))
        nans = [any(code & 0x7FFF_FFFF > 0x7F80_0000 for code in part) for part in codes]
        return cls(params, k, [slack + s * depth for s in range(params.shards)], ids, codes, nans)

    def taken(self) -> list[list[int]]:
        """Return the ids taken by shard, those of the shard itself."""
        numbers = [s << 32 | number for s, part in enumerate(self.ids) for number in part]
        found = sorted_top_k(numbers, [code for part in self.codes for code in part], self.k)
        return [[number & 0xFFFF_FFFF for number in found if number >> 32 == s] for s in range(self.params.shards)]

    def expected(self) -> list[list[int]]:
        """Return the payloads on ``selected`` by shard: rows with ids, and the end."""
        shard = self.params.shard
        layout = selected_layout(shard.id_bits, shard.lanes)
        found = []
        for base, part, fault in zip(self.bases, self.taken(), self.faults, strict=True):
            masks: dict[int, int] = {}
            for number in part:
                row, lane = divmod(number, shard.lanes)
                masks[row] = masks.get(row, 0) | 1 << lane
            rows = [pack(layout, first=base + row * shard.lanes, lanes=masks[row], end=0, fault=0) for row in masks]
            found.append([*rows, pack(layout, first=0, lanes=0, end=1, fault=fault)])
        return found

    def work(self) -> list[ShardWork]:
        """Return what the timing model must know."""
        return [
            ShardWork.of(self.params.shard, np.array(ids, int), np.array(taken, int))
            for ids, taken in zip(self.ids, self.taken(), strict=True)
        ]

    def send(self, bench: StreamBench, idle: Mapping[str, float]) -> None:
        """Queue the operation's inputs."""
        shard = self.params.shard
        bench.send("command", [self.k], idle=idle["command"])
        for s, (base, ids, codes) in enumerate(zip(self.bases, self.ids, self.codes, strict=True)):
            bench.send(f"scan__{s}", [pack(scan_layout(shard), count=len(ids), base=base)], idle=idle["scan"])
            scores = [pack(score_layout(shard), score=code, id=number) for number, code in zip(ids, codes, strict=True)]
            bench.send(f"scores__{s}", scores, idle=idle["scores"])


def _codes(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return codes of scores."""
    if kind == "ties":
        return FP32.to_codes(rng.choice([-1.5, -0.0, 0.0, 2.0, 2.0], count).astype(np.float32))
    if kind == "equal":
        return np.full(count, 0x3F80_0000)
    if kind == "specials":
        return rng.choice(corner_codes(FP32), count)
    if kind == "neighbours":
        return 0x4049_0F00 + rng.integers(0, 20, count)
    if kind == "negative":
        return rng.choice([0xFF80_0000, 0xFF7F_FFFF, 0x8000_0001, 0x8000_0000, 0xC000_0000], count)
    return random_codes(FP32, count, rng, near=0)


async def run(
    bench: StreamBench, operations: list[Operation], idle: Mapping[str, float] | None = None, stall: float = 0.0
) -> None:
    """Run operations after a reset; ids must be those of a sort, every transfer cycle that of the recurrence."""
    params = operations[0].params
    await bench.reset()
    pauses = dict.fromkeys(("command", "scan", "scores"), 0.0) | dict(idle or {})
    for operation in operations:
        operation.send(bench, pauses)
    names = [f"selected__{s}" for s in range(params.shards)]
    for name in names:
        bench.stall(name, stall)
    by_shard = zip(*(operation.expected() for operation in operations), strict=True)
    expected = [[item for part in parts for item in part] for parts in by_shard]
    await bench.until(**{name: len(items) for name, items in zip(names, expected, strict=True)}, timeout_cycles=60_000)
    await bench.advance(4)
    assert [bench.items(name) for name in names] == expected

    streams = ["command", *(f"{name}__{s}" for name in ("scan", "scores", "selected") for s in range(params.shards))]
    found = predict(
        params, [operation.work() for operation in operations], {name: bench.trace(name) for name in streams}
    )
    for name in streams:
        assert found[name].tolist() == bench.trace(name).transfers.tolist(), name


async def back_to_back(bench: StreamBench, params: TopKParams) -> None:
    """Operations of every kind without a stall; the closed form of one with all scores."""
    rng = np.random.default_rng(1)
    await run(bench, [Operation.make(params, kind, None, rng) for kind in KINDS])
    operation = Operation.make(params, "full", None, rng)
    await run(bench, [operation])
    for s, work in enumerate(operation.work()):
        last = bench.trace(f"scores__{s}").transfers[-1]
        end = bench.trace(f"selected__{s}").transfers[-1]
        assert end - last == select_cycles(params, params.shard.rows, s, work.rows)


async def random_run(
    bench: StreamBench, params: TopKParams, count: int, *, idle: float, stall: float, seed: int
) -> None:
    """Random kinds with random pauses on every stream."""
    rng = np.random.default_rng(seed)
    operations = [Operation.make(params, str(rng.choice(KINDS)), None, rng) for _ in range(count)]
    await run(bench, operations, dict.fromkeys(("command", "scan", "scores"), idle), stall)


async def one_slow_stream(bench: StreamBench, params: TopKParams, slow: str) -> None:
    """One kind of stream moves in a tenth of the cycles."""
    rng = np.random.default_rng(2)
    operations = [Operation.make(params, kind, None, rng) for kind in ("full", "empty", "ties", "one")]
    if slow == "selected":
        await run(bench, operations, stall=0.9)
    else:
        await run(bench, operations, {slow: 0.98 if slow == "command" else 0.9})


async def faults(bench: StreamBench, params: TopKParams) -> None:
    """NaN, an id twice and an id too large are told, at the shard that has them, and the next operation is clean."""
    rng = np.random.default_rng(3)
    nan = Operation.make(params, "full", 2, rng)
    nan.codes[0][1] = 0xFFC0_0001
    nan.faults[0] = True
    all_nan = Operation.make(params, "full", params.shard.depth // 2, rng)
    all_nan.codes = [[0x7FC0_0000 + place for place in range(len(part))] for part in all_nan.codes]
    all_nan.faults = [True] * params.shards
    clean = Operation.make(params, "random", 3, rng)
    await run(bench, [nan, clean, all_nan, clean])

    shard = params.shard
    layout = selected_layout(shard.id_bits, shard.lanes)
    for ids, base, fault in (
        ([3, 5, 3], 0, 1),
        ([5, 3, 3], 0, 1),
        ([0, 1], (1 << shard.id_bits) - 1, 1),
        ([0, 1], (1 << shard.id_bits) - 2, 0),
    ):
        await bench.reset()
        broken = Operation(
            params,
            2,
            [base] * params.shards,
            [ids] + [[]] * (params.shards - 1),
            [[0x3F80_0000] * len(ids)] + [[]] * (params.shards - 1),
            [],
        )
        broken.send(bench, dict.fromkeys(("command", "scan", "scores"), 0.0))
        for s in range(params.shards):
            bench.stall(f"selected__{s}", 0.0)
        end = pack(layout, first=0, lanes=0, end=1, fault=fault)
        for _ in range(5_000):
            if end in bench.items("selected__0") and all(bench.count(f"selected__{s}") for s in range(params.shards)):
                break
            await bench.advance()
        assert bench.items("selected__0")[-1] == end
        if params.shards > 1:
            assert bench.items("selected__1") == [pack(layout, first=0, lanes=0, end=1, fault=0)]
        before = bench.count("selected__0")
        clean.send(bench, dict.fromkeys(("command", "scan", "scores"), 0.0))
        wanted = clean.expected()[0]
        await bench.until(selected__0=before + len(wanted), timeout_cycles=5_000)
        assert bench.items("selected__0")[before:] == wanted


async def reset_anywhere(bench: StreamBench, params: TopKParams, cuts: list[int]) -> None:
    """Break off after each number of cycles; the next run must know nothing of it."""
    rng = np.random.default_rng(4)
    broken = [Operation.make(params, kind, None, rng) for kind in ("full", "ties")]
    for cut in cuts:
        await bench.reset()
        for operation in broken:
            operation.send(bench, dict.fromkeys(("command", "scan", "scores"), 0.0))
        for s in range(params.shards):
            bench.stall(f"selected__{s}", 0.4)
        await bench.advance(cut)
        await run(bench, [Operation.make(params, kind, None, rng) for kind in ("ties", "random")])
