"""Promise: the tree of a logic die names every group once, sizes follow from the memory, what can't be is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hw.logic_die_params import LogicDieParams
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.logic_die import interval_cycles, link_cycles, state_bursts, state_bytes
from tests.helpers.logic_die import GroupStates

PAM = DEVICE_PRESETS["pam"].channel


def test_units_of_a_channel_and_of_a_stack() -> None:
    params = LogicDieParams(channel=PAM)
    assert params.units == (8, 1)
    assert params.units[0] * PAM.organisation.channels == 128  # papers: 128 units on a stack's logic die
    assert params.tree() == [[group, group + 8] for group in range(8)]
    assert list(params.sources(0, 3)) == [3, 11]
    assert list(params.sources(1, 0)) == list(range(8))


@pytest.mark.parametrize("fan_ins", [(16,), (2, 8), (4, 4), (2, 2, 4), (2, 2, 2, 2)])
def test_any_shape_of_tree_holds_every_group_once(fan_ins: tuple[int, ...]) -> None:
    params = LogicDieParams(channel=PAM, fan_ins=fan_ins)
    work = GroupStates.make(params, [["plain"] * 16], [2], seed=1)
    # The golden model refuses a tree that doesn't; the maximum is the same in any.
    assert work.expected()[0].m == max(state.m for state in work.states[0])


def test_sizes_of_a_state_by_hand() -> None:
    params = LogicDieParams(channel=PAM)
    assert state_bytes(params, 8) == 520
    assert (params.head_bytes, params.body_bursts, params.link_groups) == (10, 2, 8)
    assert state_bursts(params, 8) == 17
    assert link_cycles(params, 8) == 8 * 17 * 2
    assert interval_cycles(params, 8) == 272
    # The largest unit is in the way where it has more partials than the bus has bursts for.
    assert interval_cycles(params.replace(fan_ins=(16,)), 8) == 272
    slow = PAM.replace(logic_ratio=Fraction(1, 3), column_period=None)
    assert interval_cycles(LogicDieParams(channel=slow, fan_ins=(16,)), 8) == 16 * 8 * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fan_ins": (2, 4)}, r"^fan_ins must multiply to the 16 bank groups, not \(2, 4\)$"),
        ({"fan_ins": (16, 1)}, "^fan_ins must be at least 2, not 1$"),
        ({"fan_ins": ()}, r"^fan_ins must multiply to the 16 bank groups, not \(\)$"),
        ({"group_states": 0}, "^group_states must be at least 1, not 0$"),
        ({"die_states": 0}, "^die_states must be at least 1, not 0$"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LogicDieParams(channel=PAM, **changes)  # pyright: ignore[reportArgumentType]
