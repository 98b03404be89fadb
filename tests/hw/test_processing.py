# amaranth: UnusedElaboratable=no
"""Promise: the processing unit's order, formulas and errors, and small units in Amaranth's simulator, bit and cycle."""

from __future__ import annotations

import numpy as np
import pytest

from hw.params import ProcessingParams, ReductionParams
from hw.timing.processing import (
    cycles,
    drain_cycles,
    exposed_cycles,
    kv_order,
    kv_vectors,
    predict,
    score_cycles,
    weight_cycles,
)
from hw.timing.trace import StreamTrace
from hw.units.processing import ProcessingUnit
from tests.helpers.processing import KINDS, check_cycles, check_states, make_operation, offer, run, sizes, unpack
from tests.helpers.pysim import run_pysim


def _names(tile_tokens, num_tokens):
    return [f"{t.kind}{t.number}[{t.start}:{t.start + t.tokens}]" for t in kv_order(tile_tokens, num_tokens)]


def test_keys_run_one_tile_ahead_of_values():
    assert _names(4, 0) == []
    assert _names(4, 1) == ["k0[0:1]", "v0[0:1]"]
    assert _names(4, 4) == ["k0[0:4]", "v0[0:4]"]
    assert _names(4, 5) == ["k0[0:4]", "k1[4:5]", "v0[0:4]", "v1[4:5]"]
    assert _names(2, 6) == ["k0[0:2]", "k1[2:4]", "v0[0:2]", "k2[4:6]", "v1[2:4]", "v2[4:6]"]


@pytest.mark.parametrize(("arguments", "message"), [((0, 1), "tile_tokens"), ((4, -1), "num_tokens")])
def test_order_refuses_impossible_counts(arguments, message):
    with pytest.raises(ValueError, match=f"{message} must be at least"):
        list(kv_order(*arguments))


def test_vectors_come_in_that_order():
    k, v = np.arange(5)[:, None] * np.ones((1, 3)), -np.arange(5)[:, None] * np.ones((1, 3)) - 1
    rows = kv_vectors(2, k, v)
    assert rows.shape == (10, 3)
    assert rows[:, 0].tolist() == [0, 1, 2, 3, -1, -2, 4, -3, -4, -5]
    assert kv_vectors(2, k[:0], v[:0]).shape == (0, 3)
    with pytest.raises(ValueError, match=r"v must have the shape of k \(5, 3\), not \(4, 3\)"):
        kv_vectors(2, k, v[:4])


def test_hand_counted_cycles():
    """16 lanes, head_dim 128: 4 tree levels, 8 beats, exponential in 10 cycles."""
    params = ProcessingParams()
    # Register, multiply, 4 levels, accumulate, scale, maximum; then read, subtract, round, exponential, write.
    assert score_cycles(params) == 1 + 1 + 4 + 1 + 1 + 1 == 9
    assert weight_cycles(params) == 3 + 10 + 1 == 14
    # Register, multiply, 4 levels, last adder: the body beats follow through the output register.
    assert drain_cycles(params) == 1 + 1 + 4 + 1 + 8 == 15
    one = cycles(params, 1)
    assert (one.kv_beats, one.exposed, one.interval, one.total) == (16, 22, 38, 37 + 15)
    many = cycles(params, 64)
    assert (many.kv_beats, many.exposed, many.interval, many.total) == (1024, 0, 1024, 1023 + 15)
    none = cycles(params, 0)
    assert (none.kv_beats, none.exposed, none.drain, none.interval, none.total) == (0, 0, 0, 9, 0)
    assert cycles(params, 16_000_000).interval == 256_000_000


@pytest.mark.parametrize("num_tokens", [-1, 1 << 24])
def test_cycles_refuse_what_a_command_cannot_hold(num_tokens):
    with pytest.raises(ValueError, match=f"num_tokens must be from 0 to 16777215, not {num_tokens}"):
        cycles(ProcessingParams(), num_tokens)


