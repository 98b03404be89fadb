"""Promise: a channel gives the score of every token asked for, once, in order, by legal commands, at a stated pace."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from golden.formats import BF16
from hw.native_arithmetic import NATIVE
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import row_cycles, with_refresh
from hw.timing.operation import OperationKind
from hw.timing.score_queue import queue_depth
from hw.timing.score_runs import score_run_cycles
from tests.helpers.channel_scores import checked_scores, interrupted_scores, score_operation, scored
from tests.helpers.channel_scores import expected_scores as expected
from tests.helpers.channels import grown, make_channel_operation

ATTACC = DEVICE_PRESETS["attacc"].channel
WIDE = DEVICE_PRESETS["pam-wide"].channel
PAM = DEVICE_PRESETS["pam"].channel
# The channels, and so the builds, of test_channel_shared_pass and test_channel_bf16.
SPLIT = PAM.replace(processing=PAM.processing.replace(queries=4), logic_ratio=Fraction(2, 5), column_period=None)
TURNS = DEVICE_PRESETS["attacc-bankgroup"].channel
TURNS = TURNS.replace(processing=TURNS.processing.replace(queries=4))
BRAIN = DEVICE_PRESETS["attacc"].channel.replace(processing=ATTACC.processing.replace(kv_format=BF16))


def _beats(params, operation):
    return -(-operation.head_dim // (params.processing.lanes * params.processing.slices))


def test_dimensions_and_token_counts_of_every_kind():
    """Labels of 8 elements to keys of 256, parts with more tokens than others and with none, attention between."""
    rng = np.random.default_rng(7)
    sizes = [(128, tokens) for tokens in (0, 1, 15, 16, 17, 256, 257, 1000)]
    sizes += [(8, 513), (16, 33), (64, 1), (80, 300), (192, 321), (256, 129), (1, 40), (256, 0)]
    operations = [score_operation(ATTACC, rng, head_dim=head_dim, tokens=tokens) for head_dim, tokens in sizes]
    uneven = np.arange(16) * 5
    operations += [score_operation(ATTACC, rng, head_dim=128, tokens=list(counts)) for counts in (uneven, uneven[::-1])]
    _, counts = checked_scores(ATTACC, operations)
    beats = [_beats(ATTACC, op) for op in operations]
    # A column of every bank for each token and beat of the longest part, of keys alone; rows of 32 columns.
    assert counts["MACAB"] == sum(int(op.tokens.max()) * b for op, b in zip(operations, beats, strict=True))
    tiles = [-(-int(op.tokens.max()) // (32 // b)) for op, b in zip(operations, beats, strict=True)]
    assert counts["ACTAB"] == sum(tiles)
    assert counts["BROADCAST"] == sum(ATTACC.command_columns + 4 * b for b in beats)
    mixed = []
    for number, op in enumerate(operations):
        mixed += [
            op,
            make_channel_operation(ATTACC, rng, head_dim=(128, 64)[number % 2], tokens=(0, 1, 200)[number % 3]),
        ]
    checked_scores(ATTACC, mixed, first_refresh_cycles=500)


def test_queries_selections_new_tokens_and_shared_keys():
    """Whole tokens in banks: every part's score side by side; some parts want a position that others do not."""
    rng = np.random.default_rng(5)
    operations = [
        score_operation(WIDE, rng, queries=queries, head_dim=head_dim, tokens=tokens)
        for queries, head_dim, tokens in (
            (8, 16, 700),
            (1, 256, 65),
            (3, 80, 1),
            (8, 128, 63),
            (5, 100, 0),
            (4, 16, 64),
        )
    ]
    positions = np.arange(0, 40, 3)
    for queries, head_dim, share in ((1, 16, 0.5), (8, 64, 0.1), (3, 128, 0.9)):
        wanted = rng.random((64, len(positions))) < share
        operations.append(
            score_operation(
                WIDE, rng, queries=queries, head_dim=head_dim, tokens=64 * 40, positions=positions, wanted=wanted
            )
        )
    # Labels that grow by a token a step, and keys that attention and scores read in turn.
    labels = [make_channel_operation(WIDE, rng, head_dim=16, tokens=130, kv_head=1)]
    for part in (2, 0, 3, 2):
        labels.append(grown(labels[-1], rng, part))
    operations += [scored(label) for label in labels]
    shared = make_channel_operation(WIDE, rng, head_dim=128, tokens=300, kv_head=2)
    asked = replace(shared, kind=OperationKind.SCORE)
    operations += [shared, asked, shared, asked]
    _, counts = checked_scores(WIDE, operations, first_refresh_cycles=700)
    # Four keys of one column; no value.
    assert counts["WR"] == 4
    assert counts["REFAB"] > 1


