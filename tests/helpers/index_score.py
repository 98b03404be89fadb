"""Index keys and queries of every kind; scenarios of the scoring unit, held to golden scores and to the cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.formats import FORMATS, FP8_E4M3, FP32, FloatFormat
from golden.retrieval.index_score import index_scores
from golden.retrieval.index_spec import MODES, ScoreMode, ScoreSpec
from hw.index_score_params import IndexScoreParams, ScoreWork
from hw.index_score_words import command_word, key_words, query_words
from hw.payloads import pack
from hw.timing.index_score import operation_cycles, predict
from hw.units.index_score_layouts import key_score_layout
from tests.helpers.floats import corner_codes, random_codes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.helpers.streams import StreamBench

__all__ = ["Operation", "back_to_back", "drawn_codes", "drawn_keys", "modes", "one_slow_stream", "params_of"]
__all__ += ["random_run", "reset_anywhere", "run"]

_KINDS = ("near", "any", "corners", "ties")
_STREAMS = ("command", "query", "keys")


def drawn_codes(fmt: FloatFormat, kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Return codes: ``near`` 1, ``any``, ``corners`` of the format, or of few values (``ties``)."""
    count = int(np.prod(shape))
    if kind == "ties":
        codes = fmt.to_codes(rng.choice([-1.0, -0.0, 0.0, 0.5, 2.0], count))
    elif fmt == FP8_E4M3:
        codes = rng.integers(0, 256, count)
        if kind == "corners":
            codes = rng.choice([0x00, 0x01, 0x07, 0x08, 0x38, 0x7E, 0x7F, 0x80, 0x81, 0xB8, 0xFE, 0xFF], count)
        elif kind == "near":
            codes = np.where(codes & 0x7F == 0x7F, codes & 0x80, codes)
    elif kind == "corners":
        codes = rng.choice(corner_codes(fmt), count)
    else:
        codes = random_codes(fmt, count, rng, near=0 if kind == "near" else None)
    return codes.astype(fmt.code_dtype).reshape(shape)


def drawn_keys(spec: ScoreSpec, mode: ScoreMode, kind: str, count: int, dim: int, rng: np.random.Generator) -> Any:
    """Return the codes of keys, those of pages with the lesser one of two numbers first."""
    fmt = spec.format_of(mode)
    if not mode.bounds:
        return drawn_codes(fmt, kind, (count, dim), rng)
    codes = drawn_codes(fmt, kind, (count, 2, dim), rng)
    numbers = fmt.from_codes(codes).astype(np.float32)
    swap = numbers[:, :1] > numbers[:, 1:]
    return np.where(swap, codes[:, ::-1], codes)


def params_of(case: Mapping[str, Any]) -> IndexScoreParams:
    """Return the parameters of a test case, those of the spec beside the others and formats by name."""
    own = {name: case[name] for name in ("max_groups", "query_rows", "id_bits")}
    spec = {name: value for name, value in case.items() if name not in own}
    return IndexScoreParams(spec=ScoreSpec(**spec | {"wide_format": FORMATS[spec["wide_format"]]}), **own)


def modes() -> list[ScoreMode]:
    """Return the modes of the methods, short blocks of the long one, and all settings of the switches."""
    switches = ("wide", "relu", "largest", "bounds", "scaled")
    settings = [
        ScoreMode(**{name: bool(number >> bit & 1) for bit, name in enumerate(switches)}, block_keys=1 + number % 3)
        for number in range(1 << len(switches))
    ]
    return [*MODES.values(), *settings]


@dataclass
class Operation:
    """One operation with its numbers."""

    work: ScoreWork
    query: Any
    weights: Any
    keys: Any
    scales: Any

    @classmethod
    def make(
        cls,
        params: IndexScoreParams,
        mode: ScoreMode,
        kind: str,
        rng: np.random.Generator,
        *,
        keys: int | None = None,
        heads: int | None = None,
    ) -> Operation:
        """Return an operation of codes of a kind; sizes that are not given are any that the unit has room for."""
        # As many heads as vectors of any length have room for; of short ones, more.
        lanes = params.spec.wide_head_lanes if mode.wide else params.spec.head_lanes
        drawn = int(rng.integers(1, params.max_groups * lanes + 1)) if heads is None else heads
        most = params.query_rows // -(-drawn // lanes) * params.spec.elements(mode)
        dim = int(rng.integers(1, most + 1))
        if heads is None and params.spec.shares_lanes(mode, dim):
            drawn = int(rng.integers(1, params.max_groups * params.spec.lanes(mode, dim) + 1))
        heads = drawn
        keys = int(rng.integers(0, min(25, 1 << params.id_bits) + 1)) if keys is None else keys
        fmt = params.spec.format_of(mode)
        return cls(
            ScoreWork(mode=mode, heads=heads, dim=dim, keys=keys),
            drawn_codes(fmt, kind, (heads, dim), rng),
            FP32.from_codes(drawn_codes(FP32, kind, (heads,), rng)),
            drawn_keys(params.spec, mode, kind, keys, dim, rng),
            FP32.from_codes(drawn_codes(FP32, kind, (keys,), rng)) if mode.scaled else None,
        )

    def expected(self, params: IndexScoreParams) -> list[int]:
        """Return the payloads on ``scores``."""
        with np.errstate(all="ignore"):
            scores = index_scores(params.spec, self.work.mode, self.query, self.weights, self.keys, self.scales)
        layout = key_score_layout(params)
        return [pack(layout, score=code, id=number) for number, code in enumerate(FP32.to_codes(scores).tolist())]

    def send(self, bench: StreamBench, params: IndexScoreParams, idle: Mapping[str, float]) -> None:
        """Queue the operation's inputs."""
        mode = self.work.mode
        bench.send("command", [command_word(params, self.work)], idle=idle["command"])
        bench.send("query", query_words(params, mode, self.query, self.weights), idle=idle["query"])
        bench.send("keys", key_words(params, mode, self.keys, self.scales), idle=idle["keys"])


