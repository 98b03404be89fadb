"""Promise: closed forms of a channel equal every measured run over whole rows; texts give the numbers beside them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from hw.logic_die_params import LogicDieParams
from hw.memory.kv_rows import kv_rows
from hw.presets.devices import DEVICE_PRESETS
from hw.tables import load_table
from hw.timing.channel_runs import interval_cycles, lead_cycles, run_cycles, tail_cycles
from hw.timing.device_formulas import channel_interval, channel_latency, logic_die_interval, logic_die_latency
from hw.timing.logic_die import latency_cycles

PAM = DEVICE_PRESETS["pam"].channel


@pytest.mark.parametrize("name", DEVICE_PRESETS)
def test_every_measured_run_over_whole_rows(name: str) -> None:
    params = DEVICE_PRESETS[name].channel
    compared, operations = 0, {}
    for point in load_table(name).points:
        row = kv_rows(params, point.head_dim, 0)
        rows, rest = divmod(point.walk_tokens, row.tile_tokens)
        if rest or rows < 2 or point.queries > 1:
            continue
        said = run_cycles(params, point.head_dim, rows, point.operations)
        assert (said.first_column, said.last_column) == (point.first_column, point.last_column)
        # The logic's clock has two phases of the memory's.
        assert said.last_state - point.last_state in (0, 1)
        operations.setdefault((point.head_dim, rows), {})[point.operations] = point.last_column
        compared += 1
    assert compared >= 9
    for (head_dim, rows), columns in operations.items():
        # Each rounded up to a cycle.
        assert abs((columns[4] - columns[2]) / 2 - interval_cycles(params, head_dim, rows)) <= 1


def test_lead_and_tail_by_hand() -> None:
    # d 128 over four banks: 2 bursts of command and 8 of query, 4 cycles apart, then 19 cycles to the first column.
    assert lead_cycles(PAM, 128) == 4 * (2 + 8) + 19 - 1
    # 19 cycles to the pins and a register; at half the clock tree and adder 4 + 3, join 2, four states of 2 beats.
    assert tail_cycles(PAM, 128) == 19 + 1 + 2 * (4 + 3 + 2 + 4 * 2)


@pytest.mark.parametrize("name", DEVICE_PRESETS)
def test_texts_give_their_numbers(name: str) -> None:
    channel = DEVICE_PRESETS[name].channel
    die = LogicDieParams(channel=channel)
    for said in (channel_latency(channel), channel_interval(channel), logic_die_latency(die), logic_die_interval(die)):
        assert set(said.variables) == set(said.values)
        names = {**said.values, "ceil": math.ceil, "max": max, "__builtins__": {}}
        assert eval(said.formula, names) == said.cycles


def test_worked_numbers() -> None:
    # 64 rows of 32 columns of keys and of values at 2048 B / 100 GB/s each, in cycles of 0.769 ns.
    assert channel_interval(PAM).cycles == math.ceil(2 * 64 * 32 * 20.48 / 0.769)
    # A state each 17 bursts of 2 cycles from 8 groups.
    assert logic_die_interval(LogicDieParams(channel=PAM)).cycles == 8 * 17 * 2


@pytest.mark.parametrize(
    ("changes", "beats", "message"),
    [
        ({}, 3, r"^fan_ins must be \(2, 8\) and beats at least 4, not \(2, 8\) and 3$"),
        ({"fan_ins": (4, 4)}, 4, r"^fan_ins must be \(2, 8\) and beats at least 4, not \(4, 4\) and 4$"),
        (
            {"channel": PAM.replace(logic_ratio=Fraction(1))},
            4,
            "^n_ccds, n_ccdl and logic_ratio must be 2, 4 and 1/2",
        ),
    ],
)
def test_a_latency_that_nobody_measured_is_refused(changes: dict[str, object], beats: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        latency_cycles(LogicDieParams(channel=PAM).replace(**changes), beats)


def test_a_single_row_is_refused() -> None:
    for cycles in (run_cycles, interval_cycles):
        with pytest.raises(ValueError, match=r"^rows must be at least 2, not 1$"):
            cycles(PAM, 128, 1)
