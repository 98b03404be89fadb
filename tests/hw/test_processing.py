# amaranth: UnusedElaboratable=no
"""Promise: the processing unit's order, formulas and errors, and small units in both simulators, bit and cycle."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Component, connect, flipped

from hw.layouts import head_layout
from hw.params import ProcessingParams, ReductionParams
from hw.presets import UNIT_PRESETS
from hw.timing.kv_order import kv_order, kv_vectors
from hw.timing.operation import OperationSizes
from hw.timing.processing import cycles, drain_cycles, exposed_cycles, score_cycles, weight_cycles
from hw.timing.processing_prediction import predict
from hw.timing.trace import StreamTrace
from hw.units.processing import ProcessingUnit
from tests.helpers.native import run_native
from tests.helpers.processing import (
    check_cycles,
    check_states,
    kinds_of,
    make_operation,
    mixed_sizes,
    offer,
    run,
    sizes,
    unpack,
)
from tests.helpers.processing_group import processing
from tests.helpers.processing_scores import WithScores
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
    assert drain_cycles(params, OperationSizes.of(params, 1)) == 1 + 1 + 4 + 1 + 8 == 15
    one = cycles(params, OperationSizes.of(params, 1))
    assert (one.kv_beats, one.exposed, one.interval, one.total) == (16, 22, 38, 37 + 15)
    many = cycles(params, OperationSizes.of(params, 64))
    assert (many.kv_beats, many.exposed, many.interval, many.total) == (1024, 0, 1024, 1023 + 15)
    none = cycles(params, OperationSizes.of(params, 0))
    assert (none.kv_beats, none.exposed, none.drain, none.interval, none.total) == (0, 0, 0, 9, 0)
    assert cycles(params, OperationSizes.of(params, 16_000_000)).interval == 256_000_000


def test_hand_counted_cycles_of_dropped_tokens():
    """Tiles of two, one token of three counts: K0 has 16 beats, K1 8, V0 16, V1 8; only the first 8 of K0, V0 count."""
    params = ProcessingParams(tile_tokens=2)
    three = cycles(params, OperationSizes.of(params, 1, walk_tokens=3))
    # Last K beat that counts in cycle 7, its weight in 7 + 23; V0 would have come in cycle 24.
    assert (three.kv_beats, three.exposed, three.interval) == (48, 6, 54)
    # The last V beat that counts comes in cycle 37; 8 beats of V0 and 8 of V1 follow it.
    assert (three.tail, three.total) == (16, 37 + 15)
    none = cycles(params, OperationSizes.of(params, 0, walk_tokens=3))
    assert (none.kv_beats, none.exposed, none.tail, none.interval, none.total) == (48, 0, 48, 48, 0)


def test_hand_counted_cycles_of_single_beats():
    """One beat a token: V beats come every second cycle."""
    params = ProcessingParams(slices=4)
    assert score_cycles(params) == 9 + 2
    # K in 0, 1, 2; V in 2 + 25, 29, 31; body one beat.
    three = cycles(params, OperationSizes.of(params, 3, beats=1))
    assert (three.kv_beats, three.exposed, three.interval, three.total) == (6, 24 + 2, 32, 31 + 8)
    # K in 0; V in 25, with its weight: the head is out a cycle later, and the next K in 27, not 26.
    one = cycles(params, OperationSizes.of(params, 1, beats=1))
    assert (one.kv_beats, one.exposed, one.interval, one.total) == (2, 24, 27, 25 + 8)


def test_hand_counted_cycles_of_two_queries():
    """Each beat is used twice, exponentials are twice as many, and both bodies follow the last use."""
    params = ProcessingParams(queries=2, tile_tokens=4)
    # K in 0 to 15; of the weights of both queries, issued in 15 + 9 and 16 + 9, the later can be used in 16 + 9 + 14.
    one = cycles(params, OperationSizes.of(params, 1, queries=2))
    assert (one.kv_beats, one.exposed, one.interval, one.total) == (16, 39 - 16, 39 + 16, 54 + 7 + 16)
    # K0 in 0 to 63, K1 in 64 to 79; V0 waits for cycle 63 + 9 + 15 = 87 and ends in 150, V1 follows at once.
    five = cycles(params, OperationSizes.of(params, 5, queries=2))
    assert (five.kv_beats, five.exposed, five.interval) == (80, 87 - 80, 167)
    none = cycles(params, OperationSizes.of(params, 0, queries=2))
    assert (none.kv_beats, none.interval, none.total) == (0, 17, 0)


def test_queries_beyond_the_words_of_a_unit_are_refused():
    params = ProcessingParams(queries=8, query_beats=32)
    assert OperationSizes.of(params, 1, queries=8, beats=4).query_beats == 32
    for queries, message in ((5, "at most 4 of 8 beats, not 5"), (9, "from 1 to 8, not 9"), (0, "at least 1, not 0")):
        with pytest.raises(ValueError, match=f"^queries must be {message}$"):
            OperationSizes.of(params, 1, queries=queries)


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ({"num_tokens": -1}, ValueError, "num_tokens must be at least 0, not -1"),
        ({"num_tokens": 1 << 24}, ValueError, "num_tokens must be from 0 to 16777215, not 16777216"),
        ({"num_tokens": 5, "walk_tokens": 4}, ValueError, "walk_tokens must be at least 5, not 4"),
        ({"num_tokens": 5, "walk_tokens": 1 << 24}, ValueError, "walk_tokens must be from 0 to 16777215, not 16777216"),
        ({"num_tokens": 5, "beats": 0}, ValueError, "beats must be at least 1, not 0"),
        ({"num_tokens": 5, "beats": 9}, ValueError, "beats must be from 1 to 8, not 9"),
        ({"num_tokens": 5, "beats": 4.0}, TypeError, "beats must be an integer, not 4.0"),
        ({"num_tokens": 5, "tile_tokens": 0}, ValueError, "tile_tokens must be at least 1, not 0"),
        ({"num_tokens": 5, "tile_tokens": 17}, ValueError, "tile_tokens must be from 1 to 16, not 17"),
    ],
)
def test_sizes_that_a_unit_cannot_run_are_refused(sizes, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        OperationSizes.of(ProcessingParams(), **sizes)


def test_sizes_of_another_unit_are_refused():
    sizes = OperationSizes.of(ProcessingParams(), 3)
    small = ProcessingParams(head_dim=32)
    for formula in (cycles, lambda params, sizes: predict(params, [sizes])):
        with pytest.raises(ValueError, match=r"^beats must be from 1 to 2, not 8$"):
            formula(small, sizes)


@pytest.mark.parametrize(("lanes", "slices"), [(16, 1), (2, 1), (4, 4)])
@pytest.mark.parametrize("beats", [1, 2, 3, 12])
@pytest.mark.parametrize("tile_tokens", [1, 2, 3, 5, 16])
@pytest.mark.parametrize("queries", [1, 2, 3, 8])
def test_the_closed_form_equals_the_recurrence(lanes, slices, beats, tile_tokens, queries):
    params = ProcessingParams(head_dim=12 * lanes, lanes=lanes, slices=slices, queries=8)
    shared = {"beats": beats, "tile_tokens": tile_tokens, "queries": queries}
    empty = OperationSizes.of(params, 0, **shared)
    counts = range(5 * tile_tokens + 3)
    # Every rest of every number of tiles is tried with one query; its borders do with several.
    borders = {n for n in counts if n % tile_tokens in (0, 1, tile_tokens - 1)}
    for n in counts if queries == 1 else sorted(borders):
        for dropped in {0, 1, tile_tokens - 1, tile_tokens + 1, 5 * tile_tokens + 1}:
            each = OperationSizes.of(params, n, walk_tokens=n + dropped, **shared)
            if not each.walk_tokens:
                continue
            run_of = predict(params, [each, each, empty, each])
            closed = cycles(params, each)
            first, second, behind = run_of.kv[:: closed.kv_beats]
            assert second - first == closed.interval, each
            assert behind - second == closed.interval + cycles(params, empty).interval, each
            if n:
                assert run_of.body[each.query_beats - 1] - first == closed.total, each


@pytest.mark.parametrize(("head_dim", "tile_tokens"), [(128, 16), (32, 12), (512, 1), (48, 8)])
def test_waits_are_simple_where_a_tile_hides_an_exponential(head_dim, tile_tokens):
    """The three cases of the unit's docstring."""
    params = ProcessingParams(head_dim=head_dim, lanes=16, tile_tokens=tile_tokens)
    delay = 4 + params.exp.latency_cycles + 9
    assert tile_tokens * params.beats >= delay
    for n in range(1, 5 * tile_tokens):
        second = (n - tile_tokens) * params.beats
        expected = delay - 1 if n <= tile_tokens else max(0, delay - 1 - second) if n <= 2 * tile_tokens else 0
        assert exposed_cycles(params, OperationSizes.of(params, n)) == expected, n


