# amaranth: UnusedElaboratable=no
"""Promise: the memory model breaks the rules that the checker breaks, cycle by cycle, and returns what was written."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from hw.devices.cells import Cells
from hw.devices.memory_model import MemoryModel
from hw.memory.model_params import MemoryModelParams
from hw.memory.rules import rule_names
from hw.presets.dram import DRAM_ORGANISATIONS, DRAM_TIMINGS
from tests.helpers.dram_checker import Command, check
from tests.helpers.memory_bench import QUICK, SMALL, checker_of, run_memory
from tests.helpers.memory_streams import any_commands, legal_commands

FOUR = MemoryModelParams(organisation=SMALL, timing=QUICK, simulated_groups=4, simulated_rows=8, postponed_refreshes=2)
THREE = replace(FOUR, simulated_groups=3, simulated_rows=6)
HBM = MemoryModelParams(
    organisation=DRAM_ORGANISATIONS["hbm3-16gb"].spec,
    timing=DRAM_TIMINGS["hbm3-5200"].spec,
    simulated_groups=1,
    simulated_rows=512,
    postponed_refreshes=8,
)
PARAMS = {"four": FOUR, "three": THREE}


def broken_by_cycle(params: MemoryModelParams, commands: list[Command], cycles: int) -> dict[int, set[str]]:
    result: dict[int, set[str]] = {}
    for violation in check(checker_of(params), commands, cycles=cycles):
        if violation.cycle < cycles - 1:
            result.setdefault(violation.cycle, set()).add(violation.rule)
    return result


@pytest.mark.parametrize("name", PARAMS)
def test_model_and_checker_agree_on_any_commands(name: str) -> None:
    params = PARAMS[name]
    names = rule_names(params.timing)
    seen_rules: set[str] = set()
    for seed, share in enumerate([0.02, 0.05, 0.1, 0.3, 0.9, 1.0]):
        cycles = 2500
        commands = any_commands(Random(seed), params, cycles, share)
        seen = run_memory(params, commands, cycles=cycles)
        expected = broken_by_cycle(params, commands, cycles)
        assert seen.broken == expected, share
        assert seen.numbered == {cycle: min(rules, key=names.index) for cycle, rules in expected.items()}
        assert seen.violated
        seen_rules |= set().union(*expected.values())
    # Turning the pins from a write to a read takes one cycle here, which a bus of one command a cycle grants.
    granted = {"RD to RD, pins", "WR to WR, pins", "WR to RD, pins", "BROADCAST to RD, pins"}
    assert set(names) - seen_rules == granted | (set() if name == "three" else {"row kept"})


def test_pins_that_carry_a_burst_for_longer() -> None:
    """With bursts of 2 cycles the rules of the pins bind between ranks as well."""
    params = replace(FOUR, timing=replace(QUICK, n_bl=2, n_rtw=9, n_cwl=4, n_cl=5))
    seen_rules: set[str] = set()
    for seed in range(3):
        commands = any_commands(Random(seed), params, 2500, 0.5)
        seen = run_memory(params, commands, cycles=2500)
        assert seen.broken == broken_by_cycle(params, commands, 2500)
        seen_rules |= set().union(*seen.broken.values())
    assert {"RD to RD, pins", "WR to WR, pins", "WR to RD, pins", "BROADCAST to RD, pins"} <= seen_rules


def test_windows_of_four_activations() -> None:
    """Activations of one rank, 2 to 5 cycles apart: any four span 8 to 20 cycles around the window of 13."""
    rng = Random(3)
    cycle, commands = 0, []
    while cycle < 2400:
        commands.append(Command(cycle, "ACT", "BANK", bankgroup=rng.randrange(2), bank=rng.randrange(2)))
        cycle += rng.randrange(2, 6)
    seen = run_memory(FOUR, commands, cycles=2500)
    assert seen.broken == broken_by_cycle(FOUR, commands, 2500)
    spans = {after.cycle - before.cycle for before, after in zip(commands, commands[4:], strict=False)}
    assert {12, 13, 14} <= spans
    assert any("four ACT, rank" in rules for rules in seen.broken.values())


def read_back(
    params: MemoryModelParams, commands: list[Command], written: dict[int, int], cells: dict[tuple[int, int, int], int]
) -> tuple[dict[int, dict[int, int]], dict[int, int]]:
    """Return what columns and pins must show of legal ``commands``: plain dictionaries of rows and cells."""
    shape, latency = params.organisation, params.timing.n_cl
    rows: dict[int, int] = {}
    columns: dict[int, dict[int, int]] = {}
    pins: dict[int, int] = {}
    for command in sorted(commands, key=lambda command: (command.cycle, not command.is_column)):
        group = (command.pseudochannel * shape.ranks + command.rank) * shape.bankgroups + command.bankgroup
        reached = [
            bank
            for bank in range(params.simulated_banks)
            if command.scope == "ALL_BANK"
            or (bank % shape.banks == command.bank and (command.scope == "SAME_BANK" or bank // shape.banks == group))
        ]
        for bank in reached:
            address = bank, rows.get(bank, -1), command.column
            match command.kind:
                case "ACT":
                    rows[bank] = command.row
                case "WR":
                    cells[address] = written[command.cycle]
                case "RD":
                    pins[command.cycle + latency] = cells[address]
                case "MAC":
                    columns.setdefault(command.cycle + latency, {})[bank] = cells[address]
    return columns, pins


@pytest.mark.parametrize(("params", "cycles"), [(FOUR, 4000), (THREE, 4000), (HBM, 5000)], ids=["four", "three", "hbm"])
def test_what_is_written_is_read(params: MemoryModelParams, cycles: int) -> None:
    rng = Random(7)
    shape = params.organisation
    bits = shape.column_bits
    used = replace(params, simulated_rows=min(params.simulated_rows, 8))
    load = [
        (row, column, [rng.getrandbits(bits) for _ in range(params.simulated_banks)])
        for row in range(used.simulated_rows)
        for column in range(shape.columns)
    ]
    cells = {(bank, row, column): word for row, column, words in load for bank, word in enumerate(words)}
    # Loading takes a cycle each; the commands come after it.
    commands = [
        Command(**{**vars(command), "cycle": command.cycle + len(load)})
        for command in legal_commands(rng, used, checker_of(params), cycles)
    ]
    total = cycles + len(load) + params.timing.n_cl + 2
    written = {command.cycle: rng.getrandbits(bits) for command in commands if command.kind == "WR"}
    seen = run_memory(params, commands, cycles=total, write_data=written, load=load)
    columns, pins = read_back(params, commands, written, cells)
    assert (len(columns), len(pins)) > (20, 20)
    assert seen.columns == columns
    assert seen.pins == pins
    assert set().union(*seen.broken.values()) <= {"refresh due"}  # the time of loading shifts the refreshes


def test_the_model_says_that_it_is_for_simulation_only() -> None:
    assert MemoryModel.simulation_only
    assert Cells.simulation_only


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^params must be a MemoryModelParams, not 3$"):
        MemoryModel(3)  # pyright: ignore[reportArgumentType]
