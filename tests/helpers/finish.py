"""Scenarios of the finish unit, for both simulators: every run is held to the bits and to the cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.exp import POLY6
from golden.formats import FORMATS, FP32
from golden.numerics import unit_numerics
from golden.partial import PartialState, finish
from hw.layouts import output_layout
from hw.params import FinishParams
from hw.payloads import pack, pack_state, unpack
from hw.timing.finish import cycles, interval_cycles, latency_cycles, predict
from tests.helpers.floats import corner_codes
from tests.helpers.partials import make_state, mixed_beats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.helpers.streams import StreamBench

__all__ = ["accuracy", "back_to_back", "corners", "one_slow_stream", "params_of", "random_run", "reset_anywhere"]
__all__ += ["zero_sums"]

# No exponential takes part in finishing; which one the numerics name makes no difference.
_NUMERICS = unit_numerics(POLY6)
_STREAMS = ("head", "body", "output")


def params_of(case: Mapping[str, Any]) -> FinishParams:
    """Return the parameters of a test case, in which the output format stands by its name."""
    return FinishParams(**case | {"output_format": FORMATS[case["output_format"]]})


@dataclass(frozen=True)
class Workload:
    """Operations of a finish unit."""

    params: FinishParams
    beats: list[int]
    states: list[PartialState]
    faults: np.ndarray

    @classmethod
    def make(cls, params: FinishParams, kinds: list[str], seed: int, beats: list[int] | None = None) -> Workload:
        """Return random states of the given kinds, one an operation, some of them faulty; None is mixed beats."""
        rng = np.random.default_rng(seed)
        beats = mixed_beats(params, len(kinds), rng, fewest=1) if beats is None else beats
        states = [
            make_state(count * params.lanes, _NUMERICS, rng, kind) for kind, count in zip(kinds, beats, strict=True)
        ]
        return cls(params, beats, states, rng.random(len(kinds)) < 0.3)

    @property
    def empty(self) -> np.ndarray:
        return np.array([bool(state.empty) for state in self.states])

    @property
    def output_beats(self) -> list[int]:
        """Beats of each result: one where there is no body."""
        return [1 if empty else count for empty, count in zip(self.empty, self.beats, strict=True)]

    def op_id(self, number: int) -> int:
        return number % (1 << self.params.op_id_bits)

    def inputs(self) -> dict[str, list[int]]:
        """Return the payloads of both input streams."""
        packed = [
            pack_state(self.params, state, op_id=self.op_id(number), fault=bool(self.faults[number]))
            for number, state in enumerate(self.states)
        ]
        return {"head": [head for head, _ in packed], "body": [beat for _, body in packed for beat in body]}

    def expected(self) -> list[int]:
        """Return the payloads of the output, by the golden model."""
        payloads = []
        for number, (state, beats) in enumerate(zip(self.states, self.output_beats, strict=True)):
            finished = finish(state, unit_numerics(POLY6, kv_format=self.params.output_format))
            rows = self.params.output_format.to_codes(finished.output).reshape(-1, self.params.lanes)[:beats]
            payloads += [
                pack(
                    output_layout(self.params),
                    op_id=self.op_id(number),
                    empty=bool(finished.empty),
                    fault=bool(self.faults[number]),
                    o=row,
                    last=index == beats - 1,
                )
                for index, row in enumerate(rows)
            ]
        return payloads


async def run(bench: StreamBench, work: Workload, *, head: float = 0, body: float = 0, output: float = 0) -> None:
    """Run a workload after a reset; results must equal the golden model, every transfer cycle the recurrence."""
    await bench.reset()
    inputs, expected = work.inputs(), work.expected()
    bench.send("head", inputs["head"], idle=head)
    bench.send("body", inputs["body"], idle=body)
    bench.stall("output", output)
    await bench.until(output=len(expected), timeout_cycles=20_000)
    await bench.advance(3)
    found = bench.items("output")
    different = [number for number, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]]
    assert not different, (different[0], hex(found[different[0]]), hex(expected[different[0]]))

    prediction = predict(work.params, work.empty, work.beats, **{name: bench.trace(name) for name in _STREAMS})
    for name in _STREAMS:
        assert getattr(prediction, name).tolist() == bench.trace(name).transfers.tolist(), name
    assert prediction.output_presented.tolist() == bench.trace("output").presented.tolist()


async def back_to_back(bench: StreamBench, params: FinishParams, operations: int) -> None:
    """Operations of any size without a stall, an empty one among them: the closed forms and the interval."""
    kinds = ["plain"] * operations
    kinds[operations // 2] = "empty"
    work = Workload.make(params, kinds, seed=1)
    await run(bench, work)
    heads, outputs = bench.trace("head").transfers, bench.trace("output").transfers
    assert heads[0] == 0
    assert outputs[0] == latency_cycles(params)
    assert outputs[-1] + 1 == cycles(params, work.output_beats)
    starts = outputs[np.cumsum([0, *work.output_beats[:-1]])]
    assert np.diff(starts).tolist() == [interval_cycles(params, beats) for beats in work.output_beats[:-1]]


async def random_run(
    bench: StreamBench, params: FinishParams, operations: int, *, idle: float, stall: float, seed: int
) -> None:
    """Random states of every kind with random pauses on every stream."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["plain", "special", "special", "empty"], operations).tolist()
    await run(bench, Workload.make(params, kinds, seed), head=idle, body=idle, output=stall)


