"""Promise: a unit gives the score of every token, bit and cycle, between attentions or alone, and loses none."""

from __future__ import annotations

import numpy as np
import pytest

from hw.params import ProcessingParams
from hw.presets import UNIT_PRESETS
from hw.timing.operation import OperationKind, OperationSizes
from hw.timing.processing import cycles, token_score_cycles
from hw.timing.processing_prediction import predict
from tests.helpers.native import run_native
from tests.helpers.processing import check_states, kinds_of, make_operation, mixed_sizes, offer, run, sizes, unpack
from tests.helpers.processing_scores import WithScores, attending, check_score_cycles, check_scores, scoring
from tests.helpers.pysim import run_pysim

_UNITS = {
    "4 lanes": ProcessingParams(head_dim=8, lanes=4, tile_tokens=4),
    "three beats": ProcessingParams(head_dim=6, lanes=2, tile_tokens=3, op_id_bits=2, token_bits=5),
    "tiles of one": ProcessingParams(head_dim=4, lanes=2, tile_tokens=1),
    "two slices of two queries": ProcessingParams(head_dim=6, lanes=2, tile_tokens=3, slices=2, queries=2),
    "two queries of one beat": ProcessingParams(head_dim=6, lanes=2, tile_tokens=2, queries=2, query_beats=3),
    "four queries": ProcessingParams(head_dim=8, lanes=4, tile_tokens=4, queries=4),
    "bf16": UNIT_PRESETS["pam-hbm-bf16"].processing.replace(head_dim=4, lanes=2, tile_tokens=3),
}


def _operations(params, rng, *, share, mixed=10):
    """Every kind of numbers and every count; a share of the operations is of scores, the others are attention."""
    kinds, mask = kinds_of(params), (1 << params.op_id_bits) - 1
    made = [
        make_operation(params, rng, each, kinds[number % len(kinds)], op_id=number & mask, skipped=0.45 * (number % 3))
        for number, each in enumerate([*sizes(params), *mixed_sizes(params, rng, mixed)])
    ]
    return [scoring(op) if rng.random() < share else op for op in made]


def _scenario(params, operations, *, idle=0.0, pause=0.0):
    async def scenario(bench):
        for name in ("head", "body"):
            bench.stall(name, pause)
        offer(bench, params, operations, idle=idle)
        await run(bench, params, operations)
        await bench.advance(token_score_cycles(params) + 1)
        check_scores(params, operations, bench.items("scores"))
        check_states(params, attending(operations), unpack(params, bench.items("head"), bench.items("body")))
        check_score_cycles(params, operations, bench, stalled=idle + pause > 0)

    return scenario


@pytest.mark.parametrize("size", _UNITS)
@pytest.mark.parametrize(("share", "idle", "pause"), [(1.0, 0.0, 0.0), (0.6, 0.3, 0.5)], ids=["alone", "mixed"])
def test_scores_are_right_in_bits_and_cycles(size, share, idle, pause):
    params = _UNITS[size]
    operations = _operations(params, np.random.default_rng(7), share=share)
    run_native(WithScores, params, _scenario(params, operations, idle=idle, pause=pause))


def test_kinds_follow_each_other_without_a_stall():
    params = _UNITS["two queries of one beat"]
    operations = _operations(params, np.random.default_rng(3), share=0.5, mixed=30)
    run_pysim(WithScores(params), _scenario(params, operations))


def test_attention_keeps_its_cycles_behind_scores():
    """What a unit does for attention is the same, from the cycle in which its command starts on, whatever came before.

    One token of one beat: K in cycle s + 1, its V when its weight is there, the head a cycle after that.
    """
    params = ProcessingParams(head_dim=8, lanes=4, tile_tokens=4)
    attention, scores = (OperationSizes.of(params, 5, kind=kind) for kind in OperationKind)
    alone, behind = predict(params, [attention]), predict(params, [scores, attention])
    later = behind.kv[scores.kv_beats] - alone.kv[0]
    np.testing.assert_array_equal(behind.kv[scores.kv_beats :], alone.kv + later)
    np.testing.assert_array_equal(behind.body, alone.body + later)


def test_hand_counted_cycles():
    """16 lanes, 8 beats: register, multiply, 4 levels, accumulate, scale; then it shows."""
    params = ProcessingParams()
    assert token_score_cycles(params) == 1 + 1 + 4 + 1 + 1
    assert token_score_cycles(params.replace(slices=4)) == 8 + 2
    three = cycles(params, OperationSizes.of(params, 3, kind=OperationKind.SCORE))
    # K in 0 to 23; the last q beat of the next query comes in 24, it starts in 25, and its K in 26.
    assert (three.kv_beats, three.exposed, three.interval, three.total) == (24, 2, 26, 23 + 8)
    # Behind the token that counts come 16 beats that do not: the next query is in before they end.
    dropped = cycles(params, OperationSizes.of(params, 1, walk_tokens=3, kind=OperationKind.SCORE))
    assert (dropped.kv_beats, dropped.tail, dropped.interval, dropped.total) == (24, 16, 24, 7 + 8)
    none = cycles(params, OperationSizes.of(params, 0, kind=OperationKind.SCORE))
    assert (none.kv_beats, none.interval, none.total) == (0, 9, 0)


@pytest.mark.parametrize("queries", [1, 2, 4])
@pytest.mark.parametrize("beats", [1, 2, 3, 8])
@pytest.mark.parametrize(("tokens", "walk"), [(5, 5), (16, 16), (17, 17), (7, 8), (40, 70)])
def test_the_closed_form_is_the_recurrence(queries, beats, tokens, walk):
    params = ProcessingParams(head_dim=128, queries=4)
    sizes_ = OperationSizes.of(params, tokens, walk_tokens=walk, beats=beats, queries=queries, kind=OperationKind.SCORE)
    form = cycles(params, sizes_)
    predicted = predict(params, [sizes_] * 6)
    first = predicted.kv.reshape(6, -1)[:, 0]
    if 2 * form.interval > token_score_cycles(params) + 1:
        assert np.diff(first).tolist() == [form.interval] * 5
    else:
        assert np.diff(first).max() > form.interval
    assert predicted.scores[tokens * queries - 1] - first[0] == form.total
