"""Promise: the law between measured points is what it says, and a table speaks for its own hardware alone."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction

import pytest

from hw.measure import held_out, sweep
from hw.presets.devices import DEVICE_PRESETS
from hw.tables import DeviceTable, TableError, load_table, read_table, table_text
from hw.timing.channel import mean_refreshes, refreshes_before
from hw.timing.tables import ChannelCycles, TableCycles, TablePoint

ATTACC = DEVICE_PRESETS["attacc"].channel
PAM = DEVICE_PRESETS["pam"].channel
TILES, OPERATIONS = (1, 2, 3, 8), (1, 2, 4)
FIRST, TAIL = 58, 54
BEATS = 2  # columns a token of 128 elements, cut over four banks
TILE_TOKENS = 16  # of 2 columns in a row of 32


def _last(walk_tokens: int, operations: int, period: Fraction | None) -> int:
    """Last column of a channel made up: 464 cycles a full tile, 24 a token, 100 more for the first two tiles."""
    tiles, rest = divmod(walk_tokens - 1, TILE_TOKENS)
    interval = 464 * tiles + 24 * (rest + 1) + 50 * min(tiles, 2)
    free = FIRST + operations * interval
    if period is None:
        return free
    return max(free, math.ceil(FIRST + (2 * walk_tokens * BEATS * operations - 32) * period))


def _point(walk_tokens: int, operations: int, period: Fraction | None = None) -> TablePoint:
    last = _last(walk_tokens, operations, period)
    return TablePoint(
        head_dim=128,
        walk_tokens=walk_tokens,
        operations=operations,
        first_column=FIRST,
        last_column=last,
        last_state=last + TAIL,
    )


def _grid(period: Fraction | None = None) -> tuple[TablePoint, ...]:
    return tuple(
        _point((tiles - 1) * TILE_TOKENS + rest, operations, period)
        for tiles in TILES
        for rest in range(1, TILE_TOKENS + 1)
        for operations in OPERATIONS
    )


def _table(**changes) -> DeviceTable:
    table = DeviceTable(
        name="attacc",
        preset="hbm3-5200",
        clock_hz=1.3e9,
        points=_grid(),
        held_out=(_point(77, 3),),
        verilog_sha256="ab" * 32,
        seed=0,
        versions={"verilator": "5"},
    )
    return dataclasses.replace(table, **changes)


def test_without_a_cap_the_law_is_exact_everywhere() -> None:
    law = TableCycles(ATTACC, _grid())
    for walk_tokens in (*range(1, 200), 1000, 65536):
        for operations in (1, 2, 3, 4, 5, 17, 1000):
            last = _last(walk_tokens, operations, None)
            assert law.cycles(128, walk_tokens, operations) == ChannelCycles(
                first_column=FIRST, last_column=last, last_state=last + TAIL
            )


def test_under_a_cap_the_law_is_near_and_never_too_early() -> None:
    period = PAM.column_period
    law = TableCycles(PAM, _grid(period))
    for walk_tokens in (*range(1, 200), 1000, 65536):
        for operations in (1, 2, 3, 4, 5, 17, 1000):
            last = _last(walk_tokens, operations, period)
            ours = law.cycles(128, walk_tokens, operations).last_column
            assert -1 <= ours - last <= max(0.01 * last, 232)


def test_head_dimensions_that_fill_the_same_columns_take_the_same_cycles() -> None:
    law = TableCycles(ATTACC, _grid())
    assert law.cycles(65, 40, 2) == law.cycles(128, 40, 2)
    assert [law.holds(head_dim) for head_dim in (0, 1, 64, 65, 128, 129, 256, 257)] == [
        False, False, False, True, True, False, False, False,
    ]  # fmt: skip
    with pytest.raises(TableError, match="head_dim must fill the columns of one that was measured, 128; not 64"):
        law.cycles(64, 1, 1)
    with pytest.raises(ValueError, match="walk_tokens must be at least 1, not 0"):
        law.cycles(128, 0, 1)
    with pytest.raises(ValueError, match="operations must be at least 1, not 0"):
        law.cycles(128, 1, 0)


def test_every_number_of_queries_has_a_law_of_its_own() -> None:
    """Eight queries whose columns take 16 cycles: 542 a row, by hand 31 x 16 + 46."""
    wide = DEVICE_PRESETS["pam-wide"].channel.replace(column_period=None)
    points = [
        TablePoint(
            head_dim=128,
            walk_tokens=4 * (tiles - 1) + rest,
            operations=operations,
            queries=queries,
            first_column=46 + 32 * queries,
            last_column=46 + 32 * queries + operations * (2 * row * (tiles - 1) + 20 * rest),
            last_state=50 + 32 * queries + operations * (2 * row * (tiles - 1) + 20 * rest) + 66 * queries,
        )
        for queries, row in ((1, 232), (8, 542))
        for tiles in TILES
        for rest in range(1, 5)
        for operations in OPERATIONS
    ]
    law = TableCycles(wide, points)
    assert law.measured_queries(113) == (1, 8)
    assert law.measured_queries(64) == law.measured_queries(257) == ()
    assert [law.holds(128, queries=queries) for queries in (1, 4, 8)] == [True, False, True]
    for queries, row in ((1, 232), (8, 542)):
        ours = law.cycles(128, 4 * 100 + 3, 7, queries=queries)
        assert ours.last_column == 46 + 32 * queries + 7 * (200 * row + 60)
        assert ours.last_state == ours.last_column + 4 + 66 * queries
        refreshed = law.with_refresh(128, 403, 7, 5070, queries=queries)
        count = refreshes_before(wide, ours.last_column, 5070)
        assert refreshed.last_column == ours.last_column + 456 * count
    with pytest.raises(TableError, match=r"^queries must be as many as were measured at head_dim 128, 1, 8; not 4$"):
        law.cycles(128, 1, 1, queries=4)


def test_as_many_queries_are_swept_as_have_room() -> None:
    """1,024 elements of q and o: 8 queries of 128, 4 of 256, and of 192 five, of which the power of two is 4."""
    wide = DEVICE_PRESETS["pam-wide"].channel
    for runs in (sweep(wide), held_out(wide)):
        found = {
            head_dim: {run.queries for run in runs if run.head_dim == head_dim} for head_dim in (64, 128, 192, 256)
        }
        assert found == {64: {1, 2, 4, 8}, 128: {1, 2, 4, 8}, 192: {1, 2, 4}, 256: {1, 2, 4}}
    assert {run.queries for run in (*sweep(PAM), *held_out(PAM))} == {1}


def test_points_must_be_a_whole_grid() -> None:
    with pytest.raises(TableError, match="points must be at least one, not none"):
        TableCycles(ATTACC, ())
    for missing in (0, 50, len(_grid()) - 1):
        points = [*_grid()]
        del points[missing]
        with pytest.raises(TableError, match="points of 2 columns a token must be a whole grid with each rest from 1 "):
            TableCycles(ATTACC, points)


def test_refresh_costs_its_length_unless_the_cap_makes_it_good() -> None:
    law = TableCycles(ATTACC, _grid())
    free = law.cycles(128, 100, 8)
    for first in (1, 777, 5070):
        count = refreshes_before(ATTACC, free.last_column, first)
        assert count > 3
        ours = law.with_refresh(128, 100, 8, first)
        assert ours.last_column == free.last_column + 456 * count
        assert ours.last_state == free.last_state + 456 * count
    assert law.with_refresh(128, 100, 8, 0) == free
    capped = TableCycles(PAM, _grid(PAM.column_period))
    # 26.6 cycles a column by the cap; rows take 7.25, refresh a tenth more
    assert capped.with_refresh(128, 100, 8, 777) == capped.cycles(128, 100, 8)
    # Before the first column nothing is saved up: 1 + 456 cycles and a row's opening instead of 58.
    late = capped.with_refresh(128, 100, 8, 1)
    assert late.last_column - capped.cycles(128, 100, 8).last_column == 1 + 456 + 19 - 58
    assert capped.mean_refresh_cycles(128, 100, 8) == 0
    # One operation of a single token is over before its cap holds.
    assert capped.mean_refresh_cycles(128, 1, 1) > 0


@pytest.mark.parametrize("free_cycles", [0, 1, 2, 4613, 4614, 4615, 5070, 5071, 54321])
def test_mean_refreshes_are_the_mean_over_every_phase(free_cycles: int) -> None:
    counts = [refreshes_before(PAM, free_cycles, first) for first in range(1, 5071)]
    assert mean_refreshes(PAM, free_cycles) == Fraction(sum(counts), 5070)


def test_a_file_gives_its_table_back() -> None:
    text = table_text(_table())
    assert read_table(text) == _table()
    assert table_text(read_table(text)) == text
    assert len(text.splitlines()) == len(_grid()) + 1 + 13


def test_a_table_of_other_hardware_is_refused() -> None:
    _table().require_verilog("ab" * 32)
    with pytest.raises(TableError, match=r"table attacc must be measured on today's Verilog cdcdcdcdcdcdcdcd, it is "):
        _table().require_verilog("cd" * 32)
    entries = json.loads(table_text(_table()))
    entries["params_sha256"] = "0" * 64
    with pytest.raises(TableError, match="table attacc must be of today's parameters of the preset, it is of others"):
        read_table(json.dumps(entries))
    with pytest.raises(TableError, match="table of nothing must be there, it is not: run nearkv measure nothing"):
        load_table("nothing")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", "nobody", "name of a table must be a device preset, not 'nobody'"),
        ("points", 3, "table must be a file that nearkv measure wrote"),
        ("points", [{"head_dim": 128}], "table must be a file that nearkv measure wrote"),
        ("extra", 1, "table must be a file that nearkv measure wrote"),
    ],
)
def test_what_is_no_table_is_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_table(json.dumps(json.loads(table_text(_table())) | {key: value}))
    with pytest.raises(TableError, match="table must be a file that nearkv measure wrote"):
        read_table("[]")
    with pytest.raises(TableError, match="table must be a file that nearkv measure wrote"):
        read_table("{")


@pytest.mark.parametrize("name", DEVICE_PRESETS)
def test_tables_that_ship_say_what_was_measured(name: str) -> None:
    table = load_table(name)
    for point in table.points:
        said = table.cycles.cycles(point.head_dim, point.walk_tokens, point.operations, queries=point.queries)
        assert said.last_state == point.last_state
        assert 0 < point.first_column < point.last_column < point.last_state
    # 64K tokens of 128 elements in one bank group
    params = DEVICE_PRESETS[name].channel
    longest = table.held_out[-1]
    assert longest.walk_tokens * params.parts_per_group == 65536
    assert longest.head_dim == 128
    for head_dim in {point.head_dim for point in table.points}:
        for operations in (1, 3, 9):
            by_tokens = [table.cycles.cycles(head_dim, tokens, operations).last_column for tokens in range(1, 120)]
            assert by_tokens == sorted(by_tokens)