async def one_slow_stream(bench: StreamBench, params: FinishParams, slow: str) -> None:
    """One stream moves in a tenth of the cycles."""
    kinds = ["plain", "plain", "empty", "plain", "empty", "empty", "plain", "plain"]
    await run(bench, Workload.make(params, kinds, seed=2), **{slow: 0.9})


async def zero_sums(bench: StreamBench, params: FinishParams) -> None:
    """Sum of zero, of either sign: flagged zeros, although a body came, and a good operation between."""
    work = Workload.make(params, ["plain"] * 3, seed=7)
    for number, zero in ((0, 0.0), (2, -0.0)):
        work.states[number] = PartialState(m=np.float32(1), l=np.float32(zero), o=work.states[number].o)
    await run(bench, work)


async def corners(bench: StreamBench, params: FinishParams) -> None:
    """Every corner as l, with corners as o."""
    values = FP32.from_codes(np.unique(FP32.to_codes(FP32.from_codes(corner_codes(FP32)))))
    repeats = -(-len(values) // params.head_dim)
    count = len(values) * repeats
    work = Workload.make(params, ["plain"] * count, seed=3, beats=[params.beats] * count)
    for number in range(len(work.states)):
        start = number // len(values) * params.head_dim
        o = np.resize(np.roll(values, -start), params.head_dim)
        work.states[number] = PartialState(m=np.float32(0), l=values[number % len(values)], o=o)
    await run(bench, work)


async def reset_anywhere(bench: StreamBench, params: FinishParams, cuts: list[int]) -> None:
    """Break off after each number of cycles; the next run must know nothing of it."""
    broken = Workload.make(params, ["special", "empty", "special", "special"], seed=4)
    for cut in cuts:
        await bench.reset()
        for name, payloads in broken.inputs().items():
            bench.send(name, payloads, idle=0.0)
        bench.stall("output", 0.4)
        await bench.advance(cut)
        await run(bench, Workload.make(params, ["plain", "empty", "plain"], seed=cut))


async def accuracy(bench: StreamBench, params: FinishParams, operations: int) -> None:
    """Hold the unit to its bound, half an ulp of the output and 2^-22.9 of the quotient, l over all magnitudes."""
    fmt = params.output_format
    work = Workload.make(params, ["plain"] * operations, seed=5, beats=[params.beats] * operations)
    rng = np.random.default_rng(6)
    for number in range(operations):
        weight = np.float32(2.0 ** rng.uniform(-126, 126)) if number % 2 else np.float32(rng.uniform(1, 5000))
        # Quotients from far below fp16's smallest subnormal to just below its largest number; to bf16 they are normal.
        quotients = rng.choice([-1.0, 1.0], params.head_dim) * 2.0 ** rng.uniform(-27, 15.9, params.head_dim)
        with np.errstate(over="ignore", under="ignore"):
            o = (quotients * np.float64(weight)).astype(np.float32)
        o = np.where(np.isfinite(o), o, weight).astype(np.float32)
        work.states[number] = PartialState(m=np.float32(0), l=weight, o=o)
    await run(bench, work)
    beats = [unpack(output_layout(params), item)["o"] for item in bench.items("output")]
    found = fmt.from_codes(np.array(beats)).astype(np.float64).reshape(operations, params.head_dim)
    exact = np.array([state.o.astype(np.float64) / np.float64(state.l) for state in work.states])
    exponent = np.floor(np.log2(np.abs(np.where(exact == 0, 1e-30, exact))))
    ulp = np.exp2(np.maximum(exponent, 1 - fmt.bias) - fmt.significand_bits)
    assert np.abs(found - exact).max() > 0
    assert (np.abs(found - exact) / ulp).max() <= 0.5 + 2.0 ** (fmt.significand_bits + 1 - 22.9)