def test_waits_alternate_where_tiles_are_too_small():
    """Two beats a token and tiles of one: D = 20, F = 2, so every other tile waits D - 2F = 16 cycles."""
    params = ProcessingParams(head_dim=4, lanes=2, tile_tokens=1)
    assert score_cycles(params) + weight_cycles(params) == 20
    waits = [exposed_cycles(params, OperationSizes.of(params, n)) for n in range(10, 21)]
    assert np.diff(waits).tolist() == [16, 0] * 5


def test_prediction_refuses_a_trace_that_ends_early():
    params = ProcessingParams(head_dim=8, lanes=4)
    one = OperationSizes.of(params, 1)
    on, off = np.ones(40, dtype=bool), np.zeros(40, dtype=bool)
    with pytest.raises(ValueError, match="trace must reach a ready cycle"):
        predict(params, [one], head=StreamTrace(on, off))
    with pytest.raises(ValueError, match="trace must hold more than 0 transfers"):
        predict(params, [one], kv=StreamTrace(off, on))


def test_constructor_names_what_it_wants():
    with pytest.raises(TypeError, match="params must be a ProcessingParams, not ReductionParams"):
        ProcessingUnit(ReductionParams())  # pyright: ignore[reportArgumentType]


class _LoneSlice(Component):
    """One unit of a pair whose other half adds nothing: its own sums come back after ``delay`` cycles."""

    def __init__(self, params, delay):
        self.delay = delay
        self.unit = ProcessingUnit(params)
        members = self.unit.signature.members
        super().__init__({name: members[name] for name in ("command", "query", "kv", "head", "body")})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        for name in self.signature.members:
            connect(m, flipped(getattr(self, name)), getattr(unit, name))
        valid, total = unit.partial.valid, unit.partial.sum
        for _ in range(self.delay):
            later = Signal(), Signal(32)
            m.d.sync += [later[0].eq(valid), later[1].eq(total)]
            valid, total = later
        m.d.comb += [unit.score.valid.eq(valid), unit.score.sum.eq(total)]
        return m


