"""Promise: operations get the rows of their KV heads, and those that cannot run are refused with the reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hw.channel_operation import place_operations, shared_head
from hw.memory.kv_rows import kv_rows, row_visits, token_places
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import row_cycles
from tests.helpers.channels import grown, make_channel_operation

ATTACC = DEVICE_PRESETS["attacc"].channel


def _make(tokens, **options):
    return make_channel_operation(ATTACC, np.random.default_rng(0), head_dim=128, tokens=tokens, **options)


def test_heads_lie_behind_each_other_and_operations_share_them():
    rng = np.random.default_rng(1)
    first = _make(16 * 17, kv_head=7)
    other = _make(16 * 3)
    placed, heads = place_operations(ATTACC, [first, other, first])
    assert [(head.key_row, head.value_row) for head in heads] == [(0, 2), (4, 5)]
    assert [item.head.key_row for item in placed] == [0, 4, 0]
    # With more tokens to come the head of the first has room for them from the start.
    steps = [first]
    while len(steps) <= 16:
        steps.append(grown(steps[-1], rng, 0))
    placed, heads = place_operations(ATTACC, [steps[0], other, *steps[1:]])
    assert [(head.key_row, head.value_row, head.rows.tiles) for head in heads] == [(0, 3, 3), (6, 7, 1)]
    assert [item.head.key_row for item in placed] == [0, 6] + [0] * 16
    assert [item.walk.walk_tokens for item in placed] == [17, 3, *range(18, 34)]
    # The cells hold what was there before: the new tokens are written by the run.
    assert [len(part) for part in heads[0].keys] == [17]


def test_a_new_token_is_no_content():
    head = place_operations(ATTACC, [grown(_make(100), np.random.default_rng(0), 0)])[1][0]
    assert [len(part) for part in head.keys] == [len(part) for part in head.values] == [7]


def test_query_heads_that_share():
    rng = np.random.default_rng(2)
    operation = grown(_make(100, kv_head=0), rng, 0)
    queries = [_make(0).query + number for number in range(3)]
    shared = shared_head(operation, queries)
    assert [op.append_part for op in shared] == [0, None, None]
    assert all(op.query is query and op.keys is operation.keys for op, query in zip(shared, queries, strict=True))
    with pytest.raises(ValueError, match="kv_head must be a number that the operations share, not None"):
        shared_head(_make(100), queries)


def test_selected_tokens_of_each_part():
    operation = _make([3, 0, 10, *[5] * 13], positions=np.array([0, 2, 3, 4, 9]), groups=3)
    assert operation.counted_tokens.tolist() == [2, 0, 5, *[4] * 13]
    assert operation.marks[:4].astype(int).tolist() == [[1, 1, 0, 0, 0], [0] * 5, [1] * 5, [1, 1, 1, 1, 0]]
    assert _make(32).counted_tokens.tolist() == [2] * 16
    # The first part wants one of its two, the second none that it has, the third all but the last two.
    wanted = np.zeros((16, 5), bool)
    wanted[0, 0] = wanted[2, :3] = True
    chosen = replace(operation, wanted=wanted)
    assert (chosen.counted_tokens.tolist(), chosen.walk_tokens) == ([1, 0, 3, *[0] * 13], 5)
    np.testing.assert_array_equal(chosen.marks, wanted)
    assert place_operations(ATTACC, [chosen])[0][0].walk.walk_tokens == 5


def test_places_and_openings_by_hand():
    """Head dimension 128: two columns a token, 16 tokens a row; 256: four and 8."""
    rows = kv_rows(ATTACC, 128, 0)
    tile, column = token_places(rows, np.array([0, 15, 16, 40]))
    assert tile.tolist() == [0, 0, 1, 2]
    assert column.tolist() == [0, 30, 0, 16]
    # Three of row 0, one of row 2: keys, then values.
    assert row_visits(rows, np.array([1, 2, 15, 40])) == [6, 2, 6, 2]
    # 17 tokens: the second tile's key is in the open row, its value comes behind those of the first tile.
    positions = np.array([*range(15), 16, 20])
    assert row_visits(rows, positions) == [30, 4, 30, 4]
    # Tiles 8 to 23, 24 to 39 and 40: K0 and K1 meet in row 1, V1 and V2 in row 2, K2 lies between V0 and V1.
    assert row_visits(rows, np.arange(8, 41)) == [16, 32, 16, 16, 16, 2, 16, 18]
    assert row_visits(kv_rows(ATTACC, 256, 0), np.array([7, 8])) == [4, 4, 4, 4]
    assert row_visits(rows, np.arange(0)) == []


def test_row_cycles_with_writes_by_hand():
    """HBM3 at 5.2 Gb/s, power limited: 19 to the first write or read, 4 between writes, 6 between reads."""
    assert row_cycles(ATTACC, 32) == 19 + 31 * 6 + 8 + 19
    assert row_cycles(ATTACC, 32, 8) == 19 + 7 * 4 + 6 + 2 + 11 + 31 * 6 + 8 + 19
    assert row_cycles(ATTACC, 2) == 45 + 19
    assert row_cycles(ATTACC, 1, 8) == 19 + 7 * 4 + 6 + 2 + 21 + 19  # the end of a write to the precharge
    assert row_cycles(ATTACC, 1, 1) == 19 + 6 + 2 + 21 + 19


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: [replace(_make(32), tokens=np.array([2]))], "tokens must be counts of the 16 parts of a channel, not"),
        (
            lambda: [_make(64, append_part=16)],
            "append_part must be from 0 to 15, not 16",
        ),
        (lambda: [_make(0, append_part=0)], "tokens of part 0 must count its new token, not be 0"),
        (
            lambda: [_make(64, positions=np.array([1, 1]))],
            r"positions must ascend from 0 or more to less than 4, not \[1",
        ),
        (lambda: [_make(64, positions=np.array([4]))], r"positions must ascend from 0 or more to less than 4, not \[4"),
        (
            lambda: [_make(64, positions=np.array([-1]))],
            r"positions must ascend from 0 or more to less than 4, not \[-",
        ),
        (
            lambda: [_make(64, append_part=0, positions=np.array([0, 1]))],
            "positions must hold the new token's 3: a token is written when it is first read",
        ),
        (
            lambda: [_make(64, wanted=np.ones((16, 4), bool))],
            r"wanted must have one row a part and one column a position \(16, 4\), not no positions",
        ),
        (
            lambda: [_make(64, positions=np.array([1, 2]), wanted=np.ones((16, 3), bool))],
            r"wanted must have one row a part and one column a position \(16, 2\), not shape \(16, 3\)",
        ),
        (
            lambda: [_make(63, positions=np.array([1, 3]), wanted=np.ones((16, 2), bool))],
            "wanted must name tokens that a part has, not 3 in part 15 of 3",
        ),
        (
            lambda: [_make(64, kv_head=1), _make(80, kv_head=1)],
            "operation 1 of KV head 1 must find the tokens that the one before it left, it names others",
        ),
        (
            lambda: [_make(64, kv_head=1), replace(_make(64, kv_head=1), values=[np.ones((4, 128), np.uint16)])],
            "operation 1 of KV head 1 must find the tokens",
        ),
    ],
)
def test_what_cannot_run_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        place_operations(ATTACC, make())
