"""Promise: selection by radix, over any number of shards, takes what a plain sort takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.retrieval.radix import NAN_KEY, Threshold, digit_counts, ordered_keys, quotas, select, threshold
from golden.retrieval.topk import top_k

_VALUES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38, 1.0000001]


def _scores(elements, most):
    return st.lists(elements, max_size=most).map(lambda values: np.array(values, np.float32))


def _selected(scores, cuts, k, digit_bits=4):
    """Return the ids that shards, cut at ``cuts``, take."""
    shards = np.split(ordered_keys(scores), cuts)
    found = threshold(shards, k, digit_bits)
    starts = [0, *cuts]
    parts = [
        start + select(keys, found.key, quota)
        for start, keys, quota in zip(starts, shards, quotas(shards, found), strict=True)
    ]
    return np.concatenate(parts).tolist()


@given(
    st.one_of(_scores(st.sampled_from(_VALUES), 40), _scores(st.floats(width=32, allow_nan=False), 40)),
    st.integers(0, 45),
    st.lists(st.integers(0, 40), max_size=5),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_any_shards_take_what_a_sort_takes(scores, k, cuts, digit_bits):
    cuts = sorted(min(cut, len(scores)) for cut in cuts)
    ids = sorted(range(len(scores)), key=lambda number: (-float(scores[number]), number))[:k]
    assert _selected(scores, cuts, k, digit_bits) == sorted(ids)
    assert top_k(scores, k).tolist() == sorted(ids)


def test_keys_are_in_the_order_of_numbers():
    codes = np.arange(0, 1 << 32, 65_521, dtype=np.uint64).astype(np.uint32)
    scores = codes.view(np.float32)
    numbers = scores[~np.isnan(scores)]
    keys = ordered_keys(numbers)
    order = np.argsort(keys, kind="stable")
    assert (np.diff(numbers[order].astype(np.float64)) >= 0).all()
    assert keys.min() > NAN_KEY
    same = ordered_keys(np.array([0.0, -0.0], np.float32))
    assert same[0] == same[1]
    assert set(ordered_keys(scores[np.isnan(scores)]).tolist()) == {NAN_KEY}
    assert ordered_keys(np.array([-np.inf], np.float32))[0] == 0x007F_FFFF


def test_nan_is_taken_last_and_by_id():
    scores = np.array([np.nan, -np.inf, np.nan, 1.0], np.float32)
    assert [_selected(scores, [2], k) for k in range(5)] == [[], [3], [1, 3], [0, 1, 3], [0, 1, 2, 3]]


def test_threshold_by_hand():
    # Two shards, digits of a byte: keys 0x80000000 + 5, 7, 7 and 7, 9; the three largest are 9 and two 7s.
    shards = [0x8000_0000 + np.array(part, np.uint32) for part in ([5, 7, 7], [7, 9])]
    found = threshold(shards, 3, 8)
    assert found == Threshold(0x8000_0007, 2)
    assert quotas(shards, found) == [2, 0]
    assert digit_counts(shards[0], 0x80_0000, 3, 8)[[5, 7, 9]].tolist() == [1, 2, 0]
    # Fewer keys than k: every digit is 0, and every key lies above.
    assert threshold(shards, 6, 8).key == 0
    assert select(shards[0], 0, 0).tolist() == [0, 1, 2]


def test_bad_arguments():
    with pytest.raises(TypeError, match="scores must be of float32, not float64"):
        ordered_keys(np.zeros(3))
    with pytest.raises(ValueError, match="k must be at least 0, not -1"):
        threshold([], -1)
    with pytest.raises(ValueError, match="digit_bits must divide 32, not 5"):
        threshold([], 1, 5)
    with pytest.raises(TypeError, match=r"k must be an integer, not 1\.0"):
        threshold([], 1.0)
