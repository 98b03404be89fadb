"""Watches the commands of a DRAM channel by tables of its own: nothing here comes from ``hw``.

Every command is held against each earlier one that is near enough to matter; what depends on kind and scope alone is
worked out once. Numbers come as a plain mapping by ramulator2's names (``n_rp``), commands as a kind, a scope and the
fields of their address.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Command", "DramChecker", "Violation", "check"]

_ORDER = ["bank", "bankgroup", "rank", "pseudochannel", "channel"]


@dataclass(frozen=True)
class Command:
    """One command: its bus, kind and scope (``BANK``, ``SAME_BANK``, ``ALL_BANK``), and where it goes."""

    cycle: int
    kind: str
    scope: str
    pseudochannel: int = 0
    rank: int = 0
    bankgroup: int = 0
    bank: int = 0
    row: int = 0
    column: int = 0

    @property
    def is_column(self) -> bool:
        return self.kind in ("RD", "WR", "MAC", "BROADCAST")

    @property
    def place(self) -> tuple[int, int, int, int]:
        return self.pseudochannel, self.rank, self.bankgroup, self.bank


@dataclass(frozen=True)
class Violation:
    """A broken rule; ``earliest`` is the first cycle that would have been legal, None where no waiting helps."""

    rule: str
    cycle: int
    command: Command | None
    earliest: int | None = None


@dataclass
class DramChecker:
    """The commands of one channel so far.

    ``watched_groups`` and ``kept_rows`` restrict rules of banks and bank groups to the first bank groups, as a model
    of a part of a channel does; ranks and pins are always watched whole.
    """

    timing: Mapping[str, int]
    shape: Mapping[str, int]
    postponed: int = 8
    watched_groups: int | None = None
    kept_rows: int | None = None
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._recent: deque[Command] = deque()
        t = self.timing
        sums = [t["n_cwl"] + t["n_bl"] + max(t["n_wr"], t["n_wtrl"]), t["n_ras"] + t["n_rp"], t["n_rtw"]]
        self._horizon = max(t["n_rc"], t["n_rfc"], t["n_faw"], t["n_ccdab"], *sums)
        self._row: dict[tuple[int, int, int, int], int] = {}
        self._activations: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._due = 0
        self._next_due = t["n_refi"]
        shape = self.shape
        ranges = [range(shape[name]) for name in ("pseudochannels", "ranks", "bankgroups", "banks")]
        self._watched = [place for place in product(*ranges) if self._sees(place)]
        self._known_banks: dict[tuple[str, tuple[int, int, int, int]], list[tuple[int, int, int, int]]] = {}
        self._known_pairs: dict[tuple[str, str, str, str], tuple[int, dict[tuple[str, str], int]]] = {}

    # What a command reaches.

    def _sees(self, place: tuple[int, int, int, int]) -> bool:
        pseudochannel, rank, group, _ = place
        number = (pseudochannel * self.shape["ranks"] + rank) * self.shape["bankgroups"] + group
        return self.watched_groups is None or number < self.watched_groups

    def _banks(self, command: Command) -> list[tuple[int, int, int, int]]:
        key = command.scope, command.place
        if key not in self._known_banks:
            chosen = {
                "BANK": lambda at: at == command.place,
                "SAME_BANK": lambda at: at[3] == command.bank,
                "ALL_BANK": lambda at: True,
            }[command.scope]
            self._known_banks[key] = [at for at in self._watched if chosen(at)]
        return self._known_banks[key]

    def _exists(self, command: Command) -> bool:
        if command.kind == "BROADCAST":
            return True
        scopes = {"ACT": 3, "PRE": 3, "MAC": 3, "REF": -1, "RD": 1, "WR": 1}[command.kind]
        number = ["BANK", "SAME_BANK", "ALL_BANK"].index(command.scope)
        inside = all(
            getattr(command, name) < self.shape[f"{name}s"] for name in ("pseudochannel", "rank", "bankgroup", "bank")
        )
        inside = inside and (
            command.column < self.shape["columns"] if command.is_column else command.row < self.shape["rows"]
        )
        return inside and (number == 2 if scopes < 0 else number < scopes)

    def _shared(self, one: Command, other: Command) -> list[str]:
        """Return the levels of which both reach a common unit that is watched."""
        if "BROADCAST" in (one.kind, other.kind):
            return ["channel"]
        single = [command for command in (one, other) if command.scope == "BANK"]
        if len(single) == 2:
            equal = [a == b for a, b in zip(one.place, other.place, strict=True)]
            depth = equal.index(False) if False in equal else 4
        elif one.scope == "ALL_BANK" or other.scope == "ALL_BANK" or one.bank == other.bank:
            depth = 4
        else:
            depth = 3
        levels = _ORDER[4 - depth :]
        if single and not self._sees(single[0].place):
            levels = [level for level in levels if level not in ("bank", "bankgroup")]
        return levels

    # The tables: cycles by rule for a pair of kinds.

    def _pair(self, one: Command, two: Command) -> tuple[int, dict[tuple[str, str], int]]:
        """Return the most cycles that ``one``, the earlier command, may keep ``two`` waiting, and those of each rule.

        Rules come with their level; kinds and scopes say it all.
        """
        key = one.kind, one.scope, two.kind, two.scope
        if key not in self._known_pairs:
            table = self._table(one, two)
            self._known_pairs[key] = max(table.values(), default=0), table
        return self._known_pairs[key]

    def _table(self, one: Command, two: Command) -> dict[tuple[str, str], int]:
        t = self.timing
        many = one.scope != "BANK" and two.scope != "BANK"
        data_end = t["n_cwl"] + t["n_bl"]
        turn = max(t["n_bl"], data_end - t["n_cl"])
        kinds = {"MAC": "read", "RD": "read"}
        first, second = kinds.get(one.kind, one.kind), kinds.get(two.kind, two.kind)
        found: dict[tuple[str, str], int] = {}
        if one.kind == "ACT" and not two.is_column:
            found["channel", "ACT on the row bus"] = 2
        match first, second:
            case "ACT", "ACT":
                found["bank", "ACT to ACT, bank"] = t["n_rc"]
                found["bankgroup", "ACT to ACT, bank group"] = t["n_rrdl"]
                found["rank", "ACT to ACT, rank"] = t["n_rrds"]
            case "ACT", "PRE":
                found["bank", "ACT to PRE"] = t["n_ras"]
            case "ACT", "REF":
                found["bank", "ACT to REF"] = t["n_rc"]
            case "PRE", ("ACT" | "REF"):
                found["bank", f"PRE to {two.kind}"] = t["n_rp"]
            case "REF", ("ACT" | "REF"):
                found["channel", f"REF to {two.kind}"] = t["n_rfc"]
            case "read", "PRE":
                found["bank", "read to PRE"] = t["n_rtpl"]
            case "WR", "PRE":
                found["bank", "WR to PRE"] = data_end + t["n_wr"]
            case "ACT", "read":
                found["bank", "ACT to read"] = t["n_rcdrd"]
            case "ACT", "WR":
                found["bank", "ACT to WR"] = t["n_rcdwr"]
            case "read", "read":
                found["bankgroup", "read to read, bank group"] = t["n_ccdl"]
                found["rank", "read to read, rank"] = t["n_ccds"]
                if one.kind == two.kind == "MAC" and many:
                    found["channel", "MACAB to MACAB"] = t["n_ccdab"]
                if one.kind == two.kind == "RD":
                    found["pseudochannel", "RD to RD, pins"] = t["n_bl"]
            case "WR", "WR":
                found["bankgroup", "WR to WR, bank group"] = t["n_ccdl"]
                found["rank", "WR to WR, rank"] = t["n_ccds"]
                found["pseudochannel", "WR to WR, pins"] = t["n_bl"]
            case "read", "WR" if one.kind == "MAC":
                found["bankgroup", "MAC to WR, bank group"] = t["n_ccdl"]
                found["rank", "MAC to WR, rank"] = t["n_ccds"]
            case "read", "WR":
                found["pseudochannel", "RD to WR, pins"] = t["n_rtw"]
            case "WR", "read":
                found["bankgroup", "WR to read, bank group"] = data_end + t["n_wtrl"]
                found["rank", "WR to read, rank"] = data_end + t["n_wtrs"]
                if two.kind == "RD":
                    found["pseudochannel", "WR to RD, pins"] = turn
        if one.kind == "RD" and two.kind == "BROADCAST":
            found["channel", "RD to BROADCAST, pins"] = t["n_rtw"]
        if one.kind == "BROADCAST" and two.kind == "RD":
            found["channel", "BROADCAST to RD, pins"] = turn
        if {one.kind, two.kind} <= {"BROADCAST", "WR"} and "BROADCAST" in (one.kind, two.kind):
            found["channel", f"{one.kind} to {two.kind}, pins"] = t["n_ccds"]
        return found

    # One command after the other; within a cycle the column command first.

    def broken_by(self, command: Command) -> list[Violation]:
        """Return what ``command`` would break, without issuing it."""
        if not self._exists(command):
            return [Violation("command", command.cycle, command)]
        earliest: dict[str, int] = {}
        for earlier in self._recent:
            most, table = self._pair(earlier, command)
            gap = command.cycle - earlier.cycle
            if most <= gap:
                continue
            levels = self._shared(earlier, command)
            for (level, rule), cycles in table.items():
                if cycles > gap and level in levels:
                    earliest[rule] = max(earliest.get(rule, 0), earlier.cycle + cycles)
        if command.kind == "ACT" and command.scope == "BANK":
            before = self._activations[command.pseudochannel, command.rank][-4:]
            if len(before) == 4:
                earliest["four ACT, rank"] = before[0] + self.timing["n_faw"]
        broken = [Violation(rule, command.cycle, command, at) for rule, at in earliest.items() if command.cycle < at]
        return broken + [Violation(rule, command.cycle, command) for rule in self._state(command)]

    def _state(self, command: Command) -> list[str]:
        if command.kind == "BROADCAST":
            return []
        banks = self._banks(command)
        found = [self._row.get(at) for at in banks]
        rows = set(found) - {None}
        some_open = bool(rows)
        all_open = None not in found
        rules = []
        if command.kind in ("RD", "WR", "MAC") and not all_open:
            rules.append("row open")
        if command.kind == "MAC" and command.scope != "BANK" and len(rows) > 1:
            rules.append("lock step")
        if command.kind == "ACT" and some_open:
            rules.append("bank closed")
        if command.kind == "ACT" and banks and self.kept_rows is not None and command.row >= self.kept_rows:
            rules.append("row kept")
        if command.kind == "REF" and some_open:
            rules.append("banks closed")
        return rules

    def issue(self, command: Command) -> list[Violation]:
        """Take ``command``, later than all before, and return what it breaks; refreshes missed before it included."""
        missed = self.advance(command.cycle)
        broken = self.broken_by(command)
        if any(violation.rule == "command" for violation in broken):
            return missed + broken
        suffix = {"BANK": "", "SAME_BANK": "SB", "ALL_BANK": "AB"}[command.scope]
        self.counts[command.kind if command.kind == "BROADCAST" else command.kind + suffix] += 1
        while self._recent and self._recent[0].cycle + self._horizon <= command.cycle:
            self._recent.popleft()
        self._recent.append(command)
        if command.kind == "ACT":
            self._row.update(dict.fromkeys(self._banks(command), command.row))
            if command.scope == "BANK":
                self._activations[command.pseudochannel, command.rank].append(command.cycle)
        if command.kind == "PRE":
            for at in self._banks(command):
                self._row.pop(at, None)
        if command.kind == "REF":
            if command.cycle == self._next_due:
                self._next_due += self.timing["n_refi"]
            else:
                self._due = max(self._due - 1, -self.postponed)
        return missed + broken

    def advance(self, cycle: int) -> list[Violation]:
        """Let refreshes fall due before ``cycle`` and return those that were missed."""
        missed = []
        while self._next_due < cycle:
            if self._due == self.postponed:
                missed.append(Violation("refresh due", self._next_due, None))
            else:
                self._due += 1
            self._next_due += self.timing["n_refi"]
        return missed


def check(checker: DramChecker, commands: Iterable[Command], *, cycles: int = 0) -> list[Violation]:
    """Issue ``commands`` in any order and return every violation up to ``cycles``."""
    broken = []
    for command in sorted(commands, key=lambda command: (command.cycle, not command.is_column)):
        broken += checker.issue(command)
    return broken + checker.advance(cycles)
