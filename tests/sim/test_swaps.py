"""Promise: pairs of tokens change places exactly as a loop over single swaps would have it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.tiering.policies import POLICIES
from sim.tiering.policy import TierScore
from sim.tiering.ratio import Ratio
from sim.tiering.swaps import Ranked, swap_count, taken

WHOLE = st.lists(st.integers(0, 9), max_size=12)


def _ranked(values: list[int], *, near: bool) -> Ranked:
    ordered = np.array(sorted(values, reverse=not near), np.float64)
    return Ranked(ordered, np.ones(len(ordered)))


def _loop(near: list[int], far: list[int], budget: int, needed: float) -> int:
    near, far, swaps, gained = sorted(near), sorted(far, reverse=True), 0, 0.0
    while swaps < budget and gained < needed and near and far and far[0] > near[0]:
        gained += far.pop(0) - near.pop(0)
        swaps += 1
    return swaps


@settings(deadline=None)
@given(near=WHOLE, far=WHOLE, budget=st.integers(0, 15), needed=st.one_of(st.integers(-2, 40), st.just(float("inf"))))
def test_swaps_are_those_of_a_loop(near: list[int], far: list[int], budget: int, needed: float) -> None:
    found = swap_count(_ranked(near, near=True), _ranked(far, near=False), budget=budget, needed=needed)
    assert np.ceil(found - 1e-9) == _loop(near, far, budget, needed)


@settings(deadline=None)
@given(near=WHOLE, far=WHOLE, budget=st.integers(0, 15), needed=st.integers(-2, 40))
def test_entries_with_counts_are_as_many_single_ones(near: list[int], far: list[int], budget: int, needed: int) -> None:
    def grouped(values: list[int], *, near: bool) -> Ranked:
        levels = sorted(set(values), reverse=not near)
        return Ranked(np.array(levels, np.float64), np.array([values.count(level) for level in levels], np.float64))

    single = swap_count(_ranked(near, near=True), _ranked(far, near=False), budget=budget, needed=needed)
    together = swap_count(grouped(near, near=True), grouped(far, near=False), budget=budget, needed=needed)
    assert together == pytest.approx(single)
    for side, values in ((True, near), (False, far)):
        entries = grouped(values, near=side)
        if values:
            assert taken(entries, together).sum() == pytest.approx(together)
            assert (taken(entries, together) <= entries.counts).all()


def _means(tiers: list[list[float]]) -> list[float]:
    return [sum(tier) / len(tier) for tier in tiers]


def _algorithm(tiers: list[list[float]], x: float, y: float, budget: int) -> tuple[int, int]:
    """PAM's second algorithm as it is printed, with a guard and a budget."""
    tiers, swaps = [list(tier) for tier in tiers], [0, 0]
    for pair in (1, 0):
        while swaps[pair] < budget:
            high, middle, low = _means(tiers)
            done = high / low + middle / low >= x + y if pair else high / middle >= x / y
            near, far = tiers[pair], tiers[pair + 1]
            if done or max(far) <= min(near):
                break
            comes, goes = max(far), min(near)
            far.remove(comes)
            near.remove(goes)
            near.append(comes)
            far.append(goes)
            swaps[pair] += 1
    return swaps[0], swaps[1]


@settings(deadline=None)
@given(
    tiers=st.lists(st.lists(st.integers(1, 64), min_size=1, max_size=9), min_size=3, max_size=3),
    x=st.sampled_from([1.0, 2.5, 8.0]),
    y=st.sampled_from([1.0, 1.5]),
    budget=st.integers(0, 9),
)
def test_ratios_are_kept_as_in_the_printed_algorithm(tiers: list[list[int]], x: float, y: float, budget: int) -> None:
    policy, found, now = Ratio(ratio=(x, y)), [0, 0], [list(map(float, tier)) for tier in tiers]
    for pair in (1, 0):
        near, far = sorted(now[pair]), sorted(now[pair + 1], reverse=True)
        scores = [TierScore(sum(tier), len(tier)) for tier in now]
        swaps = swap_count(
            Ranked(np.array(near), np.ones(len(near))),
            Ranked(np.array(far), np.ones(len(far))),
            budget=budget,
            needed=policy.gain(pair, scores),
        )
        found[pair] = count = int(np.ceil(swaps - 1e-9))
        now[pair], now[pair + 1] = near[count:] + far[:count], far[count:] + near[:count]
    assert tuple(found) == _algorithm([list(map(float, tier)) for tier in tiers], x, y, budget)


def test_a_ratio_that_is_kept_moves_nothing() -> None:
    scores = [TierScore(30.0, 10), TierScore(10.0, 10), TierScore(1.0, 10)]
    policy = Ratio(ratio=(20.0, 10.0))
    assert policy.gain(1, scores) <= 0.0
    assert policy.gain(0, scores) <= 0.0
    # Sums of 30, 10 and 1 are at 30 : 10 : 1; a memory of more tokens then weighs more.
    assert Ratio(ratio=(30.0, 10.0), score="sum").gain(0, scores) <= 1e-12
    assert Ratio(ratio=(31.0, 10.0), score="sum").gain(0, scores) > 0.0
    # An empty memory has no mean.
    assert policy.gain(1, [*scores[:2], TierScore(0.0, 0)]) == 0.0


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_only_what_a_policy_says_comes_near(name: str) -> None:
    policy = POLICIES[name]
    scores = [TierScore(1.0, 10), TierScore(1.0, 10), TierScore(1.0, 10)]
    moves = {"static": False}.get(name, True)
    assert (policy.gain(0, scores) > 0.0) == moves
    thresholds = (5.0, 1.0, 0.0) if name.startswith("pam-seed") else (None, None, None)
    assert tuple(policy.threshold(pair) for pair in range(3)) == thresholds
