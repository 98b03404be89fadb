"""Scenarios of the reduction unit, for both simulators: every run is held to the bits and to the cycles."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from golden.formats import FP32
from golden.numerics import unit_numerics
from golden.partial import PartialState, merge_chain
from hw.payloads import pack_state
from hw.timing.reduction import cycles, interval_cycles, latency_cycles, predict
from tests.helpers.floats import corner_codes
from tests.helpers.partials import make_state, mixed_beats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hw.params import ReductionParams
    from tests.helpers.streams import StreamBench

__all__ = [
    "Workload",
    "back_to_back",
    "corner_maxima",
    "empty_patterns",
    "faults",
    "head_dims",
    "one_slow_stream",
    "random_run",
    "reset_anywhere",
    "unequal_bodies",
]


@dataclass(frozen=True)
class Workload:
    """Operations of a reduction unit: beats and states of each, and the ids and faults they come with."""

    params: ReductionParams
    beats: list[int]
    states: list[list[PartialState]]
    op_ids: np.ndarray
    faults: np.ndarray

    @classmethod
    def make(
        cls, params: ReductionParams, kinds: list[list[str]], seed: int, beats: list[int] | None = None
    ) -> Workload:
        """Return random states of the given kinds, one row an operation, with ids that agree; None is mixed beats."""
        rng = np.random.default_rng(seed)
        numerics = unit_numerics(params.exp, lanes=params.lanes, kv_format=params.weight_format)
        beats = mixed_beats(params, len(kinds), rng) if beats is None else beats
        states = [
            [make_state(count * params.lanes, numerics, rng, kind) for kind in row]
            for row, count in zip(kinds, beats, strict=True)
        ]
        ids = np.arange(len(kinds)) % (1 << params.op_id_bits)
        shape = (len(kinds), params.num_sources)
        return cls(params, beats, states, np.broadcast_to(ids[:, None], shape).copy(), np.zeros(shape, bool))

    @property
    def empty(self) -> np.ndarray:
        return np.array([[bool(state.empty) for state in row] for row in self.states]).reshape(self.op_ids.shape)

    def inputs(self) -> dict[str, list[int]]:
        """Return the payloads of every input stream."""
        streams: dict[str, list[int]] = {}
        for source in range(self.params.num_sources):
            packed = [
                pack_state(self.params, row[source], op_id=int(op_id), fault=bool(fault))
                for row, op_id, fault in zip(self.states, self.op_ids[:, source], self.faults[:, source], strict=True)
            ]
            streams[f"head_i__{source}"] = [head for head, _ in packed]
            streams[f"body_i__{source}"] = [beat for _, body in packed for beat in body]
        return streams

    def expected(self) -> dict[str, list[int]]:
        """Return the payloads of both output streams, by the golden model."""
        numerics = unit_numerics(self.params.exp, lanes=self.params.lanes, kv_format=self.params.weight_format)
        fault = self.faults.any(axis=1) | (self.op_ids != self.op_ids[:, :1]).any(axis=1)
        packed = [
            pack_state(self.params, merge_chain(row, numerics), op_id=int(ids[0]), fault=bool(bad))
            for row, ids, bad in zip(self.states, self.op_ids, fault, strict=True)
        ]
        return {"head_o": [head for head, _ in packed], "body_o": [beat for _, body in packed for beat in body]}


async def run(
    bench: StreamBench, work: Workload, pauses: Mapping[str, float] | float, timeout_cycles: int = 20_000
) -> None:
    """Run a workload after a reset; results must equal the golden model, every transfer cycle the recurrence."""

    def pause(name: str) -> float:
        return pauses if isinstance(pauses, float | int) else pauses[name]

    await bench.reset()
    for name, payloads in work.inputs().items():
        bench.send(name, payloads, idle=pause(name))
    expected = work.expected()
    for name in expected:
        bench.stall(name, pause(name))
    await bench.until(timeout_cycles=timeout_cycles, **{name: len(items) for name, items in expected.items()})
    await bench.advance(4)
    for name, items in expected.items():
        found = bench.items(name)
        assert found == items, f"{name}: {len(found)} items, first difference at {_first_difference(found, items)}"

    sources = range(work.params.num_sources)
    prediction = predict(
        work.params,
        work.empty,
        work.beats,
        head_i=[bench.trace(f"head_i__{source}") for source in sources],
        body_i=[bench.trace(f"body_i__{source}") for source in sources],
        head_o=bench.trace("head_o"),
        body_o=bench.trace("body_o"),
    )
    for source in sources:
        assert prediction.head_i[source].tolist() == bench.trace(f"head_i__{source}").transfers.tolist(), source
        assert prediction.body_i[source].tolist() == bench.trace(f"body_i__{source}").transfers.tolist(), source
    for name in ("head_o", "body_o"):
        assert getattr(prediction, name).tolist() == bench.trace(name).transfers.tolist(), name
        assert getattr(prediction, f"{name}_presented").tolist() == bench.trace(name).presented.tolist(), name


def _first_difference(found: list[int], expected: list[int]) -> object:
    pairs = zip(found, expected, strict=False)
    return next(((i, hex(a), hex(b)) for i, (a, b) in enumerate(pairs) if a != b), "the end")


async def back_to_back(bench: StreamBench, params: ReductionParams, operations: int) -> None:
    """Operations of most beats without a stall: the closed forms, a partial every interval, across operations too."""
    kinds = [["plain"] * params.num_sources] * operations
    work = Workload.make(params, kinds, seed=1, beats=[params.beats] * operations)
    await run(bench, work, 0.0)
    heads, bodies = bench.trace("head_i__0").transfers, bench.trace("body_o").transfers
    assert heads[0] == 0
    assert bodies[0] == latency_cycles(params)
    assert bodies[-1] + 1 == cycles(params, work.beats)
    beats, interval = params.beats, interval_cycles(params)
    starts = np.sort(
        np.concatenate([bench.trace(f"body_i__{j}").transfers[::beats] for j in range(params.num_sources)])
    )
    # The first partial of all may wait for nobody and so be early; then each takes exactly the interval.
    assert set(np.diff(starts[1:]).tolist()) <= {interval}
    ends = bodies[beats - 1 :: beats]
    assert set(np.diff(ends).tolist()) <= {interval * params.num_sources}


async def head_dims(bench: StreamBench, params: ReductionParams, beats: list[int]) -> None:
    """Operations of different head dimensions one after another without a stall: the closed form, and no gap."""
    work = Workload.make(params, [["plain"] * params.num_sources] * len(beats), seed=2, beats=beats)
    await run(bench, work, 0.0)
    bodies = bench.trace("body_o").transfers
    assert bodies[0] == latency_cycles(params, beats[0])
    assert bodies[-1] + 1 == cycles(params, beats)
    if params.exp.interval_cycles == 1:
        taken = np.sort(np.concatenate([bench.trace(f"body_i__{j}").transfers for j in range(params.num_sources)]))
        # Once the second partial has its weight, a beat every cycle.
        assert set(np.diff(taken[beats[0] :]).tolist()) == {1}


async def random_run(
    bench: StreamBench, params: ReductionParams, operations: int, *, idle: float, stall: float, seed: int
) -> None:
    """Random states of every kind, a quarter empty, with random pauses on every stream, some far slower than others."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["plain", "tied", "special", "empty"], (operations, params.num_sources)).tolist()
    work = Workload.make(params, kinds, seed)
    pauses = {name: idle * rng.choice([0.2, 1.0, 1.0]) for name in work.inputs()} | {"head_o": stall, "body_o": stall}
    await run(bench, work, pauses)