def test_slices_of_queries_at_two_fifths_of_the_clock():
    rng = np.random.default_rng(6)
    operations = [
        score_operation(SPLIT, rng, queries=queries, head_dim=head_dim, tokens=tokens)
        for queries, head_dim, tokens in ((4, 128, 300), (3, 8, 257), (1, 100, 33), (2, 128, 16), (4, 64, 0))
    ]
    checked_scores(SPLIT, operations, platform=NATIVE)


def test_rows_in_turn_at_a_bank_group():
    rng = np.random.default_rng(8)
    operations = [
        score_operation(TURNS, rng, queries=queries, head_dim=head_dim, tokens=tokens)
        for queries, head_dim, tokens in ((1, 16, 2000), (4, 128, 300), (2, 256, 0), (3, 8, 1), (1, 128, 16 * 65))
    ]
    operations.insert(2, make_channel_operation(TURNS, rng, head_dim=128, tokens=300))
    _, counts = checked_scores(TURNS, operations, platform=NATIVE, first_refresh_cycles=900)
    assert counts["REFAB"] >= 1


def test_codes_of_every_kind_in_both_formats():
    rng = np.random.default_rng(9)
    for params, platform in ((ATTACC, None), (BRAIN, NATIVE)):
        operation = score_operation(params, rng, head_dim=80, tokens=640)
        fmt = params.processing.kv_format
        operation.keys[0][1:9] = rng.integers(0, fmt.inf_code, (8, 80))
        operation.keys[0][9:17] = rng.integers(0, 1 << 16, (8, 80))
        operation.keys[0][17, :3] = fmt.inf_code, 1, fmt.nan_code
        operation.keys[0][18] = 0
        checked_scores(
            params, [operation, replace(operation, scale=1.0), replace(operation, scale=0.0)], platform=platform
        )


@pytest.mark.parametrize(
    ("params", "platform", "head_dim", "part_tokens", "queries"),
    [
        *(
            (ATTACC, None, head_dim, tokens, 1)
            for head_dim, tokens in ((8, 1), (16, 33), (128, 100), (256, 7), (8, 1024))
        ),
        *(
            (WIDE, NATIVE, head_dim, tokens, g)
            for head_dim, tokens, g in ((8, 1, 1), (16, 33, 1), (16, 1024, 1), (64, 100, 8))
        ),
        (PAM, NATIVE, 8, 1024, 1),
        *((SPLIT, NATIVE, head_dim, tokens, g) for head_dim, tokens, g in ((8, 33, 1), (128, 40, 3), (64, 100, 4))),
        *((TURNS, NATIVE, head_dim, tokens, g) for head_dim, tokens, g in ((8, 33, 1), (128, 100, 1), (64, 50, 4))),
    ],
)
def test_cycles_are_those_of_the_closed_form(params, platform, head_dim, part_tokens, queries):
    rng = np.random.default_rng(part_tokens)
    operation = score_operation(params, rng, queries=queries, head_dim=head_dim, tokens=part_tokens * params.parts)
    run, _ = checked_scores(params, [operation], platform=platform)
    form = score_run_cycles(params, head_dim, part_tokens, queries=queries)
    assert len(run.read_cycles) == form.columns
    assert (run.read_cycles[0], run.read_cycles[-1]) == (form.first_column, form.last_column)
    early = form.last_score - int(run.scores[0].cycles[-1])
    assert 0 <= early < 1 / params.logic_ratio


