# amaranth: UnusedElaboratable=no
"""Promise: a sequencer of units at the bank groups, whatever comes late, reads the same by legal commands."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from hw.devices.group_sequencer import GroupSequencer
from hw.presets.devices import DEVICE_PRESETS
from tests.helpers.sequencer import accesses, assert_legal_commands, run_sequencer

GROUP = DEVICE_PRESETS["attacc-bankgroup"].channel
TOKENS, NEW = 10, 9
"""Tokens of 8 columns, 4 a row: three rows of keys and of values; the new one is the second of the last row."""
FIRST_KEY, FIRST_VALUE = 101, 201
"""Keys in banks 1, 2 and 3 of row 25, values in the same of row 50."""

OPERATION = {
    "unit": {"beats": 8, "tile_tokens": 4, "walk_tokens": TOKENS},
    "rows": {
        "key_row": FIRST_KEY,
        "value_row": FIRST_VALUE,
        "tiles": 3,
        "tile_columns": 32,
        "last_columns": 16,
        "token_columns": 8,
        "append": {
            "valid": 1,
            "place": {"tile": NEW // 4, "column": NEW % 4 * 8},
            "pseudochannel": 1,
            "rank": 0,
            "bankgroup": 2,
        },
    },
    "tokens": [0] * GROUP.parts,
}
ITEMS = {
    "operation": [OPERATION],
    "query": [[0] * 16] * 8,
    "append": [[100 + number] * 16 for number in range(16)],
}


def _run(chances, **options):
    return run_sequencer(GroupSequencer(GROUP, parts=1), ITEMS, chances=chances, **options)


def _expected():
    found = []
    for row, bank, columns in ((25, 1, 32), (25, 2, 32), (50, 1, 32), (25, 3, 16), (50, 2, 32), (50, 3, 16)):
        if bank == 3:
            found += [("WR", row, 8 + beat, (1, 0, 2, bank)) for beat in range(8)]
        found += [("MAC", row, column, (0, 0, 0, bank)) for column in range(columns)]
    return found


@pytest.mark.parametrize(
    ("chances", "seed"),
    [({}, 0), *(({"append": 0.05, "query": 0.1}, seed) for seed in range(3))],
    ids=["prompt", *(f"late {seed}" for seed in range(3))],
)
def test_late_queries_and_tokens(chances, seed):
    commands, data = _run(chances, cycles=2300, seed=seed)
    assert accesses(commands) == _expected()
    assert data == [100 + number for number in range(16)]
    checker = assert_legal_commands(GROUP, commands, cycles=2300)
    assert checker.counts["REFAB"] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"keys_from": 700, "first_refresh": 200, "cycles": 2400},
        {"values_from": 1500, "first_refresh": 700, "cycles": 2800},
        {"chances": {"append": 0.01}, "first_refresh": 900, "cycles": 3600},
    ],
    ids=["keys held up", "values held up", "new token late"],
)
def test_a_refresh_does_not_wait_for_units_or_for_a_new_token(options):
    """Open rows are closed for it when columns are held up, and opened again; what was read or written stays so."""
    commands, _ = _run(**{"chances": {}, **options})
    assert accesses(commands) == _expected()
    assert_legal_commands(GROUP, commands, cycles=options["cycles"])
    (refreshed,) = (command.cycle for command in commands if command.kind == "REF")
    # The precharge, and what it has to wait for.
    assert options["first_refresh"] <= refreshed <= options["first_refresh"] + 8 + 6 + 19 + 2
    all_closed = [command.cycle for command in commands if command.kind == "PRE" and command.scope == "ALL_BANK"]
    assert all_closed == [refreshed - 19]
    # Both the row that waited and the one ahead.
    assert sum(command.kind == "ACT" for command in commands) == 6 + 2


def test_activations_keep_the_window_of_single_banks():
    """Rows of one token of 64 elements: 24 cycles of columns, but openings of four banks a rank only every 39."""
    rows = {**OPERATION["rows"], "tiles": 3, "tile_columns": 4, "last_columns": 4, "token_columns": 4, "append": {}}
    operation = {**OPERATION, "unit": {"beats": 4, "tile_tokens": 1, "walk_tokens": 3}, "rows": rows}
    items = {"operation": [operation], "query": [[0] * 16] * 4}
    commands, _ = run_sequencer(GroupSequencer(GROUP, parts=1), items, chances={}, cycles=1200)
    opened = [command.cycle for command in commands if command.kind == "ACT"]
    assert len(opened) == 6
    assert min(later - earlier for earlier, later in pairwise(opened)) == 39
    assert_legal_commands(GROUP, commands, cycles=1200)


def test_the_power_cap_spaces_columns():
    """Two columns at the pace of the memory, then one every 12.5 cycles."""
    params = GROUP.replace(column_period=Fraction(25, 2), cap_burst_columns=2)
    items = {**ITEMS, "operation": [{**OPERATION, "rows": {**OPERATION["rows"], "append": {}}}]}
    commands, _ = run_sequencer(GroupSequencer(params, parts=1), items, chances={}, cycles=3200, first_refresh=0)
    reads = [command.cycle for command in commands if command.kind == "MAC"]
    assert len(reads) == 2 * TOKENS * 8
    assert reads[1] - reads[0] == 6
    # The bucket held two columns when the first was read.
    assert reads[-1] - reads[0] == (len(reads) - 2) * 12.5


def test_a_reset_at_any_cycle_leaves_nothing_behind():
    """While queries are sent, rows are read and opened ahead, a refresh is under way, tokens are written."""
    plain = _run({}, cycles=1800)
    assert accesses(plain[0]) == _expected()
    assert _run({}, cycles=1800, resets=[1, 30, 61, 62, 100, 260, 330, 500, 800, 1000, 1300]) == plain