async def empty_patterns(bench: StreamBench, params: ReductionParams, pause: float) -> None:
    """Every pattern of empty and other sources, one an operation."""
    kinds = [list(row) for row in product(["plain", "empty"], repeat=params.num_sources)]
    await run(bench, Workload.make(params, kinds, seed=3), pause)


async def unequal_bodies(bench: StreamBench, params: ReductionParams) -> None:
    """Bodies of unlike lengths spoil their own operation alone: ids, flags, m and l stay right, and all others too."""
    most = params.beats
    work = Workload.make(params, [["plain"] * params.num_sources] * 9, seed=9, beats=[2, most, most] * 3)
    numerics = unit_numerics(params.exp, lanes=params.lanes, kv_format=params.weight_format)
    rng = np.random.default_rng(10)
    spoilt = {1: 1, 4: most - 1, 7: most + 3}
    inputs, expected = work.inputs(), work.expected()
    # Source 0 sends another number of beats than the others, one of them a single one, one more than the scratch holds.
    wide = params.replace(head_dim=(most + 3) * params.lanes)
    bodies = []
    for number, row in enumerate(work.states):
        state = row[0]
        if number in spoilt:
            other = make_state(spoilt[number] * params.lanes, numerics, rng)
            state = PartialState(m=state.m, l=state.l, o=other.o)
        bodies += pack_state(wide, state, op_id=0)[1]
    await bench.reset()
    for name, payloads in inputs.items():
        bench.send(name, bodies if name == "body_i__0" else payloads)
    await bench.until(head_o=9, body_o=sum(work.beats), timeout_cycles=20_000)
    await bench.advance(40)
    assert bench.items("head_o") == expected["head_o"]
    found = bench.items("body_o")
    assert len(found) == sum(work.beats)
    ends = np.cumsum(work.beats)
    for number, end in enumerate(ends):
        if number not in spoilt:
            start = end - work.beats[number]
            assert found[start:end] == expected["body_o"][start:end], number


