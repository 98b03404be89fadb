"""Scenarios of the state join, for both simulators: every run is held to the bits and to the cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.exp import POLY6
from golden.formats import FP32
from golden.numerics import unit_numerics
from golden.partial import PartialState
from hw.layouts import head_layout
from hw.payloads import pack, pack_state
from hw.timing.state_join import LATENCY_CYCLES, cycles, predict
from tests.helpers.partials import make_state, mixed_beats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hw.params import ProcessingParams
    from tests.helpers.streams import StreamBench

__all__ = [
    "back_to_back",
    "faults",
    "missing_slices",
    "one_slow_stream",
    "random_run",
    "reset_anywhere",
    "unequal_slices",
]

# No exponential takes part in joining; which one the numerics name makes no difference.
_NUMERICS = unit_numerics(POLY6)


@dataclass(frozen=True)
class Workload:
    """Operations of a state join: the whole states, cut into slices of a number of beats each, 0 of an empty one.

    ``changes`` are fields of heads that a source gets wrong, by operation and source; the joined head's ``fault`` and
    ``empty`` are what ``verdicts`` says where it says something.
    """

    params: ProcessingParams
    states: list[PartialState]
    beats: np.ndarray
    changes: dict[tuple[int, int], dict[str, int]]
    verdicts: dict[int, dict[str, int]]

    @classmethod
    def make(cls, params: ProcessingParams, kinds: list[str], seed: int, beats: np.ndarray | None = None) -> Workload:
        """Return random states of the given kinds, one an operation; None is mixed beats, alike at all sources."""
        rng = np.random.default_rng(seed)
        if beats is None:
            beats = np.repeat(mixed_beats(params, len(kinds), rng, fewest=1), params.slices).reshape(-1, params.slices)
        states = [
            make_state(int(row.sum()) * params.lanes, _NUMERICS, rng, kind)
            for kind, row in zip(kinds, beats, strict=True)
        ]
        empty = np.array([bool(state.empty) for state in states])
        return cls(params, states, np.where(empty[:, None], 0, beats), {}, {})

    def op_id(self, number: int) -> int:
        return number % (1 << self.params.op_id_bits)

    def _head(self, number: int, **changes: int) -> int:
        """Return the head of a whole state, which is that of each slice too, with other fields."""
        state = self.states[number]
        fields = {
            "op_id": self.op_id(number),
            "empty": int(state.empty),
            "fault": 0,
            "m": int(FP32.to_codes(state.m)),
            "l": int(FP32.to_codes(state.l)),
        }
        return pack(head_layout(self.params), **(fields | changes))

    def inputs(self) -> dict[str, list[int]]:
        """Return the payloads of every input stream."""
        streams: dict[str, list[int]] = {}
        for source in range(self.params.slices):
            streams[f"head_i__{source}"] = [
                self._head(number, **self.changes.get((number, source), {})) for number in range(len(self.states))
            ]
            streams[f"body_i__{source}"] = [
                beat
                for state, row in zip(self.states, self.beats, strict=True)
                if row[source]
                for beat in self._body(
                    state.o[row[:source].sum() * self.params.lanes :][: row[source] * self.params.lanes]
                )
            ]
        return streams

    def slice_of(self, state: PartialState, row: np.ndarray, source: int) -> np.ndarray:
        start = row[:source].sum() * self.params.lanes
        return state.o[start : start + row[source] * self.params.lanes]

    def _body(self, o: np.ndarray) -> list[int]:
        wide = self.params.replace(head_dim=self.params.head_dim * self.params.slices)
        return pack_state(wide, PartialState(m=np.float32(0), l=np.float32(1), o=o), op_id=0)[1]

    def expected(self) -> dict[str, list[int]]:
        """Return the payloads of both output streams: the whole states."""
        heads = [self._head(number, **self.verdicts.get(number, {})) for number in range(len(self.states))]
        bodies = [
            beat
            for state, row in zip(self.states, self.beats, strict=True)
            if row.any()
            for beat in self._body(state.o[: row.sum() * self.params.lanes])
        ]
        return {"head_o": heads, "body_o": bodies}


async def run(bench: StreamBench, work: Workload, pauses: Mapping[str, float] | float) -> None:
    """Run a workload after a reset; results must equal the whole states, every transfer cycle the recurrence."""

    def pause(name: str) -> float:
        return pauses if isinstance(pauses, float | int) else pauses.get(name, 0.0)

    await bench.reset()
    for name, payloads in work.inputs().items():
        bench.send(name, payloads, idle=pause(name))
    expected = work.expected()
    for name in expected:
        bench.stall(name, pause(name))
    await bench.until(timeout_cycles=20_000, **{name: len(items) for name, items in expected.items()})
    await bench.advance(4)
    for name, items in expected.items():
        assert bench.items(name) == items, name

    sources = range(work.params.slices)
    prediction = predict(
        work.params,
        work.beats,
        head_i=[bench.trace(f"head_i__{source}") for source in sources],
        body_i=[bench.trace(f"body_i__{source}") for source in sources],
        head_o=bench.trace("head_o"),
        body_o=bench.trace("body_o"),
    )
    for source in sources:
        assert prediction.head_i.tolist() == bench.trace(f"head_i__{source}").transfers.tolist(), source
        assert prediction.body_i[source].tolist() == bench.trace(f"body_i__{source}").transfers.tolist(), source
    for name in ("head_o", "body_o"):
        assert getattr(prediction, name).tolist() == bench.trace(name).transfers.tolist(), name
        assert getattr(prediction, f"{name}_presented").tolist() == bench.trace(name).presented.tolist(), name


async def back_to_back(bench: StreamBench, params: ProcessingParams, operations: int) -> None:
    """Operations of any size without a stall: the closed form, and a beat a cycle."""
    work = Workload.make(params, ["plain"] * operations, seed=1)
    await run(bench, work, 0.0)
    heads, bodies = bench.trace("head_i__0").transfers, bench.trace("body_o").transfers
    assert heads[0] == 0
    assert bench.trace("head_o").transfers[0] == 1
    assert bodies[0] == LATENCY_CYCLES
    assert set(np.diff(bodies).tolist()) == {1}
    assert bodies[-1] + 1 == cycles(params, work.beats.sum(axis=1).tolist())


async def random_run(
    bench: StreamBench, params: ProcessingParams, operations: int, *, idle: float, stall: float, seed: int
) -> None:
    """Random states of every kind, some empty, with random pauses on every stream, some far slower than others."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["plain", "special", "special", "empty"], operations).tolist()
    work = Workload.make(params, kinds, seed)
    pauses = {name: idle * rng.choice([0.2, 1.0, 1.0]) for name in work.inputs()} | {"head_o": stall, "body_o": stall}
    await run(bench, work, pauses)


