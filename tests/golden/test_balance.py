"""Promise: new tokens go to the group of fewest activations in ten steps, and the tables have the paper's sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.balance import WINDOW_STEPS, GreedyBalance, group_id_bytes, intra_tokens, tracking_bytes


def test_ties_go_to_the_lowest_group_and_a_placed_token_counts():
    balance = GreedyBalance(3)
    assert [balance.place() for _ in range(5)] == [0, 1, 2, 0, 1]
    balance.activate(np.array([2, 2, 0]))
    assert balance.frequencies.tolist() == [3, 2, 3]
    assert balance.place() == 1
    assert balance.place() == 0


def test_a_step_is_forgotten_after_ten():
    balance = GreedyBalance(2)
    balance.activate(np.array([0, 0, 0]))
    for step in range(1, WINDOW_STEPS):
        balance.begin_step()
        assert balance.frequencies.tolist() == [3, 0], step
    balance.begin_step()
    assert balance.frequencies.tolist() == [0, 0]


@given(st.lists(st.lists(st.integers(0, 4), max_size=12), min_size=1, max_size=25), st.integers(1, 12))
def test_frequencies_are_those_of_the_last_steps(steps, window):
    balance = GreedyBalance(5, window)
    for number, groups in enumerate(steps):
        if number:
            balance.begin_step()
        balance.activate(np.array(groups, np.int64))
        recent = [group for step in steps[max(0, number - window + 1) : number + 1] for group in step]
        assert balance.frequencies.tolist() == [recent.count(group) for group in range(5)]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=9), st.integers(0, 80))
def test_many_are_placed_as_one_after_another(counts, tokens):
    one, many = GreedyBalance(len(counts)), GreedyBalance(len(counts))
    for balance in (one, many):
        balance.activate(np.repeat(np.arange(len(counts)), counts))
    assert many.place_each(tokens).tolist() == [one.place() for _ in range(tokens)]
    assert many.frequencies.tolist() == one.frequencies.tolist()


def test_time_is_that_of_the_fullest_group():
    assert intra_tokens(np.array([0, 3, 3, 1]), 4) == 2
    assert intra_tokens(np.arange(0), 4) == 0


def test_tables_of_five_stacks():
    """Five HBM3 stacks of 16 channels, 2 pseudo-channels, 2 ranks, 4 bank groups: PAM prints 2.8 KB and < 50 KB."""
    groups = 5 * 16 * 2 * 2 * 4
    assert groups == 1280
    assert group_id_bytes(groups) == 2048 * 11 / 8 == 2816
    assert tracking_bytes(groups) == 1280 * (10 * 24 + 28) / 8 == 42880
    assert tracking_bytes(groups) < 50_000
    assert (group_id_bytes(1), tracking_bytes(1, 1, 1)) == (1, 1)


@pytest.mark.parametrize("arguments", [(0,), (2, 0)])
def test_sizes_that_make_no_sense_are_refused(arguments):
    with pytest.raises(ValueError, match="must be at least 1, not 0"):
        GreedyBalance(*arguments)