@pytest.mark.parametrize(("head_dim", "lanes"), [(32, 16), (128, 16), (80, 16), (4, 2), (128, 4)])
@pytest.mark.parametrize("tile_tokens", [1, 2, 3, 5, 16])
def test_the_closed_form_equals_the_recurrence(head_dim, lanes, tile_tokens):
    params = ProcessingParams(head_dim=head_dim, lanes=lanes, tile_tokens=tile_tokens)
    beats = params.beats
    for n in range(1, 8 * tile_tokens + 3):
        run_of = predict(params, [n, n, 0, 1])
        closed = cycles(params, n)
        first, second, behind = run_of.kv[0], run_of.kv[2 * n * beats], run_of.kv[4 * n * beats]
        assert second - first == closed.interval, n
        assert run_of.body[beats - 1] - first == closed.total, n
        assert behind - second == closed.interval + cycles(params, 0).interval, n


@pytest.mark.parametrize(("head_dim", "tile_tokens"), [(128, 16), (32, 12), (512, 1), (48, 8)])
def test_waits_are_simple_where_a_tile_hides_an_exponential(head_dim, tile_tokens):
    """The three cases of the unit's docstring."""
    params = ProcessingParams(head_dim=head_dim, lanes=16, tile_tokens=tile_tokens)
    delay = 4 + params.exp.latency_cycles + 9
    assert tile_tokens * params.beats >= delay
    for n in range(1, 5 * tile_tokens):
        second = (n - tile_tokens) * params.beats
        expected = delay - 1 if n <= tile_tokens else max(0, delay - 1 - second) if n <= 2 * tile_tokens else 0
        assert exposed_cycles(params, n) == expected, n


def test_waits_alternate_where_tiles_are_too_small():
    """Two beats a token and tiles of one: D = 20, F = 2, so every other tile waits D - 2F = 16 cycles."""
    params = ProcessingParams(head_dim=4, lanes=2, tile_tokens=1)
    assert score_cycles(params) + weight_cycles(params) == 20
    steps = [exposed_cycles(params, n + 1) - exposed_cycles(params, n) for n in range(10, 20)]
    assert steps == [16, 0] * 5


def test_prediction_refuses_a_trace_that_ends_early():
    params = ProcessingParams(head_dim=8, lanes=4)
    on, off = np.ones(40, dtype=bool), np.zeros(40, dtype=bool)
    with pytest.raises(ValueError, match="trace must reach a ready cycle"):
        predict(params, [1], head=StreamTrace(on, off))
    with pytest.raises(ValueError, match="trace must hold more than 0 transfers"):
        predict(params, [1], kv=StreamTrace(off, on))


def test_constructor_names_what_it_wants():
    with pytest.raises(TypeError, match="params must be a ProcessingParams, not ReductionParams"):
        ProcessingUnit(ReductionParams())  # pyright: ignore[reportArgumentType]


_SMALL = {
    "4 lanes": ProcessingParams(head_dim=8, lanes=4, tile_tokens=4),
    "three beats": ProcessingParams(head_dim=6, lanes=2, tile_tokens=3, op_id_bits=2, token_bits=5),
    "tiles of one": ProcessingParams(head_dim=4, lanes=2, tile_tokens=1),
}
_STALLS = {"free": (0.0, 0.0), "both ends": (0.3, 0.5), "outputs": (0.0, 0.96)}


@pytest.mark.parametrize("size", _SMALL)
@pytest.mark.parametrize("stalls", _STALLS)
def test_small_units_are_right_in_bits_and_cycles(size, stalls):
    params = _SMALL[size]
    idle, pause = _STALLS[stalls]
    rng = np.random.default_rng(7)
    mask = (1 << params.op_id_bits) - 1
    operations = [
        make_operation(params, rng, n, KINDS[number % len(KINDS)], op_id=number & mask)
        for number, n in enumerate(sizes(params))
    ]

    async def scenario(bench):
        bench.stall("head", pause)
        bench.stall("body", pause)
        offer(bench, params, operations, idle=idle)
        await run(bench, params, operations)
        check_states(params, operations, unpack(params, bench.items("head"), bench.items("body")))
        check_cycles(params, operations, bench, stalled=stalls != "free")

    run_pysim(ProcessingUnit(params), scenario)
