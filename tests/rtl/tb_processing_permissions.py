"""cocotb tests of the processing unit's permissions; the parameters come as the test case."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import cocotb
import numpy as np

from hw.timing.operation import OperationSizes
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.permissions import Counters, check_permissions, kv_plan
from tests.helpers.processing import (
    KINDS,
    Operation,
    check_states,
    make_operation,
    mixed_sizes,
    params_of,
    stimulus,
    unpack,
)
from tests.helpers.rtl import case

if TYPE_CHECKING:
    from hw.params import ProcessingParams


def _operations(params: ProcessingParams, number: int, seed: int) -> list[Operation]:
    rng = np.random.default_rng(seed)
    mask = (1 << params.op_id_bits) - 1
    return [
        make_operation(params, rng, each, KINDS[place % len(KINDS)], op_id=place & mask)
        for place, each in enumerate(mixed_sizes(params, rng, number))
    ]


class _Watched:
    """The counters of a unit as its ports show them; looking a port up takes longer than reading it."""

    def __init__(self, dut: Any) -> None:
        self._ports = dut.key_operations, dut.value_tiles
        self._unequal = getattr(dut, "unequal", None)
        self.counters = Counters()

    async def advance(self, bench: CocotbBench) -> None:
        """Let one cycle pass and take the counters that it showed."""
        await bench.advance()
        key_operations, value_tiles = self._ports
        self.counters.sample(int(key_operations.value), int(value_tiles.value))
        if self._unequal is not None:
            assert not int(self._unequal.value), "all units of a group must show the same"


async def _finish(bench: CocotbBench, watched: _Watched, operations: list[Operation]) -> None:
    """Advance until every state is out."""
    heads = sum(op.sizes.queries for op in operations)
    bodies = sum(op.sizes.query_beats for op in operations if op.num_tokens)
    kv = sum(op.sizes.kv_beats for op in operations)
    for _ in range(400_000):
        if [bench.count(name) for name in ("head", "body", "kv")] == [heads, bodies, kv]:
            return
        await watched.advance(bench)
    raise AssertionError("every state must come out")


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.6], pause=[0.0, 0.5, 0.95])
async def permissions_say_exactly_what_is_taken(dut: Any, idle: float, pause: float) -> None:
    params = params_of(case())
    bench = await CocotbBench.start(dut)
    watched = _Watched(dut)
    operations = _operations(params, 40, seed=1)
    for name in ("head", "body"):
        bench.stall(name, pause)
    for name, payloads in stimulus(params, operations).items():
        bench.send(name, payloads, idle=idle)
    await _finish(bench, watched, operations)
    check_permissions(params, operations, bench, watched.counters)
    check_states(params, operations, unpack(params, bench.items("head"), bench.items("body")))


@cocotb.test()
@cocotb.parametrize(delay=[1, 7, 24], gap=[2, 3, 9], pause=[0.0, 0.9])
async def a_sender_that_cannot_stop_a_beat_is_never_refused(dut: Any, delay: int, gap: int, pause: float) -> None:
    """Issue a beat when the counters allow it; it arrives ``delay`` cycles later, 2 to ``gap`` cycles apart.

    Or as many as the beat before it has queries, if those are more.
    """
    params = params_of(case())
    bench = await CocotbBench.start(dut)
    rng = np.random.default_rng(100 * delay + gap)
    watched = _Watched(dut)
    operations = _operations(params, 30, seed=delay + gap)
    for name in ("head", "body"):
        bench.stall(name, pause)
    payloads = stimulus(params, operations)
    bench.send("command", payloads["command"], idle=0.5 * (gap == 3))
    bench.send("query", payloads["query"], idle=0.5 * (gap == 3))
    beats = deque(zip(kv_plan(operations), payloads["kv"], strict=True))
    underway: deque[tuple[int, int]] = deque()
    next_issue = arrived = 0
    heads = sum(op.sizes.queries for op in operations)
    bodies = sum(op.sizes.query_beats for op in operations if op.num_tokens)
    while bench.count("head") < heads or bench.count("body") < bodies or beats or underway:
        assert bench.cycle < 400_000, "every state must come out"
        arrives = bool(underway) and underway[0][0] == bench.cycle
        if arrives:
            bench.send("kv", [underway.popleft()[1]])
            arrived += 1
        await watched.advance(bench)
        assert bench.count("kv") == arrived, f"the beat of cycle {bench.cycle - 1} must be taken at once"
        shown = bench.cycle - 1
        if beats and shown >= next_issue and beats[0][0].allowed(*watched.counters.last):
            beat, payload = beats.popleft()
            underway.append((shown + delay, payload))
            next_issue = shown + max(int(rng.integers(2, gap + 1)), beat.queries)
    check_permissions(params, operations, bench, watched.counters)
    check_states(params, operations, unpack(params, bench.items("head"), bench.items("body")))


@cocotb.test()
async def counters_start_anew_at_reset(dut: Any) -> None:
    params = params_of(case())
    bench = await CocotbBench.start(dut)
    before, after = _operations(params, 9, seed=3), _operations(params, 7, seed=4)
    # A walk without a token that counts is among them, whatever the seed.
    before[3] = make_operation(params, np.random.default_rng(5), OperationSizes.of(params, 0, walk_tokens=3), "normal")
    for cycle in range(1, 400, 23):
        for name, payloads in stimulus(params, before).items():
            bench.send(name, payloads)
        await bench.advance(cycle)
        await bench.reset(cycles=1)
        watched = _Watched(dut)
        for name, payloads in stimulus(params, after).items():
            bench.send(name, payloads)
        await _finish(bench, watched, after)
        check_permissions(params, after, bench, watched.counters)
        await bench.reset()
