"""Promise: a matrix is dealt to operations whole, and the cycles of its commands are those of a hand count."""

from __future__ import annotations

import pytest

from hw.measure_gemv import gemv_sizes
from hw.presets.gemv import GEMV_PRESETS
from hw.timing.gemv import gemv_cycles
from hw.timing.operation import OperationKind

PAIRS = GEMV_PRESETS["hbm2-pairs"]
BANKS = GEMV_PRESETS["hbm2-banks"]


@pytest.mark.parametrize(
    ("preset", "units", "outputs", "inputs"),
    [
        (preset, units, outputs, inputs)
        for preset, units in ((PAIRS, 512), (BANKS, 1024))
        for outputs, inputs in ((4096, 128), (65536, 128), (4096, 1024), (4096, 4096), (2048, 16))
    ],
    ids=str,
)
def test_every_element_is_read_once(preset, units, outputs, inputs) -> None:
    assert preset.channels * preset.channel.parts == units
    # Keys of each operation, and values where there are any, in all units.
    for kind, kinds in ((OperationKind.SCORE, 1), (OperationKind.ATTENTION, 2)):
        sizes = gemv_sizes(preset, kind, outputs, inputs)
        assert kinds * sizes.walk_tokens * sizes.head_dim * sizes.operations * units == outputs * inputs
        assert sizes.head_dim == min(inputs, 256)


def test_sizes_that_do_not_deal_out_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^outputs must be a multiple of twice the 512 units, not 1536$"):
        gemv_sizes(PAIRS, OperationKind.ATTENTION, 1536, 128)
    assert gemv_sizes(PAIRS, OperationKind.SCORE, 1536, 128).walk_tokens == 3
    with pytest.raises(ValueError, match=r"^outputs must be a multiple of the 512 units, not 1000$"):
        gemv_sizes(PAIRS, OperationKind.SCORE, 1000, 128)
    with pytest.raises(ValueError, match=r"^outputs must be .*1024"):
        gemv_sizes(PAIRS, OperationKind.ATTENTION, 512, 128)
    with pytest.raises(ValueError, match=r"^inputs must be a multiple of 256, what a unit holds.*, not 300$"):
        gemv_sizes(PAIRS, OperationKind.ATTENTION, 1024, 300)
    with pytest.raises(ValueError, match=r"^inputs must be .*1"):
        gemv_sizes(PAIRS, OperationKind.ATTENTION, 1024, 0)


def test_both_devices_have_the_bytes_of_four_stacks() -> None:
    for preset in (PAIRS, BANKS):
        assert preset.channel.organisation.capacity_bytes == 4 * (8 << 30)
        assert preset.channel.timing.clock_ns == 1.0


def test_cycles_by_hand() -> None:
    # 32 columns of 4; then 5 to the closing, less the 4 of the last column's own, 14 to the next opening, 14 before
    cycles = gemv_cycles(PAIRS.channel, {"MAC": 2048, "ACT": 64, "PRE": 64, "REF": 2, "BROADCAST": 288})
    assert (cycles.columns, cycles.rows, cycles.refreshes) == (8192, 64 * (14 + 5 - 4 + 14), 700)
    assert cycles.total == 8192 + 1856 + 700
    # A row of one column: open for 34, closed for 14.
    short = gemv_cycles(PAIRS.channel, {"MAC": 3, "ACT": 3})
    assert (short.columns, short.rows, short.refreshes) == (12, 3 * (34 + 14 - 4), 0)
    with pytest.raises(ValueError, match=r"^MAC must be a multiple of the 3 rows opened, not 7$"):
        gemv_cycles(PAIRS.channel, {"MAC": 7, "ACT": 3})