def test_cycles_by_hand():
    """Labels of 8 over four banks, 33 a part: 2 bursts of command, 4 of query, 4 apart; rows of 32 columns and of 1.

    The score of the last: n_cl 19, the register 1, eleven cycles of the logic less the one the wait stands for, the
    queue 2.
    """
    form = score_run_cycles(ATTACC, 8, 33)
    assert (form.columns, form.rows) == (33, 2)
    assert form.first_column == 4 * (2 + 4) + 18
    assert form.last_column == form.first_column + 19 + 31 * 6 + 8 + 19
    assert form.last_score == form.last_column + 19 + 2 * 11 + 2


@pytest.mark.parametrize("first", [1, 777])
def test_refresh_costs_what_the_formula_says(first):
    rng = np.random.default_rng(first)
    operations = [score_operation(ATTACC, rng, head_dim=16, tokens=16 * 1024)]
    free, _ = checked_scores(ATTACC, operations)
    run, counts = checked_scores(ATTACC, operations, first_refresh_cycles=first)
    predicted = with_refresh(ATTACC, free.read_cycles[-1], first)
    assert counts["REFAB"] >= 1
    assert abs(run.read_cycles[-1] - predicted) <= max(0.01 * predicted, row_cycles(ATTACC, 32))


@pytest.mark.parametrize(("params", "queries"), [(ATTACC, 1), (WIDE, 1), (WIDE, 8)], ids=["split", "whole", "shared"])
def test_refused_scores_stall_the_reads_and_none_is_lost(params, queries):
    """Refused by chance, most of the time, and for 3,000 cycles on end, while refreshes fall due."""
    rng = np.random.default_rng(queries)
    operations = [
        score_operation(params, rng, queries=queries, head_dim=head_dim, tokens=tokens * params.parts)
        for head_dim, tokens in ((16, 150), (128, 20))
    ]
    operations.insert(1, make_channel_operation(params, rng, head_dim=128, tokens=100))
    free, _ = checked_scores(params, operations)
    chance = [(cycle, 1) for cycle in range(60_000) if rng.random() < 0.97]
    long = [(cycle, 1) for start in range(0, 60_000, 4000) for cycle in range(start, start + 3000)]
    for held in (chance, long):
        run, counts = checked_scores(params, operations, held=held, first_refresh_cycles=1000)
        assert run.read_cycles[-1] > free.read_cycles[-1]
        assert counts["REFAB"] >= 1


def test_reads_stop_where_the_queue_would_be_full():
    """All refused from the start: columns are read for as many scores as the queue has room for, and no more."""
    rng = np.random.default_rng(3)
    for params in (ATTACC, WIDE):
        operation = score_operation(params, rng, head_dim=16, tokens=64 * params.parts)
        blocked = 6000
        run, _ = checked_scores(params, [operation], held=[(cycle, 1) for cycle in range(blocked)])
        before = [cycle for cycle in run.read_cycles if cycle + run.first_cycle < blocked]
        assert 3 < len(before) <= queue_depth(params)
        assert int(run.scores[0].cycles[0]) + run.first_cycle == blocked


def test_a_reset_at_any_cycle_leaves_a_channel_that_works():
    rng = np.random.default_rng(4)
    operations = [score_operation(ATTACC, rng, head_dim=16, tokens=16 * 40 + 3) for _ in range(2)]
    operations.append(make_channel_operation(ATTACC, rng, head_dim=128, tokens=100))
    # The first of them behind the last burst of the query; opening, reads, scores, closing, the second row, the end.
    for restart in (30, 41, 42, 43, 60, 83, 84, 85, 120, 229, 240, 262, 290, 330):
        assert interrupted_scores(ATTACC, operations, restart=restart) == expected(ATTACC, operations)[43 - 2 :]