async def one_slow_stream(bench: StreamBench, params: ProcessingParams, slow: str) -> None:
    """One stream moves in a tenth of the cycles; all others wait for it as long as it takes."""
    kinds = ["plain", "empty", "empty", "empty", "plain", "plain", "empty", "plain", "plain", "plain"]
    await run(bench, Workload.make(params, kinds, seed=2), {slow: 0.9})


async def unequal_slices(bench: StreamBench, params: ProcessingParams) -> None:
    """Slices of unlike lengths, as a head dimension that isn't a multiple of all lanes gives them."""
    rng = np.random.default_rng(3)
    beats = rng.integers(1, params.beats + 1, (12, params.slices))
    await run(bench, Workload.make(params, ["plain"] * 12, seed=3, beats=beats), 0.2)


async def faults(bench: StreamBench, params: ProcessingParams) -> None:
    """Bring faults in at each source, and make each field wrong at each but the first; good operations between."""
    fields = ("fault", "op_id", "m", "l")
    cases = [
        (kind, field, source) for kind in ("plain", "empty") for field in fields for source in range(params.slices)
    ]
    work = Workload.make(params, [kind for kind, _, _ in cases for _ in range(2)], seed=4)
    for index, (kind, field, source) in enumerate(cases):
        number = 2 * index
        if field == "fault":
            work.changes[number, source] = {"fault": 1}
            work.verdicts[number] = {"fault": 1}
        elif source:
            state = work.states[number]
            right = {"op_id": work.op_id(number), "m": int(FP32.to_codes(state.m)), "l": int(FP32.to_codes(state.l))}
            work.changes[number, source] = {field: right[field] ^ 1}
            # m and l of an empty state mean nothing.
            work.verdicts[number] = {"fault": int(field == "op_id" or kind == "plain")}
    await run(bench, work, 0.2)


async def missing_slices(bench: StreamBench, params: ProcessingParams) -> None:
    """Send one source's state empty, then one source's state alone: faults, and the body is that of the others."""
    work = Workload.make(params, ["plain"] * 4 * params.slices, seed=6)
    for source in range(params.slices):
        for number, missing in ((4 * source, {source}), (4 * source + 2, set(range(params.slices)) - {source})):
            state, row = work.states[number], work.beats[number].copy()
            for other in missing:
                work.changes[number, other] = {"empty": 1}
                work.beats[number, other] = 0
            kept = [work.slice_of(state, row, other) for other in range(params.slices) if other not in missing]
            work.states[number] = PartialState(m=state.m, l=state.l, o=np.concatenate(kept))
            work.verdicts[number] = {"fault": 1}
    await run(bench, work, 0.2)


async def reset_anywhere(bench: StreamBench, params: ProcessingParams, cuts: list[int]) -> None:
    """Break off after each number of cycles; the next run must know nothing of it."""
    broken = Workload.make(params, ["special", "plain", "empty", "special", "plain", "plain"], seed=5)
    for cut in cuts:
        await bench.reset()
        for name, payloads in broken.inputs().items():
            bench.send(name, payloads, idle=0.1)
        for name in broken.expected():
            bench.stall(name, 0.3)
        await bench.advance(cut)
        await run(bench, Workload.make(params, ["plain", "empty", "plain"], seed=cut), 0.0)