@pytest.mark.parametrize(("delay", "queries"), [(0, 1), (1, 1), (2, 1), (1, 2), (3, 2)])
def test_a_sum_that_misses_its_cycle_is_a_fault(delay, queries):
    params = ProcessingParams(head_dim=4, lanes=2, slices=2, queries=queries)
    rng = np.random.default_rng(3)
    counts = [3, 0, 1]
    operations = [make_operation(params.replace(slices=1), rng, n, "normal") for n in counts]

    async def scenario(bench):
        offer(bench, params.replace(slices=1), operations)
        await run(bench, params, operations)
        heads = [head_layout(params).from_bits(head) for head in bench.items("head")]
        assert [head.fault for head in heads] == [int(delay != 1 and n > 0) for n in counts for _ in range(queries)]

    run_pysim(_LoneSlice(params, delay), scenario)


def test_the_largest_sizes_elaborate():
    params = ProcessingParams(head_dim=256, lanes=16, tile_tokens=32, slices=16)
    assert "partial__sum" in rtlil.convert(ProcessingUnit(params), name="unit")
    assert not {"partial", "score"} & {*ProcessingUnit(params.replace(slices=1)).signature.members}


_SMALL = {
    "4 lanes": ProcessingParams(head_dim=8, lanes=4, tile_tokens=4),
    "three beats": ProcessingParams(head_dim=6, lanes=2, tile_tokens=3, op_id_bits=2, token_bits=5),
    "tiles of one": ProcessingParams(head_dim=4, lanes=2, tile_tokens=1),
    "two slices": ProcessingParams(head_dim=6, lanes=2, tile_tokens=3, slices=2),
    "two queries of one beat": ProcessingParams(head_dim=6, lanes=2, tile_tokens=2, queries=2, query_beats=3),
}
_SHARED = {
    "four queries": ProcessingParams(head_dim=8, lanes=4, tile_tokens=4, queries=4),
    "two slices of two queries": ProcessingParams(head_dim=6, lanes=2, tile_tokens=3, slices=2, queries=2),
}
_BF16 = {
    preset: UNIT_PRESETS[preset].processing.replace(head_dim=4, lanes=2, tile_tokens=3, queries=queries)
    for preset, queries in (("pam-hbm-bf16", 1), ("pam-hbm-bf16-small", 2))
}
_STALLS = {"free": (0.0, 0.0), "both ends": (0.3, 0.5), "outputs": (0.0, 0.96)}


