# amaranth: UnusedElaboratable=no
"""Promise: a sequencer whose inputs come late reads and writes the same by legal commands, and still refreshes."""

from __future__ import annotations

import pytest

from hw.devices.sequencer import ChannelSequencer
from hw.presets.devices import DEVICE_PRESETS
from tests.helpers.sequencer import accesses, assert_legal_commands, run_sequencer

ATTACC = DEVICE_PRESETS["attacc"].channel
POSITIONS = [0, 1, 5, 14, 15, 16, 40, 41, 42, 43, 44, 45, 46, 47, 48, 70, 71, 75]
"""Selected tokens: two tiles, the second of which begins in the row in which the first ends."""
NEW = 75
FIRST_KEY, FIRST_VALUE = 100, 200


def _operation():
    return {
        "unit": {"beats": 2, "tile_tokens": 16, "walk_tokens": len(POSITIONS)},
        "rows": {
            "key_row": FIRST_KEY,
            "value_row": FIRST_VALUE,
            "tiles": 2,
            "tile_columns": 32,
            "last_columns": 2 * (len(POSITIONS) - 16),
            "token_columns": 2,
            "selected": 1,
            "append": {
                "valid": 1,
                "place": {"tile": NEW // 16, "column": NEW % 16 * 2},
                "pseudochannel": 1,
                "rank": 0,
                "bankgroup": 2,
            },
        },
        "tokens": [0] * ATTACC.parts,
    }


ITEMS = {
    "operation": [_operation()],
    "query": [[0] * 16] * 8,
    "append": [[100 + number] * 16 for number in range(16)],
    "places": [
        {"place": {"tile": position // 16, "column": position % 16 * 2}, "wanted": position} for position in POSITIONS
    ],
}


def _run(chances, **options):
    """Return commands and data of one operation."""
    return run_sequencer(ChannelSequencer(ATTACC, parts=1), ITEMS, chances=chances, **options)


def _expected():
    writes = {
        row: [("WR", row, NEW % 16 * 2 + beat, (1, 0, 2, bank)) for bank in range(4) for beat in range(2)]
        for row in (FIRST_KEY + NEW // 16, FIRST_VALUE + NEW // 16)
    }
    found = []
    for first, tile in ((FIRST_KEY, 0), (FIRST_KEY, 1), (FIRST_VALUE, 0), (FIRST_VALUE, 1)):
        for position in POSITIONS[16 * tile : 16 * tile + 16]:
            row = first + position // 16
            found += writes.pop(row, [])
            found += [("MAC", row, position % 16 * 2 + beat, (0, 0, 0, 0)) for beat in range(2)]
    return found


@pytest.mark.parametrize(
    ("chances", "seed"),
    [({}, 0), *(({"places": 0.02, "append": 0.05, "query": 0.1}, seed) for seed in range(4))],
    ids=["prompt", *(f"late {seed}" for seed in range(4))],
)
def test_late_lists_and_tokens(chances, seed):
    commands, data = _run(chances, cycles=4000, seed=seed)
    assert accesses(commands) == _expected()
    assert data == [100 + number for number in range(16)]
    checker = assert_legal_commands(ATTACC, commands, cycles=4000)
    assert checker.counts["REFAB"] == 1


def test_one_row_is_opened_for_the_tokens_of_two_tiles():
    """The keys of the second tile go on in the row of the first one's last key, and the values do too."""
    commands, _ = _run({}, cycles=3000)
    opened = [command.row for command in commands if command.kind == "ACT"]
    keys = [FIRST_KEY + row for row in (0, 1, 2, 3, 4)]
    assert opened == [*keys, *(FIRST_VALUE + row for row in (0, 1, 2, 3, 4))]


def test_a_refresh_does_not_wait_for_units_or_for_a_new_token():
    """A row is closed for it when its columns are held up, and opened again; what was read or written stays so."""
    for options in (
        {"keys_from": 700},
        {"values_from": 2500},
        {"chances": {"append": 0.01}, "cycles": 5600},
    ):
        commands, _ = _run(options.pop("chances", {}), **{"cycles": 4000, **options})
        refreshed = [command.cycle for command in commands if command.kind == "REF"]
        due = range(90, options.get("cycles", 4000), ATTACC.timing.n_refi)
        assert len(refreshed) == len(due)
        # The row that is open, its precharge, and the one refresh that may be under way.
        assert all(0 <= cycle - at <= 400 for cycle, at in zip(refreshed, due, strict=True))
        assert accesses(commands) == _expected()


def test_a_reset_at_any_cycle_leaves_nothing_behind():
    """While queries are sent, a row waits, keys are written and read, a refresh is under way, values are read."""
    plain = _run({}, cycles=1500)
    assert accesses(plain[0]) == _expected()
    assert _run({}, cycles=1500, resets=[1, 30, 60, 100, 250, 600, 700, 790, 950, 1150]) == plain
