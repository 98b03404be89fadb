"""Limits of the rate at which a channel's share of the logic die takes states, and what a run of a stack gave.

All cycles are those of the memory clock. ``tests/rtl/test_logic_die.py`` holds the RTL of
:class:`hw.devices.logic_die.LogicDie` to within 10 % of the limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from golden.checks import require_int

if TYPE_CHECKING:
    from hw.logic_die_params import LogicDieParams

__all__ = [
    "MEASURED_FAN_INS",
    "ReductionPoint",
    "interval_cycles",
    "latency_cycles",
    "link_cycles",
    "state_bursts",
    "state_bytes",
]

MEASURED_FAN_INS = (2, 8)
"""Tree of which :func:`latency_cycles` speaks."""


@dataclass(frozen=True, kw_only=True)
class ReductionPoint:
    """One run of a stack; all channels do the same, so that one stands for all.

    Parameters
    ----------
    device : str
        Name of the device's preset.
    context : int
        Tokens of each query head.
    heads : int
        Query heads of the stack; their keys and values are dealt to the channels.
    head_dim : int
        Elements of a key.
    group : int
        Query heads that share keys and values (:func:`hw.measure_reduction.queries_of_pass`).
    last_column, last_state, last_root : int
        Cycles of the memory clock, from the start, of the last column of values that was read, of the last beat of a
        group's state, and of the last beat of the root's.
    late_cycles : int
        Most cycles that a group was held up by its link; the numbers are exact where it is 0.
    bank_bytes, up_bytes : int
        Bytes of the states that the banks of the stack give, and of those that go up to its logic die.
    equal_to_golden : bool
        The root's states are those of the golden tree, bit for bit.
    """

    device: str
    context: int
    heads: int
    head_dim: int
    last_column: int
    last_state: int
    last_root: int
    late_cycles: int
    bank_bytes: int
    up_bytes: int
    equal_to_golden: bool
    group: int = 1

    @property
    def exposed_cycles(self) -> int:
        """Cycles of the reduction behind the last column of values."""
        return self.last_root - self.last_column

    @property
    def state_cycles(self) -> int:
        """Of the exposed cycles, those up to the last state of a bank group."""
        return self.last_state - self.last_column

    @property
    def attention_cycles(self) -> int:
        """Cycles of the whole attention, the reduction included."""
        return self.last_root + 1

    @property
    def exposed_share(self) -> float:
        """Part of the attention's time that is exposed reduction."""
        return self.exposed_cycles / self.attention_cycles


def state_bytes(params: LogicDieParams, beats: int) -> int:
    """Return the bytes of a state with a body of ``beats`` beats: ``8 + 4 d``."""
    state = params.channel.reduction
    return state.state_format.bytes * (2 + _checked(params, beats) * state.lanes)


def state_bursts(params: LogicDieParams, beats: int) -> int:
    """Return the columns of the bus that such a state takes: one for its head, ``body_bursts`` for each beat."""
    return 1 + _checked(params, beats) * params.body_bursts


def link_cycles(params: LogicDieParams, beats: int) -> int:
    """Return the fewest cycles that the states of one operation take on the bus of a pseudo-channel.

    ``link_groups * state_bursts * n_ccds``, or ``state_bursts * n_ccdl`` where that is more: bursts of one group keep
    n_ccdl. Offered at once, states take exactly the former where n_ccdl is 1 or 2 n_ccds and the groups are even in
    number (``tests/hw/test_state_link.py``).
    """
    timing = params.channel.timing
    return state_bursts(params, beats) * max(params.link_groups * timing.n_ccds, timing.n_ccdl)


def interval_cycles(params: LogicDieParams, beats: int) -> Fraction:
    """Return the fewest cycles an operation takes, sustained: those of the link, or of the unit with most partials."""
    return max(
        Fraction(link_cycles(params, beats)), max(params.fan_ins) * _checked(params, beats) / params.channel.logic_ratio
    )


def latency_cycles(params: LogicDieParams, beats: int) -> int:
    """Return the cycles from the states of one operation, offered at once, to the last beat of the root's.

    ``link_groups * n_ccds * state_bursts + 2 * beats / logic_ratio + 12``: the link's time for all of them, the last
    two partials of the root, and twelve cycles of pipelines. Held equal to the RTL by ``tests/rtl/test_logic_die.py``.

    Raises
    ------
    ValueError
        If it was not measured: fewer than 4 beats, another tree, bursts of a group not twice as far apart as others,
        logic not at half the memory clock.
    """
    timing, channel = params.channel.timing, params.channel
    if beats < 4 or params.fan_ins != MEASURED_FAN_INS:
        raise ValueError(f"fan_ins must be {MEASURED_FAN_INS} and beats at least 4, not {params.fan_ins} and {beats!r}")
    if (timing.n_ccds, timing.n_ccdl) != (2, 4) or channel.logic_ratio != Fraction(1, 2):
        raise ValueError(
            f"n_ccds, n_ccdl and logic_ratio must be 2, 4 and 1/2, not {timing.n_ccds}, {timing.n_ccdl} and "
            f"{channel.logic_ratio}"
        )
    return link_cycles(params, beats) + 4 * beats + 12


def _checked(params: LogicDieParams, beats: int) -> int:
    """Return ``beats``; raise unless the units merge bodies of so many."""
    require_int("beats", beats, 2, params.channel.reduction.beats)
    return beats
