"""Parameters of a channel's share of the logic die: how its groups' states get there and in what tree they merge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Self

from golden.checks import require_int, require_type
from hw.device_params import ChannelParams

if TYPE_CHECKING:
    from golden.partial import Tree
    from hw.params import ReductionParams

__all__ = ["LogicDieParams"]


@dataclass(frozen=True, kw_only=True)
class LogicDieParams:
    """The units on the logic die that merge the states of one channel's bank groups.

    Parameters
    ----------
    channel : ChannelParams
        The channel; its ``reduction`` is the pattern of every unit, its ``logic_ratio`` their clock.
    fan_ins : tuple of int
        Sources of a unit, level by level, the last one the root; their product is the number of bank groups. Level k
        with n units gives unit u the sources u, u + n, u + 2 n, ...: groups of different pseudo-channels, whose states
        arrive at the same time.
    group_states, die_states : int
        States that find room at a group's end of the link, and at the logic die's.

    Raises
    ------
    TypeError, ValueError
        If a number is out of range, the fan-ins do not make a tree of all groups, or a head is larger than a column.
    """

    channel: ChannelParams
    fan_ins: tuple[int, ...] = (2, 8)
    group_states: int = 1
    die_states: int = 1

    def __post_init__(self) -> None:
        require_type("channel", self.channel, ChannelParams)
        require_type("fan_ins", self.fan_ins, tuple)
        for fan_in in self.fan_ins:
            require_int("fan_ins", fan_in, 2)
        if prod(self.fan_ins) != self.channel.groups:
            raise ValueError(f"fan_ins must multiply to the {self.channel.groups} bank groups, not {self.fan_ins}")
        require_int("group_states", self.group_states, 1)
        require_int("die_states", self.die_states, 1)
        if self.head_bytes > self.channel.organisation.column_bytes:
            raise ValueError(f"op_id_bits must leave a head of a column at most, not {self.head_bytes} B")

    @property
    def head_bytes(self) -> int:
        """Bytes of a head: m and l, the operation's id and two flags, in whole bytes."""
        state = self.channel.reduction
        return -(-(2 * state.state_format.bits + state.op_id_bits + 2) // 8)

    @property
    def body_bursts(self) -> int:
        """Columns that a beat of a body takes."""
        state = self.channel.reduction
        return -(-(state.lanes * state.state_format.bytes) // self.channel.organisation.column_bytes)

    @property
    def link_groups(self) -> int:
        """Bank groups that share the data bus of a pseudo-channel."""
        return self.channel.groups // self.channel.organisation.pseudochannels

    @property
    def units(self) -> tuple[int, ...]:
        """Units of each level."""
        return tuple(prod(self.fan_ins[level + 1 :]) for level in range(len(self.fan_ins)))

    def unit(self, level: int) -> ReductionParams:
        """Return the parameters of the units of a level."""
        return self.channel.reduction.replace(num_sources=self.fan_ins[level])

    def sources(self, level: int, unit: int) -> range:
        """Return the numbers of a unit's sources: bank groups at level 0, else units of the level before."""
        return range(unit, self.units[level] * self.fan_ins[level], self.units[level])

    def tree(self) -> Tree:
        """Return the tree for :func:`golden.partial.merge_tree`: a unit is the list of its sources."""
        nodes: list[Any] = list(range(self.channel.groups))
        for level, count in enumerate(self.units):
            nodes = [[nodes[source] for source in self.sources(level, unit)] for unit in range(count)]
        return nodes[0]

    def replace(self, **changes: Any) -> Self:
        """Return these parameters with ``changes`` applied, validated anew."""
        return replace(self, **changes)
