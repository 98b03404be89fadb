"""Promise: a matrix streams by legal commands, as many as it has columns, in the cycles they account for."""

from __future__ import annotations

import numpy as np
import pytest

from golden.formats import FP32
from hw.channel_run import run_channel
from hw.measure import column_read_cycles
from hw.measure_gemv import GEMV_ROWS, gemv_operations, measure_gemv
from hw.native_arithmetic import NATIVE
from hw.presets.gemv import GEMV_PRESETS
from hw.timing.gemv import gemv_cycles
from hw.timing.operation import OperationKind
from tests.helpers.channel_scores import checked_scores

PAIRS = GEMV_PRESETS["hbm2-pairs"]


SIZES = [(4096, 128), (65536, 128), (4096, 1024), (4096, 4096), (1024, 64)]


@pytest.mark.parametrize("kind", OperationKind)
@pytest.mark.parametrize(("outputs", "inputs"), [*SIZES, (5120, 768)])
def test_commands_are_as_many_as_the_matrix_has_columns(kind: OperationKind, outputs: int, inputs: int) -> None:
    point = measure_gemv(PAIRS, kind, outputs, inputs)
    tile = min(inputs, 256)
    columns, rows = outputs * inputs // (64 * 8 * 16), -(-outputs * inputs // (64 * 8 * 16 * 32))
    assert point.counts["MAC"] == columns
    assert point.counts["BROADCAST"] == inputs // tile * (PAIRS.channel.command_columns + tile // 16)
    assert point.counts["ACT"] >= rows
    assert point.counts["ACT"] - point.counts["PRE"] in (0, 1)
    # No run is faster than its columns, and than the rows that they must lie in: 14 to close, 14 to open.
    assert point.last_column >= 4 * (columns - 1) + 28 * (rows - 1)
    assert point.last_result > point.last_column
    if point.counts["MAC"] % point.counts["ACT"]:
        assert (outputs, inputs) == (5120, 768)  # the rest of a row, of which the formula does not speak
        return
    # Not counted: 40 cycles of command and query, what a tile waits for its weights or for its query, the last
    # row's closing.
    assert -19 <= point.last_column - gemv_cycles(PAIRS.channel, point.counts).total <= 60


@pytest.mark.parametrize("kind", OperationKind)
def test_a_run_with_refresh_is_legal_and_answers_as_the_golden_model_does(kind: OperationKind) -> None:
    channel = PAIRS.channel
    operations = gemv_operations(PAIRS, kind, 4096, 4096, seed=3)
    run, counts = checked_scores(channel, operations, rows=GEMV_ROWS, first_refresh_cycles=1000, platform=NATIVE)
    assert counts["MACAB"] == 2048
    assert counts["REFAB"] == 3
    assert np.diff(column_read_cycles(run)).min() == channel.timing.n_ccdab


def test_scores_are_the_product() -> None:
    """The sums of all tiles, added in float64, beside the product of the rows of the first group's units."""
    operations = gemv_operations(PAIRS, OperationKind.SCORE, 4096, 1024, seed=5)
    run = run_channel(PAIRS.channel, operations, rows=GEMV_ROWS, platform=NATIVE)
    found = np.zeros((8, 4))
    for score in run.token_scores(0):
        found[score.position, score.part] += FP32.from_codes(np.uint32(score.score))
    vector = np.concatenate([op.query[0] for op in operations]).view(np.float16).astype(np.float64)
    for part in range(PAIRS.channel.parts_per_group):
        rows = np.concatenate([op.keys[part] for op in operations], axis=1).view(np.float16).astype(np.float64)
        # A product passes 4 levels, 15 additions of beats and the scale, each of at most half a last place.
        bound = 21 * 2.0**-24 * (np.abs(rows) @ np.abs(vector))
        assert (np.abs(found[:, part] - rows @ vector) <= bound).all()
