"""Promise: a channel's logic die answers as the golden tree does, whatever comes when, at the rate of its links.

Arithmetic is the machine's, held equal to the gates elsewhere; streams, registers and cycles are those of the RTL.
"""

from __future__ import annotations

import numpy as np
import pytest

from golden.attention import local_state
from golden.numerics import unit_numerics
from golden.partial import PartialState
from hw.logic_die_params import LogicDieParams
from hw.logic_die_run import run_logic_die
from hw.native_arithmetic import NATIVE
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.logic_die import interval_cycles, latency_cycles
from tests.helpers.logic_die import GroupStates, assert_root
from tests.helpers.partials import mixed_beats

DIE = LogicDieParams(channel=DEVICE_PRESETS["pam"].channel)
GROUPS = DIE.channel.groups
BEATS = DIE.channel.reduction.beats


def _run(work: GroupStates, cycles: np.ndarray, pause: int = 0, **options: int):
    run = run_logic_die(DIE, *work.records(cycles, pause), max_cycles=1_000_000, platform=NATIVE, **options)
    assert_root(run, work.expected())
    return run


def _cycles(operations: int, interval: int = 0) -> np.ndarray:
    return np.repeat(interval * np.arange(operations)[:, None], GROUPS, axis=1)


@pytest.mark.parametrize(("spread", "pause", "seed"), [(0, 0, 1), (400, 3, 2), (2500, 40, 3)])
def test_states_of_every_kind_at_any_time(spread: int, pause: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["plain", "tied", "special", "empty"], (40, GROUPS)).tolist()
    kinds += [["empty"] * GROUPS, ["plain"] * GROUPS, ["empty"] * GROUPS]
    # Each group alone in having tokens.
    kinds += [["plain" if group == alone else "empty" for group in range(GROUPS)] for alone in range(GROUPS)]
    work = GroupStates.make(DIE, kinds, mixed_beats(DIE.channel.reduction, len(kinds), rng), seed)
    cycles = np.sort(rng.integers(0, 1 + spread * len(kinds) // 4, (len(kinds), GROUPS)), axis=0)
    _run(work, cycles, pause)


@pytest.mark.parametrize("slow", [0, 7, 8, 15])
def test_all_wait_for_one_group_that_is_late(slow: int) -> None:
    work = GroupStates.make(DIE, [["plain"] * GROUPS] * 4, [BEATS, 2, BEATS, 3], seed=slow)
    cycles = _cycles(4)
    cycles[:, slow] = [3000, 6000, 6000, 9000]
    run = _run(work, cycles)
    assert (run.head.cycles >= cycles[:, slow]).all()
    # What the others had gathered meanwhile goes on at once: the group's own state and the units behind it.
    ends = run.body.cycles[np.cumsum([BEATS, 2, BEATS, 3]) - 1]
    assert ends[0] - 3000 < 250


@pytest.mark.parametrize("beats", [2, 4, BEATS])
def test_operations_follow_each_other_at_the_rate_of_the_links(beats: int) -> None:
    operations = 20
    work = GroupStates.make(DIE, [["plain"] * GROUPS] * operations, [beats] * operations, seed=beats)
    run = _run(work, _cycles(operations))
    ends = run.body.cycles[beats - 1 :: beats].astype(np.int64)
    # The last few come out of buffers.
    mean = (ends[10] - ends[0]) / 10
    assert float(interval_cycles(DIE, beats)) <= mean * (1 + 1e-9) + 2
    assert mean <= 1.1 * float(interval_cycles(DIE, beats))


@pytest.mark.parametrize("beats", [4, 6, BEATS])
def test_one_operation_takes_the_cycles_that_are_said(beats: int) -> None:
    """States offered at once: 16 cycles of heads and 32 a beat on the link, then two partials in the units."""
    work = GroupStates.make(DIE, [["plain"] * GROUPS], [beats], seed=7)
    assert _run(work, _cycles(1)).body.cycles[-1] == latency_cycles(DIE, beats) == 36 * beats + 28


def test_no_group_is_held_up_where_operations_leave_the_links_their_time() -> None:
    interval = 2 * int(interval_cycles(DIE, BEATS))
    work = GroupStates.make(DIE, [["plain"] * GROUPS] * 6, [BEATS] * 6, seed=4)
    run = _run(work, _cycles(6, interval), pause=2)
    assert run.late_cycles == 0
    ends = run.body.cycles[BEATS - 1 :: BEATS].astype(np.int64)
    assert (np.diff(ends) == interval).all()


def test_cycles_count_from_those_of_the_records() -> None:
    """Shifted by whole periods of the logic's clock nothing changes; by one cycle of two the logic is a cycle later."""
    work = GroupStates.make(DIE, [["plain"] * GROUPS], [BEATS], seed=5)
    even, odd, far = (_run(work, _cycles(1), first_cycle=first) for first in (0, 1, 1002))
    np.testing.assert_array_equal(even.body.cycles, far.body.cycles)
    assert abs(int(odd.body.cycles[-1]) - int(even.body.cycles[-1])) <= 2
    assert set(np.diff(even.body.cycles).tolist()) == {2}


@pytest.mark.parametrize("tokens", [1 << 20, 1_000_003])
def test_a_million_tokens_of_equal_scores_lose_nothing(tokens: int) -> None:
    """Dealt to 16 groups and merged: l is the count exactly, and o / l is the values' mean, here their only value."""
    counts = (tokens + GROUPS - 1 - np.arange(GROUPS)) // GROUPS
    unit = DIE.channel.processing
    numerics = unit_numerics(unit.exp, unit.lanes, unit.tile_tokens, unit.slices, unit.kv_format)
    head_dim = 2 * unit.lanes * unit.slices
    values = np.float16([1, -2, 0.5, 0.25] * (head_dim // 4))
    made: dict[int, PartialState] = {}
    for count in set(counts.tolist()):
        keys = np.broadcast_to(np.float16(0.5), (count, 1, head_dim))
        state = local_state(
            np.ones((1, head_dim), np.float16), keys, np.broadcast_to(values, keys.shape), 0.125, numerics
        )
        made[count] = PartialState(m=state.m[0], l=state.l[0], o=state.o[0], base=state.base)
        assert made[count].l == count
    work = GroupStates(DIE, [[made[count] for count in counts.tolist()]])
    _run(work, _cycles(1))
    (root,) = work.expected()
    assert root.l == tokens
    np.testing.assert_array_equal(root.o, tokens * values.astype(np.float32))


def test_records_of_the_wrong_number_are_refused() -> None:
    work = GroupStates.make(DIE, [["plain"] * GROUPS], [2], seed=1)
    heads, bodies = work.records(_cycles(1))
    with pytest.raises(ValueError, match=r"^heads and bodies must be those of 16 groups, not 15 and 16$"):
        run_logic_die(DIE, heads[:15], bodies, platform=NATIVE)
    twice, _ = GroupStates.make(DIE, [["plain"] * GROUPS] * 2, [2, 2], seed=1).records(_cycles(2))
    with pytest.raises(ValueError, match=r"^groups must have equal numbers of heads, not \[1, 2\]$"):
        run_logic_die(DIE, [*heads[:15], twice[15]], bodies, platform=NATIVE)
