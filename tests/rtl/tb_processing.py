"""cocotb tests of the processing unit; the sizes come as the test case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cocotb
import numpy as np

from golden.attention import attention_reference
from golden.formats import FP32
from hw.timing.operation import OperationSizes
from hw.timing.processing import OperationCycles, cycles
from tests.helpers.cocotb_bench import CocotbBench
from tests.helpers.processing import (
    check_cycles,
    check_states,
    kinds_of,
    largest,
    make_operation,
    mixed_sizes,
    offer,
    params_of,
    run,
    sizes,
    unpack,
)
from tests.helpers.rtl import case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hw.params import ProcessingParams

_INPUTS = ("command", "query", "kv")
_OUTPUTS = ("head", "body")


def _params() -> ProcessingParams:
    return params_of(case())


def _operations(
    params: ProcessingParams,
    counts: Sequence[OperationSizes | int],
    kinds: tuple[str, ...],
    seed: int,
    skipped: float = 0.0,
) -> list[Any]:
    rng = np.random.default_rng(seed)
    mask = (1 << params.op_id_bits) - 1
    return [
        make_operation(params, rng, n, kinds[number % len(kinds)], op_id=(37 * number + seed) & mask, skipped=skipped)
        for number, n in enumerate(counts)
    ]


def _closed(params: ProcessingParams, num_tokens: int) -> OperationCycles:
    return cycles(params, largest(params, num_tokens))


async def _check(bench: CocotbBench, params: ProcessingParams, operations: list[Any], *, stalled: bool) -> None:
    await run(bench, params, operations)
    check_states(params, operations, unpack(params, bench.items("head"), bench.items("body")))
    check_cycles(params, operations, bench, stalled=stalled)


@cocotb.test()
async def every_size_back_to_back(dut: Any) -> None:
    """Bits, the recurrence, and the closed form of the interval, with nothing stalled."""
    params = _params()
    bench = await CocotbBench.start(dut)
    counts = sizes(params)
    operations = _operations(params, counts, ("normal",), seed=1)
    offer(bench, params, operations)
    await _check(bench, params, operations, stalled=False)
    kv, body = bench.trace("kv").transfers, bench.trace("body").transfers
    start, beats_before, bodies_before = kv[0], 0, 0
    for n in counts:
        closed = _closed(params, n)
        if n:
            assert kv[beats_before] == start, f"first beat of {n} tokens"
            bodies_before += largest(params, n).query_beats
            assert body[bodies_before - 1] == start + closed.total, f"last body beat of {n} tokens"
        start += closed.interval
        beats_before += closed.kv_beats


@cocotb.test()
async def the_answer_is_attention(dut: Any) -> None:
    """Hold o / l against attention in float64: the error of 16-bit weights and nothing more."""
    params = _params()
    bench = await CocotbBench.start(dut)
    operations = _operations(params, [1, 2, 7, 50], ("normal", "one far above", "equal", "eighty"), seed=2)
    offer(bench, params, operations)
    await run(bench, params, operations)
    states = unpack(params, bench.items("head"), bench.items("body"))
    every_query = [(op, query) for op in operations for query in range(op.sizes.queries)]
    for (op, query), state in zip(every_query, states, strict=True):
        q, k, v = (params.kv_format.from_codes(codes).astype(np.float64) for codes in (op.q, op.k, op.v))
        exact = attention_reference(q, k[:, None], v[:, None], float(op.scale))[query]
        assert state.o is not None
        o, l = FP32.from_codes(state.o).astype(np.float64), float(FP32.from_codes(state.l))
        # u is half an ulp of 1, 2^-11 in fp16. A weight has a relative error of u from its own rounding and u |x| from
        # that of its operand, and |x| e^x is at most 1/e; the polynomial adds less than another u.
        u = 2.0 ** -(params.weight_format.significand_bits + 1)
        assert np.abs(o / l - exact).max() <= 5 * u * np.abs(v).max()


@cocotb.test()
async def every_kind_of_numbers(dut: Any) -> None:
    """Extremes, ties, subnormals, infinities, NaNs: whatever the golden model says."""
    params = _params()
    bench = await CocotbBench.start(dut)
    tile = params.tile_tokens
    for seed, n in enumerate((1, tile + 2, 3 * tile)):
        await bench.reset()
        kinds = kinds_of(params)
        operations = _operations(params, [n] * len(kinds), kinds, seed=seed)
        operations += _operations(params, [n] * len(kinds), kinds, seed=seed + 10, skipped=0.6)
        offer(bench, params, operations)
        await _check(bench, params, operations, stalled=False)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.3, 0.9], pause=[0.0, 0.3, 0.97])
async def mixed_operations_under_stalls(dut: Any, idle: float, pause: float) -> None:
    """Idle inputs by back-pressure on the outputs; 0.97 holds bodies far into the next operation."""
    params = _params()
    bench = await CocotbBench.start(dut)
    counts = [1, 0, 0, params.tile_tokens, 2, 1, 1, 0, 2 * params.tile_tokens + 1, 1, 3]
    operations = _operations(params, counts, kinds_of(params), seed=3)
    for name in _OUTPUTS:
        bench.stall(name, pause)
    offer(bench, params, operations, idle=idle)
    await _check(bench, params, operations, stalled=True)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.4], pause=[0.0, 0.5, 0.96])
async def operations_of_every_run_time_size(dut: Any, idle: float, pause: float) -> None:
    """Beats, tiles, tokens, walks and queries change with every operation; three in ten tokens are passed over."""
    params = _params()
    bench = await CocotbBench.start(dut)
    counts = mixed_sizes(params, np.random.default_rng(int(100 * pause)), 60)
    operations = _operations(params, counts, kinds_of(params), seed=8, skipped=0.3)
    for name in _OUTPUTS:
        bench.stall(name, pause)
    offer(bench, params, operations, idle=idle)
    await _check(bench, params, operations, stalled=idle + pause > 0)


@cocotb.test()
@cocotb.parametrize(name=[*_INPUTS, *_OUTPUTS])
async def one_stream_alone_stalls(dut: Any, name: str) -> None:
    params = _params()
    bench = await CocotbBench.start(dut)
    counts = [1, 0, 2, params.tile_tokens + 1, 1, 0, 1]
    operations = _operations(params, counts, ("normal", "rising"), seed=4)
    offer(bench, params, operations)
    if name in _OUTPUTS:
        bench.stall(name, 0.95)
    else:
        bench.send(name, [], idle=0.9)
    await _check(bench, params, operations, stalled=True)


@cocotb.test()
async def outputs_blocked_for_long_lose_nothing(dut: Any) -> None:
    """Nothing taken for a thousand cycles: the unit stops by itself, then goes on."""
    params = _params()
    bench = await CocotbBench.start(dut)
    operations = _operations(params, [2, 1, 0, params.tile_tokens, 1], ("normal",), seed=5)
    for name in _OUTPUTS:
        bench.stall(name, 1.0)
    offer(bench, params, operations)
    await bench.advance(1000)
    assert bench.items("head") == bench.items("body") == []
    for name in _OUTPUTS:
        bench.stall(name, 0.0)
    await _check(bench, params, operations, stalled=True)


@cocotb.test()
async def reset_at_any_cycle_starts_anew(dut: Any) -> None:
    """Reset at 24 cycles of an operation and its drain, outputs stalled or not; what follows must be right."""
    params = _params()
    bench = await CocotbBench.start(dut)
    dropping = OperationSizes.of(params, 2, walk_tokens=2 * params.tile_tokens + 3, beats=1)
    before = _operations(params, [params.tile_tokens + 2, dropping, 3, 1], ("any code", "special"), seed=6, skipped=0.4)
    after = _operations(params, [1, 0, dropping, params.tile_tokens + 1], ("normal",), seed=7, skipped=0.4)
    length = _closed(params, params.tile_tokens + 2).total + 2 * params.held_beats
    for number, cycle in enumerate(np.linspace(1, length, 24).astype(int)):
        for name in _OUTPUTS:
            bench.stall(name, 0.8 * (number % 2))
        offer(bench, params, before)
        await bench.advance(int(cycle))
        await bench.reset(cycles=1)
        for name in _OUTPUTS:
            bench.stall(name, 0.0)
        offer(bench, params, after)
        await _check(bench, params, after, stalled=False)
        await bench.reset()
