"""Promise: the checker knows every rule to the cycle; each case is counted by hand from the numbers of ``QUICK``."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from hw.memory.rules import STATE_RULES, timing_rules
from tests.helpers.dram_checker import Command, DramChecker, check
from tests.helpers.memory_bench import QUICK, SMALL


def at(cycle: int, kind: str, place: str = "0000", *, row: int = 0, column: int = 0) -> Command:
    """Return a command; ``place`` is pseudo-channel, rank, bank group and bank, or ``*b`` or ``*``."""
    if place == "*":
        return Command(cycle, kind, "ALL_BANK", row=row, column=column)
    if place[0] == "*":
        return Command(cycle, kind, "SAME_BANK", bank=int(place[1]), row=row, column=column)
    return Command(cycle, kind, "BANK", *map(int, place), row=row, column=column)


def new_checker(**options: int) -> DramChecker:
    return DramChecker(asdict(QUICK), asdict(SMALL), **options)


# rule, first command, second, smallest distance, rows opened 100 cycles before
DISTANCES = [
    ("ACT on the row bus", ("ACT", "0000"), ("PRE", "1000"), 2, ""),
    ("ACT on the row bus", ("ACT", "*"), ("PRE", "1000"), 2, ""),
    ("ACT to ACT, bank", ("ACT", "0000"), ("ACT", "0000"), 14, ""),
    ("ACT to ACT, bank", ("ACT", "*"), ("ACT", "*"), 14, ""),
    ("ACT to ACT, bank", ("ACT", "*1"), ("ACT", "1211"), 14, ""),
    ("ACT to ACT, bank group", ("ACT", "0000"), ("ACT", "0001"), 3, ""),
    ("ACT to ACT, bank group", ("ACT", "*0"), ("ACT", "*1"), 3, ""),
    ("ACT to ACT, rank", ("ACT", "0000"), ("ACT", "0010"), 2, ""),
    ("ACT to PRE", ("ACT", "0000"), ("PRE", "0000"), 9, ""),
    ("ACT to PRE", ("ACT", "*"), ("PRE", "*"), 9, ""),
    ("ACT to PRE", ("ACT", "1101"), ("PRE", "*"), 9, ""),
    ("ACT to REF", ("ACT", "0000"), ("REF", "*"), 14, ""),
    ("PRE to ACT", ("PRE", "0000"), ("ACT", "0000"), 6, ""),
    ("PRE to ACT", ("PRE", "*"), ("ACT", "*"), 6, "*"),
    ("PRE to REF", ("PRE", "0110"), ("REF", "*"), 6, ""),
    ("REF to ACT", ("REF", "*"), ("ACT", "0000"), 20, ""),
    ("REF to REF", ("REF", "*"), ("REF", "*"), 20, ""),
    ("read to PRE", ("RD", "0000"), ("PRE", "0000"), 3, "*"),
    ("read to PRE", ("MAC", "*"), ("PRE", "*"), 3, "*"),
    ("read to PRE", ("MAC", "*1"), ("PRE", "0001"), 3, "*"),
    ("WR to PRE", ("WR", "0000"), ("PRE", "*"), 2 + 1 + 5, "*"),
    ("ACT to read", ("ACT", "0000"), ("RD", "0000"), 5, ""),
    ("ACT to read", ("ACT", "*"), ("MAC", "*"), 5, ""),
    ("ACT to WR", ("ACT", "0000"), ("WR", "0000"), 4, ""),
    ("read to read, bank group", ("RD", "0000"), ("RD", "0001"), 3, "*"),
    ("read to read, bank group", ("MAC", "*"), ("RD", "1211"), 3, "*"),
    ("read to read, rank", ("RD", "0000"), ("MAC", "0010"), 2, "*"),
    ("MACAB to MACAB", ("MAC", "*"), ("MAC", "*"), 4, "*"),
    ("MACAB to MACAB", ("MAC", "*0"), ("MAC", "*1"), 4, "*"),
    ("WR to WR, bank group", ("WR", "0000"), ("WR", "0001"), 3, "*"),
    ("WR to WR, rank", ("WR", "0000"), ("WR", "0010"), 2, "*"),
    ("MAC to WR, bank group", ("MAC", "*"), ("WR", "0000"), 3, "*"),
    ("MAC to WR, rank", ("MAC", "0000"), ("WR", "0010"), 2, "*"),
    ("WR to read, bank group", ("WR", "0000"), ("RD", "0001"), 2 + 1 + 4, "*"),
    ("WR to read, bank group", ("WR", "1200"), ("MAC", "*"), 2 + 1 + 4, "*"),
    ("WR to read, rank", ("WR", "0000"), ("RD", "0010"), 2 + 1 + 2, "*"),
    ("RD to RD, pins", ("RD", "0000"), ("RD", "0100"), 1, "*"),
    ("WR to WR, pins", ("WR", "0000"), ("WR", "0100"), 1, "*"),
    ("RD to WR, pins", ("RD", "0000"), ("WR", "0100"), 7, "*"),
    ("WR to RD, pins", ("WR", "0000"), ("RD", "0100"), 1, "*"),
    ("RD to BROADCAST, pins", ("RD", "1000"), ("BROADCAST", "*"), 7, "*"),
    ("BROADCAST to RD, pins", ("BROADCAST", "*"), ("RD", "0000"), 1, "*"),
    ("BROADCAST to BROADCAST, pins", ("BROADCAST", "*"), ("BROADCAST", "*"), 2, ""),
    ("WR to BROADCAST, pins", ("WR", "0000"), ("BROADCAST", "*"), 2, "*"),
    ("BROADCAST to WR, pins", ("BROADCAST", "*"), ("WR", "0000"), 2, "*"),
]


def distance_case(first: tuple[str, str], second: tuple[str, str], gap: int, opened: str) -> list[Command]:
    before = [at(100, "ACT", opened)] if opened else []
    return [*before, at(200, *first), at(200 + gap, *second)]


@pytest.mark.parametrize(("rule", "first", "second", "distance", "opened"), DISTANCES)
def test_distance_is_exact(
    rule: str, first: tuple[str, str], second: tuple[str, str], distance: int, opened: str
) -> None:
    for gap in range(1, distance + 2):
        broken = {found.rule: found for found in check(new_checker(), distance_case(first, second, gap, opened))}
        assert (rule in broken) == (gap < distance), gap
        if rule in broken:
            assert broken[rule].cycle == 200 + gap
            assert broken[rule].earliest == 200 + distance


def test_every_distance_of_the_table_has_a_case() -> None:
    assert {case[0] for case in DISTANCES} == {rule.name for rule in timing_rules(QUICK)} - {"four ACT, rank"}


@pytest.mark.parametrize(
    ("first", "second", "gap", "opened"),
    [
        (("ACT", "0000"), ("ACT", "1000"), 2, ""),
        (("ACT", "0000"), ("ACT", "0100"), 2, ""),
        (("MAC", "*"), ("BROADCAST", "*"), 1, "*"),
        (("RD", "0000"), ("RD", "1000"), 1, "*"),
        (("RD", "0000"), ("WR", "1000"), 1, "*"),
        (("PRE", "0000"), ("ACT", "0001"), 1, ""),
    ],
)
def test_what_shares_nothing_keeps_no_distance(
    first: tuple[str, str], second: tuple[str, str], gap: int, opened: str
) -> None:
    assert check(new_checker(), distance_case(first, second, gap, opened)) == []


@pytest.mark.parametrize(("last", "legal"), [(212, False), (213, True)])
def test_the_fifth_activation_waits_for_the_window(last: int, legal: bool) -> None:
    places = ["0000", "0010", "0001", "0011"]
    four = [at(200 + 3 * index, "ACT", place) for index, place in enumerate(places)]
    broken = check(new_checker(), [*four, at(last, "ACT", "0000")])
    assert ("four ACT, rank" not in {found.rule for found in broken}) == legal
    assert check(new_checker(), [*four, at(last, "ACT", "0100")]) == []


def test_within_a_cycle_the_column_command_is_first() -> None:
    opened = [at(100, "ACT", "*")]
    broken = check(new_checker(), [*opened, at(200, "PRE", "*"), at(200, "RD", "0000")])
    assert [found.rule for found in broken] == ["read to PRE"]
    broken = check(new_checker(), [at(200, "ACT", "*"), at(200, "RD", "0000")])
    assert [found.rule for found in broken] == ["row open"]


STATES = {
    "command": [at(200, "RD", "*")],
    "row open": [at(200, "MAC", "*")],
    "bank closed": [at(100, "ACT", "0000"), at(200, "ACT", "*")],
    "banks closed": [at(100, "ACT", "1211"), at(200, "REF", "*")],
    "lock step": [at(80, "ACT", "*0", row=1), at(100, "ACT", "*1", row=2), at(200, "MAC", "*")],
    "row kept": [at(200, "ACT", "0000", row=4)],
}


@pytest.mark.parametrize("rule", STATES)
def test_what_a_command_finds(rule: str) -> None:
    broken = check(new_checker(kept_rows=4), STATES[rule])
    assert [(found.rule, found.cycle, found.earliest) for found in broken] == [(rule, 200, None)]


def test_every_state_rule_has_a_case() -> None:
    assert {*STATES, "refresh due"} == set(STATE_RULES)


@pytest.mark.parametrize(
    "command", [at(9, "REF"), at(9, "REF", "*1"), at(9, "WR", "*1"), at(9, "ACT", "0300"), at(9, "MAC", "0002")]
)
def test_what_is_no_command_has_no_effect(command: Command) -> None:
    checker = new_checker()
    assert [found.rule for found in check(checker, [command])] == ["command"]
    assert check(checker, [at(20, "REF", "*"), at(40, "ACT", "*")]) == []
    assert checker.counts == {"REFAB": 1, "ACTAB": 1}


@pytest.mark.parametrize(
    ("refreshes", "missed"),
    [
        ([], [270, 360, 450]),
        ([270], [360, 450]),
        ([269], [360, 450]),
        ([271], [270, 450]),
        ([20, 50], [450]),
        ([20, 50, 80], [450]),
        ([20, 50, 80, 460], [450]),
        ([90, 180, 270, 360, 450], []),
    ],
)
def test_refreshes_fall_due(refreshes: list[int], missed: list[int]) -> None:
    """Two may be postponed or done ahead: at 90 * k one falls due, and the third that is due at once is missed."""
    commands = [at(cycle, "REF", "*") for cycle in refreshes]
    assert [found.cycle for found in check(new_checker(postponed=2), commands, cycles=500)] == missed


def test_a_part_of_the_channel_sees_its_own_banks_alone() -> None:
    commands = [at(200, "RD", "1000"), at(201, "RD", "1001")]
    assert [found.rule for found in check(new_checker(watched_groups=2), commands)] == ["read to read, rank"]
    assert len(check(new_checker(), commands)) == 4


def test_commands_are_counted() -> None:
    checker = new_checker()
    check(checker, [at(0, "ACT", "*"), at(5, "MAC", "*"), at(9, "MAC", "*"), at(12, "BROADCAST"), at(30, "PRE", "*")])
    assert checker.counts == {"ACTAB": 1, "MACAB": 2, "BROADCAST": 1, "PREAB": 1}