@pytest.mark.parametrize("size", _SMALL)
@pytest.mark.parametrize("stalls", _STALLS)
def test_small_units_are_right_in_bits_and_cycles(size, stalls):
    _run_natively(_SMALL[size], *_STALLS[stalls], mixed=16)


@pytest.mark.parametrize("size", ["tiles of one", "two slices", "two queries of one beat"])
def test_small_units_are_right_in_amaranths_simulator(size):
    """With their own gates, under stalls: of each kind of unit one."""
    _run_all_kinds(_SMALL[size], 0.3, 0.5, 6, lambda scenario: run_pysim(processing(_SMALL[size]), scenario))


@pytest.mark.parametrize("size", _SHARED)
def test_units_of_more_queries_are_right_in_bits_and_cycles(size):
    """Once under stalls: ``tests/rtl/test_processing.py`` has the others."""
    _run_natively(_SHARED[size], 0.1, 0.2, mixed=6)


@pytest.mark.parametrize("preset", _BF16)
def test_bf16_units_are_right_in_bits_and_cycles(preset):
    """Once under stalls: no handshake depends on a format."""
    params = _BF16[preset]
    _run_all_kinds(params, 0.1, 0.2, 6, lambda scenario: run_pysim(processing(params), scenario))


def _run_natively(params, idle, pause, *, mixed):
    # With its scores in view a unit is the one of tests/hw/test_processing_scores.py, and built once for both.
    _run_all_kinds(params, idle, pause, mixed, lambda scenario: run_native(WithScores, params, scenario))


def _run_all_kinds(params, idle, pause, mixed, simulate):
    rng = np.random.default_rng(7)
    mask = (1 << params.op_id_bits) - 1
    kinds = kinds_of(params)
    operations = [
        make_operation(params, rng, each, kinds[number % len(kinds)], op_id=number & mask, skipped=0.45 * (number % 3))
        for number, each in enumerate([*sizes(params), *mixed_sizes(params, rng, mixed)])
    ]

    async def scenario(bench):
        bench.stall("head", pause)
        bench.stall("body", pause)
        offer(bench, params, operations, idle=idle)
        await run(bench, params, operations)
        check_states(params, operations, unpack(params, bench.items("head"), bench.items("body")))
        check_cycles(params, operations, bench, stalled=idle + pause > 0)

    simulate(scenario)