async def one_slow_stream(bench: StreamBench, params: ReductionParams, slow: str) -> None:
    """One stream moves in a tenth of the cycles; all others wait for it as long as it takes."""
    work = Workload.make(params, [["plain"] * params.num_sources] * 8, seed=6)
    names = [*work.inputs(), *work.expected()]
    await run(bench, work, {name: 0.9 if name == slow else 0.0 for name in names})


async def corner_maxima(bench: StreamBench, params: ReductionParams) -> None:
    """Every pair of corner maxima in two neighbouring sources: zeros of both signs, infinities, NaN, ties, extremes."""
    corners = FP32.from_codes(np.unique(FP32.to_codes(FP32.from_codes(corner_codes(FP32)))))[::3]
    corners = np.concatenate((corners, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 79.0, 78.99], np.float32)))
    pairs = list(product(corners, repeat=2))
    rows = -(-len(pairs) // (params.num_sources // 2))
    work = Workload.make(params, [["plain"] * params.num_sources] * rows, seed=8)
    for number, pair in enumerate(pairs):
        place = 2 * (number // rows)
        for offset, m in enumerate(pair):
            state = work.states[number % rows][place + offset]
            work.states[number % rows][place + offset] = PartialState(m=m, l=state.l, o=state.o)
    await run(bench, work, 0.0)


async def faults(bench: StreamBench, params: ReductionParams) -> None:
    """Wrong ids and incoming faults at each source, in full, empty and mixed operations; good ones between."""
    rows = [["plain"] * params.num_sources, ["empty"] * params.num_sources]
    rows.append([("plain", "empty")[source % 2] for source in range(params.num_sources)])
    kinds = [row for row in rows for _ in range(2 * params.num_sources + 1)]
    work = Workload.make(params, kinds, seed=4)
    for number in range(len(rows)):
        start = number * (2 * params.num_sources + 1)
        for source in range(params.num_sources):
            work.op_ids[start + 2 * source, source] ^= 1
            work.faults[start + 2 * source + 1, source] = True
    await run(bench, work, 0.2)


async def reset_anywhere(bench: StreamBench, params: ReductionParams, cuts: list[int]) -> None:
    """Break off after each number of cycles; the next run must know nothing of it."""
    broken = Workload.make(params, [["special"] * params.num_sources] * 6, seed=5)
    for cut in cuts:
        await bench.reset()
        for name, payloads in broken.inputs().items():
            bench.send(name, payloads, idle=0.1)
        for name in broken.expected():
            bench.stall(name, 0.3)
        await bench.advance(cut)
        kinds = [["plain"] * params.num_sources, ["empty"] + ["plain"] * (params.num_sources - 1)]
        await run(bench, Workload.make(params, kinds, seed=cut, beats=[2, params.beats][:: 1 - cut % 2 * 2]), 0.0)
