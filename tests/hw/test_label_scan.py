"""Promise: a pass over labels takes the rows and columns counted by hand, and its scores fit the bus meanwhile."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest

from hw.presets.devices import DEVICE_PRESETS
from hw.timing.label_scan import label_scan

ATTACC = DEVICE_PRESETS["attacc"].channel
PAM = DEVICE_PRESETS["pam"].channel
WIDE = DEVICE_PRESETS["pam-wide"].channel


def test_labels_over_the_banks_of_a_group_by_hand():
    """A label of 8 fills an eighth of four banks' columns: 32 tokens a row of 19 + 31 * 6 + 8 + 19 cycles."""
    scan = label_scan(ATTACC, 8, 1024)
    assert (scan.run.columns, scan.run.rows, scan.useful_share) == (1024, 32, Fraction(1, 8))
    assert scan.run.last_column - scan.run.first_column == 31 * 232 + 31 * 6
    # 16 groups on two pseudo-channels, 8 fp32 scores a burst, a burst every two cycles.
    assert scan.bus_cycles == 8 * 1024 // 8 * 2
    # A quarter of the 128 rows that attention to all of them opens at head dimension 128.
    assert 4 * scan.run.rows == 128


def test_whole_labels_and_the_cap_by_hand():
    scan = label_scan(WIDE, 16, 256)
    assert (scan.run.columns, scan.run.rows, scan.useful_share) == (256, 8, 1)
    assert scan.run.last_column - scan.run.first_column == ceil((256 - 32) * WIDE.column_period)
    assert scan.bus_cycles == 2048
    capped = label_scan(PAM, 8, 1024).run
    assert capped.last_column - capped.first_column == ceil((1024 - 32) * PAM.column_period)


def test_rests_and_wide_labels():
    """17 elements take two columns whole; 33 tokens end with a row of one."""
    assert label_scan(WIDE, 17, 1).run.columns == 2
    scan = label_scan(ATTACC, 8, 33)
    assert (scan.run.rows, scan.run.last_column - scan.run.first_column) == (2, 232)
    # A single token's scores are 64 B on both buses together.
    assert label_scan(ATTACC, 8, 1).bus_cycles == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 5), "label_dim must be from 1 to 256, not 0"),
        ((257, 5), "label_dim must be from 1 to 256, not 257"),
        ((8, 0), "part_tokens must be at least 1, not 0"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        label_scan(ATTACC, *arguments)