async def run(
    bench: StreamBench,
    params: IndexScoreParams,
    operations: Sequence[Operation],
    idle: Mapping[str, float] | None = None,
    stall: float = 0.0,
) -> None:
    """Run operations after a reset; scores must be the golden ones, every transfer cycle that of the recurrence."""
    await bench.reset()
    pauses = dict.fromkeys(_STREAMS, 0.0) | dict(idle or {})
    for operation in operations:
        operation.send(bench, params, pauses)
    bench.stall("scores", stall)
    expected = [item for operation in operations for item in operation.expected(params)]
    commands, beats = len(operations), sum(operation.work.stored_beats(params) for operation in operations)
    await bench.until(command=commands, keys=beats, scores=len(expected), timeout_cycles=100_000)
    await bench.until(query=len(operations) and sum(_query_beats(params, operation) for operation in operations))
    await bench.advance(4)
    found = bench.items("scores")
    assert found == expected, next(pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1])

    streams = (*_STREAMS, "scores")
    predicted = predict(
        params, [operation.work for operation in operations], {name: bench.trace(name) for name in streams}
    )
    for name in streams:
        assert predicted[name].tolist() == bench.trace(name).transfers.tolist(), name


def _query_beats(params: IndexScoreParams, operation: Operation) -> int:
    return operation.work.heads * operation.work.vector_beats(params)


async def back_to_back(bench: StreamBench, params: IndexScoreParams, all_modes: Sequence[ScoreMode]) -> None:
    """Every mode and kind of numbers without a stall, then the closed form of one after another."""
    rng = np.random.default_rng(1)
    operations = [Operation.make(params, mode, kind, rng) for mode in all_modes for kind in _KINDS]
    await run(bench, params, operations)
    starts = bench.trace("command").transfers
    cycles = [operation_cycles(params, operation.work) for operation in operations]
    assert np.diff(starts).tolist() == cycles[:-1]


async def random_run(
    bench: StreamBench, params: IndexScoreParams, count: int, *, idle: float, stall: float, seed: int
) -> None:
    """Random modes with random pauses on every stream."""
    rng = np.random.default_rng(seed)
    every = modes()
    operations = [
        Operation.make(params, every[rng.integers(len(every))], str(rng.choice(_KINDS)), rng) for _ in range(count)
    ]
    await run(bench, params, operations, dict.fromkeys(_STREAMS, idle), stall)


async def one_slow_stream(bench: StreamBench, params: IndexScoreParams, slow: str) -> None:
    """One stream moves in a tenth of the cycles; with ``scores`` so slow, the queue fills and keys wait."""
    rng = np.random.default_rng(2)
    one = ScoreMode(wide=True, largest=True)
    most = min(60, 1 << params.id_bits)
    operations = [Operation.make(params, mode, "near", rng, heads=1) for mode in (MODES["indexer"], one)]
    operations.append(Operation.make(params, one, "near", rng, heads=1, keys=most))
    if slow == "scores":
        await run(bench, params, operations, stall=0.95)
    else:
        await run(bench, params, operations, {slow: 0.9})


async def reset_anywhere(bench: StreamBench, params: IndexScoreParams, cuts: Sequence[int]) -> None:
    """Break off after each number of cycles; the next run must know nothing of it."""
    rng = np.random.default_rng(4)
    broken = [Operation.make(params, MODES[name], "near", rng) for name in ("indexer", "page-bounds", "cosine")]
    for cut in cuts:
        await bench.reset()
        for operation in broken:
            operation.send(bench, params, dict.fromkeys(_STREAMS, 0.0))
        bench.stall("scores", 0.4)
        await bench.advance(cut)
        await run(bench, params, [Operation.make(params, MODES[name], "any", rng) for name in ("cosine", "indexer")])
