"""Promise: query heads that share a KV head attend to it in one pass: each column is read once and used for all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hw.channel_operation import shared_head, shared_pass
from hw.native_arithmetic import NATIVE
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import refresh_cycles, row_cycles, stream_limit, streamed_row_cycles
from tests.helpers.channels import checked_run, grown, make_channel_operation

WIDE = DEVICE_PRESETS["pam-wide"].channel
UNCAPPED = WIDE.replace(column_period=None)
PAM = DEVICE_PRESETS["pam"].channel
SPLIT = PAM.replace(processing=PAM.processing.replace(queries=4), logic_ratio=Fraction(2, 5), column_period=None)

TURNS = DEVICE_PRESETS["attacc-bankgroup"].channel
TURNS = TURNS.replace(processing=TURNS.processing.replace(queries=4))


def _queries(params, rng, head_dim, number):
    return [make_channel_operation(params, rng, head_dim=head_dim, tokens=0).query for _ in range(number)]


def _operation(params, rng, *, queries, head_dim, tokens, **options):
    base = make_channel_operation(params, rng, head_dim=head_dim, tokens=tokens, **options)
    return shared_pass(base, _queries(params, rng, head_dim, queries))


@pytest.mark.parametrize(("queries", "distance"), [(1, 6), (2, 6), (3, 8), (4, 10)])
def test_columns_follow_each_other_as_memory_and_queries_allow(queries, distance):
    """Two operations of 128 tokens a bank group, head dimension 128 cut over four banks: 8 rows of keys, 8 of values.

    The memory allows a column in 6 cycles, logic at two fifths of its clock uses one for g queries in 5 g / 2. Between
    the last column of a row and the first of the next 8 + 19 + 19 cycles pass. Ahead of the first there are 2 bursts of
    command and 8 of each query, 4 cycles apart.
    """
    rng = np.random.default_rng(queries)
    operations = [_operation(SPLIT, rng, queries=queries, head_dim=128, tokens=2048) for _ in range(2)]
    run, counts = checked_run(SPLIT, operations, platform=NATIVE)
    reads = np.array(run.read_cycles)
    assert counts["MACAB"] == 2 * 512
    assert counts["ACTAB"] == 2 * 16
    row = 31 * distance + 46
    assert row_cycles(SPLIT, 32, queries=queries) == row
    assert reads[0] == 4 * (2 + 8 * queries) + 18
    np.testing.assert_array_equal(np.diff(reads.reshape(32, 32)), distance)
    # Softmax of the first tile, and the queries of the second operation, hide behind rows that are read anyhow.
    np.testing.assert_array_equal(np.diff(reads[::32]), row)


def test_a_cap_of_bytes_is_paid_once_a_column():
    """Eight passes read eight times the columns of one; the cap, 26.6 cycles a column, holds both back."""
    rng = np.random.default_rng(1)
    base = make_channel_operation(WIDE, rng, head_dim=128, tokens=2048, kv_head=0)
    queries = _queries(WIDE, rng, 128, 8)
    one, one_counts = checked_run(WIDE, [shared_pass(base, queries)])
    passes, passes_counts = checked_run(WIDE, shared_head(base, queries))
    assert passes_counts["MACAB"] == 8 * one_counts["MACAB"] == 8 * 512
    for run, columns in ((one, 512), (passes, 4096)):
        # A bucket of 32 columns is full at the start; it may fill up before the first of them.
        least = (columns - 32) * WIDE.column_period
        assert least <= run.read_cycles[-1] - run.read_cycles[0] <= least + 32 * 6 + 46
    assert one.heads[0].payloads == passes.heads[0].payloads
    assert one.bodies[0].payloads == passes.bodies[0].payloads


def test_operations_of_any_number_of_queries_follow_each_other():
    """Every number of queries, head dimension and rest of a row, empty parts, a new token, selections; refreshed."""
    rng = np.random.default_rng(5)
    operations = [
        _operation(WIDE, rng, queries=queries, head_dim=head_dim, tokens=tokens)
        for queries, head_dim, tokens in (
            (8, 128, 700),
            (1, 256, 65),
            (4, 256, 200),
            (3, 80, 1),
            (8, 64, 999),
            (5, 100, 0),
            (2, 128, 63),
            (8, 128, 1),
            (7, 64, 64),
        )
    ]
    base = make_channel_operation(WIDE, rng, head_dim=128, tokens=300)
    operations.append(shared_pass(grown(base, rng, 2), _queries(WIDE, rng, 128, 6)))
    positions = np.array([0, 3, 4, 9])
    operations.append(_operation(WIDE, rng, queries=8, head_dim=64, tokens=64 * 10, positions=positions))
    # Every part attends to other ones of the tokens that are read, some perhaps to none.
    positions = np.arange(0, 40, 3)
    operations += [
        _operation(
            WIDE,
            rng,
            queries=queries,
            head_dim=head_dim,
            tokens=64 * 40,
            positions=positions,
            wanted=rng.random((64, len(positions))) < share,
        )
        for queries, head_dim, share in ((1, 128, 0.5), (2, 256, 0.5), (8, 128, 0.1), (3, 80, 0.9))
    ]
    _, counts = checked_run(WIDE, operations, first_refresh_cycles=700)
    assert counts["WR"] == 2 * 8
    assert counts["REFAB"] > 1


def test_slices_of_a_head_share_columns_too():
    """Logic at two fifths of the clock: of 8 cycles for three queries some give 3, some 4."""
    rng = np.random.default_rng(6)
    assert SPLIT.use_cycles == (3, 5, 8, 10)
    operations = [
        _operation(SPLIT, rng, queries=queries, head_dim=head_dim, tokens=tokens)
        for queries, head_dim, tokens in ((4, 128, 300), (3, 128, 257), (1, 128, 33), (2, 128, 16), (4, 128, 0))
    ]
    run, _ = checked_run(SPLIT, operations, platform=NATIVE)
    assert len(run.heads[0].payloads) == 14


@pytest.mark.parametrize(("queries", "distance"), [(3, 6), (4, 8)])
def test_columns_of_banks_in_turn_are_as_far_apart_over_rows_and_operations(queries, distance):
    """Logic at half the clock uses a column for g queries in 2 g cycles; openings of rows hide behind columns.

    A refresh shows: n_rtpl, n_rp, n_rfc and n_rcdrd pass from column to column.
    """
    rng = np.random.default_rng(queries)
    operations = [_operation(TURNS, rng, queries=queries, head_dim=128, tokens=16 * 16) for _ in range(2)]
    run, counts = checked_run(TURNS, operations, platform=NATIVE)
    assert counts["MACSB"] == len(run.read_cycles) == 2 * 2 * 16 * 8
    # Two cycles for the walk, 2 bursts of command and 8 of each query, 4 apart; the opening.
    assert run.read_cycles[0] == 2 + 4 * (2 + 8 * queries) + 18
    assert (np.diff(run.read_cycles) == distance).all()
    assert streamed_row_cycles(TURNS, 32, queries=queries) == 32 * distance
    refreshed, counts = checked_run(TURNS, operations, platform=NATIVE, first_refresh_cycles=777)
    lost = 8 + 19 + 456 + 19 - distance
    assert counts["REFAB"] >= 1
    assert refreshed.read_cycles[-1] == run.read_cycles[-1] + counts["REFAB"] * lost
    assert refresh_cycles(TURNS, queries=queries) == lost


def test_a_row_takes_as_long_as_its_queries_use_it():
    """By hand: 32 columns of 16 cycles each for 8 queries, less one, behind 19, before 8 and 19."""
    assert row_cycles(WIDE, 32, queries=8) == 19 + 31 * 16 + 8 + 19
    assert row_cycles(WIDE, 32) == 19 + 31 * 6 + 8 + 19
    assert stream_limit(UNCAPPED, 32, queries=8).column_cycles > 16 > stream_limit(UNCAPPED, 32).column_cycles
    slow = UNCAPPED.replace(logic_ratio=Fraction(1, 3))
    assert slow.use_cycles == (3, 6, 9, 12, 15, 18, 21, 24)
    assert [slow.column_cycles(queries) for queries in (1, 2, 3, 8)] == [6, 6, 9, 24]


@pytest.mark.parametrize(
    ("queries", "head_dim", "message"),
    [
        (9, 64, "queries must be from 1 to 8, not 9"),
        (
            5,
            256,
            "q and o of 5 queries of 256 elements must have at most the 6144 B that a unit has for them, not 7680 B",
        ),
        (
            8,
            129,
            "q and o of 8 queries of 129 elements must have at most the 6144 B that a unit has for them, not 6912 B",
        ),
    ],
)
def test_queries_that_find_no_room_are_refused(queries, head_dim, message):
    rng = np.random.default_rng(8)
    operation = _operation(WIDE, rng, queries=queries, head_dim=head_dim, tokens=10)
    with pytest.raises(ValueError, match=f"^{message}$"):
        checked_run(WIDE, [operation])
