"""Promise: a matrix streams by legal commands, as many as it has columns, in the cycles they account for."""

from __future__ import annotations

import numpy as np
import pytest

from hw.channel_run import run_channel
from hw.measure import column_read_cycles, random_operations
from hw.measure_gemv import gemv_sizes, measure_gemv
from hw.native_arithmetic import NATIVE
from hw.presets.gemv import GEMV_PRESETS
from hw.timing.gemv import gemv_cycles
from tests.helpers.channels import assert_legal, assert_states

PAIRS = GEMV_PRESETS["hbm2-pairs"]


SIZES = [(4096, 128), (65536, 128), (4096, 1024), (4096, 4096), (1024, 64)]


@pytest.mark.parametrize(("outputs", "inputs"), [*SIZES, (5120, 768)])
def test_commands_are_as_many_as_the_matrix_has_columns(outputs: int, inputs: int) -> None:
    point = measure_gemv(PAIRS, outputs, inputs)
    tile = min(inputs, 256)
    columns, rows = outputs * inputs // (64 * 8 * 16), -(-outputs * inputs // (64 * 8 * 16 * 32))
    assert point.counts["MAC"] == columns
    assert point.counts["BROADCAST"] == inputs // tile * (PAIRS.channel.command_columns + tile // 16)
    assert point.counts["ACT"] >= rows
    assert point.counts["ACT"] - point.counts["PRE"] in (0, 1)
    # No run is faster than its columns, and than the rows that they must lie in: 14 to close, 14 to open.
    assert point.last_column >= 4 * (columns - 1) + 28 * (rows - 1)
    assert point.last_state > point.last_column


@pytest.mark.parametrize(("outputs", "inputs"), SIZES)
def test_cycles_are_those_of_the_commands(outputs: int, inputs: int) -> None:
    point = measure_gemv(PAIRS, outputs, inputs)
    # Not counted: 40 cycles of command and query, weights that one tile of keys waits for, the last row's closing.
    assert -19 <= point.last_column - gemv_cycles(PAIRS.channel, point.counts).total <= 60


def test_a_run_with_refresh_is_legal_and_answers_as_the_golden_model_does() -> None:
    channel = PAIRS.channel
    operations = random_operations(channel, gemv_sizes(PAIRS, 4096, 4096), seed=3)
    run = run_channel(channel, operations, rows=512, first_refresh_cycles=1000, platform=NATIVE)
    assert_states(run, operations)
    counts = assert_legal(run, refreshing=True)
    assert counts["MACAB"] == 2048
    assert counts["REFAB"] == 3
    reads = column_read_cycles(run)
    assert np.diff(reads).min() == channel.timing.n_ccdab
