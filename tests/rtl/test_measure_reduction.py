"""Promise: a stack's exposed reduction is that of its last operation alone, whoever shares keys and values."""

from __future__ import annotations

import pytest

from hw.measure_reduction import measure_reduction, queries_of_pass
from hw.presets.devices import DEVICE_PRESETS

PAM = DEVICE_PRESETS["pam"]


def test_passes_read_as_many_columns_as_heads_of_their_own() -> None:
    """Four heads a channel on one KV head, or on one each: the same commands, the same cycles, other states."""
    own, pairs, shared = (measure_reduction(PAM, 512, group=group) for group in (1, 2, 4))
    assert [point.group for point in (own, pairs, shared)] == [1, 2, 4]
    for point in (own, pairs, shared):
        assert point.equal_to_golden
        assert point.late_cycles == 0
        assert (point.last_column, point.last_root) == (own.last_column, own.last_root)
        # 4 heads x 32 tokens a group x 4 columns of keys and values, one each 26.6 cycles but for 32 saved up
        assert point.last_column >= (4 * 32 * 4 - 32) * 20.48 / 0.769
        # 16 states of 17 bursts over two buses, 2 cycles each, and the units behind them
        assert 272 <= point.last_root - point.last_state < 333


def test_heads_and_contexts_that_do_not_deal_out_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^heads must be a multiple of the 16 channels times 8 a KV head, not 192$"):
        measure_reduction(PAM, 512, heads=192, group=8)
    with pytest.raises(ValueError, match=r"^heads must be at least 128, not 64$"):
        measure_reduction(PAM, 512, heads=64, group=8)
    with pytest.raises(ValueError, match=r"^group must be at least 1, not 0$"):
        measure_reduction(PAM, 512, group=0)
    with pytest.raises(ValueError, match=r"^context must be a multiple of the 16 parts of a channel, not 100$"):
        measure_reduction(PAM, 100)


def test_heads_that_share_a_column_as_far_as_units_hold_their_queries() -> None:
    wide = DEVICE_PRESETS["pam-wide"].channel
    # 64 beats of q and o: 8 queries of 128 elements, 4 of 256, 16 of 64 but units for 8.
    assert [queries_of_pass(wide, head_dim, 8) for head_dim in (64, 128, 256)] == [8, 8, 4]
    assert [queries_of_pass(wide, 128, group) for group in (1, 2, 3, 4, 6, 7, 12, 14, 11)] == [
        1,
        2,
        3,
        4,
        6,
        7,
        6,
        7,
        1,
    ]
    assert queries_of_pass(PAM.channel, 128, 8) == 1


def test_eight_heads_read_what_one_does() -> None:
    """As many columns of the memory, eight states in place of one behind them, each that of its golden model."""
    wide = DEVICE_PRESETS["pam-wide"]
    single, eight = (measure_reduction(wide, 512, heads=16 * group, group=group) for group in (1, 8))
    assert single.equal_to_golden
    assert eight.equal_to_golden
    # 8 tokens a bank of 8 columns of keys and 8 of values: the cap grants the later half of the second row of each.
    assert eight.last_column >= single.last_column
    assert eight.last_column - single.last_column < 8 * 8 * 16
    assert eight.heads == 8 * single.heads
