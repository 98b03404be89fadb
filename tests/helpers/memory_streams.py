"""Random commands for a memory channel: legal ones as early as they may come, or any at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.helpers.dram_checker import Command

if TYPE_CHECKING:
    from random import Random

    from hw.memory.model_params import MemoryModelParams
    from tests.helpers.dram_checker import DramChecker

__all__ = ["any_commands", "legal_commands"]

_KINDS = [
    *[("ACT", "ALL_BANK")] * 3,
    *[("MAC", "ALL_BANK")] * 6,
    *[("PRE", "ALL_BANK")] * 3,
    *[(kind, scope) for kind in ("ACT", "PRE", "MAC") for scope in ("BANK", "BANK", "SAME_BANK")],
    *[("RD", "BANK")] * 4,
    *[("WR", "BANK")] * 4,
    ("REF", "ALL_BANK"),
    ("BROADCAST", "ALL_BANK"),
]


def _random(rng: Random, cycle: int, params: MemoryModelParams, kind: str, scope: str, rows: int) -> Command:
    shape = params.organisation
    return Command(
        cycle,
        kind,
        scope,
        rng.randrange(shape.pseudochannels),
        rng.randrange(shape.ranks),
        rng.randrange(shape.bankgroups),
        rng.randrange(shape.banks),
        0 if kind in ("RD", "WR", "MAC", "BROADCAST") else rng.randrange(rows),
        rng.randrange(shape.columns) if kind in ("RD", "WR", "MAC") else 0,
    )


def any_commands(rng: Random, params: MemoryModelParams, cycles: int, share: float) -> list[Command]:
    """Return commands on both buses, each used in ``share`` of the cycles; a few are no commands at all."""
    commands = []
    for cycle in range(cycles):
        for columns in (True, False):
            if rng.random() >= share:
                continue
            choices = [pair for pair in _KINDS if (pair[0] in ("RD", "WR", "MAC", "BROADCAST")) == columns]
            kind, scope = rng.choice(choices)
            if rng.random() < 0.03:
                scope = rng.choice(["BANK", "SAME_BANK", "ALL_BANK"])
            command = _random(rng, cycle, params, kind, scope, params.organisation.rows)
            if rng.random() < 0.01:
                command = Command(**{**vars(command), "rank": params.organisation.ranks})
            commands.append(command)
    return commands


def legal_commands(rng: Random, params: MemoryModelParams, checker: DramChecker, cycles: int) -> list[Command]:
    """Return commands of which none breaks a rule, each in its first legal cycle after the one before."""
    commands: list[Command] = []
    cycle = 0
    interval = params.timing.n_refi
    refreshes = 0
    while True:
        owed = cycle // interval - refreshes
        if owed >= params.postponed_refreshes - 2:
            wanted = [Command(cycle, "PRE", "ALL_BANK"), Command(cycle, "REF", "ALL_BANK")]
            refreshes += 1
        else:
            wanted = [_random(rng, cycle, params, *rng.choice(_KINDS), params.simulated_rows)]
        for command in wanted:
            moved = command
            earliest = cycle
            for moved_cycle in range(cycle, cycle + 60):
                if moved_cycle < earliest:
                    continue
                moved = Command(**{**vars(command), "cycle": moved_cycle})
                broken = checker.broken_by(moved)
                earliest = max((found.earliest or 0 for found in broken), default=0)
                # In one cycle the column command comes first, and each bus takes one.
                taken = [other for other in commands[-2:] if other.cycle == moved_cycle]
                if any(other.is_column == moved.is_column or moved.is_column for other in taken):
                    continue
                if not broken:
                    break
                if any(found.earliest is None for found in broken):
                    break
            if checker.broken_by(moved):
                continue
            refreshes += moved.kind == "REF" and len(wanted) == 1
            if moved.cycle >= cycles:
                return commands
            assert checker.issue(moved) == []
            commands.append(moved)
            cycle = moved.cycle
