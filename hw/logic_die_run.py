"""Runs the states of a channel's bank groups through its Verilated share of the logic die."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hw.cosim import StreamRecord, run_streams
from hw.devices.logic_die import LOGIC_DIE_TOP, logic_die_modules
from hw.layouts import body_layout, head_layout
from hw.native_arithmetic import with_native
from hw.payloads import unpack, unpack_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from golden.numerics import Numerics
    from golden.partial import PartialState
    from hw.channel_run import ChannelRun
    from hw.logic_die_params import LogicDieParams

__all__ = ["LogicDieRun", "logic_die_verilog", "run_behind", "run_logic_die"]


@dataclass(frozen=True)
class LogicDieRun:
    """What a logic die did; cycles are those of the memory clock, counted as those of the states given to it.

    Parameters
    ----------
    head, body : StreamRecord
        States of the root.
    late_cycles : int
        Most cycles that an item of a group was held up on its way into the link. 0 says that no group could tell
        whether the logic die was there.
    link_done_cycles : int
        Cycle in which the last item was taken from a group.
    """

    params: LogicDieParams
    head: StreamRecord
    body: StreamRecord
    late_cycles: int
    link_done_cycles: int

    def states(self, numerics: Numerics) -> Iterator[PartialState]:
        """Yield the root's state of each operation."""
        state = self.params.channel.reduction
        layout = body_layout(state)
        beats = iter(self.body.payloads)
        for head in self.head.payloads:
            body: list[int] = []
            if not unpack(head_layout(state), head)["empty"]:
                for beat in beats:
                    body.append(beat)
                    if unpack(layout, beat)["last"]:
                        break
            yield unpack_state(state, head, body, numerics)


def logic_die_verilog(params: LogicDieParams, *, platform: object = None) -> tuple[str, str]:
    """Return the Verilog of a logic die's bench, and the name of its top module.

    Parameters
    ----------
    params : LogicDieParams
        The logic die.
    platform : object
        None for the gates as they are synthesised, :data:`hw.native_arithmetic.NATIVE` for the machine's arithmetic.
    """
    return with_native("".join(module.text(platform) for module in logic_die_modules(params))), LOGIC_DIE_TOP


def run_logic_die(
    params: LogicDieParams,
    heads: Sequence[StreamRecord],
    bodies: Sequence[StreamRecord],
    *,
    first_cycle: int = 0,
    max_cycles: int = 100_000_000,
    platform: object = None,
) -> LogicDieRun:
    """Give the states of all groups to the logic die, each item in its cycle, and take the root's at once.

    Parameters
    ----------
    params : LogicDieParams
        The logic die.
    heads, bodies : sequence of StreamRecord
        States of each group, with the cycles from which on it offers them: from ``run_channel``, or of any kind.
    first_cycle : int
        Cycle of the clock enable in which cycle 0 of the records falls: ``ChannelRun.first_cycle`` of recorded states.
    max_cycles : int
        Gives up after this many.
    platform : object
        What the Verilog is made for, see :func:`logic_die_verilog`.

    Raises
    ------
    ValueError
        If there are not as many records as groups, or they hold different numbers of heads.
    hw.cosim.CosimError
        If the states did not come.
    """
    groups = params.channel.groups
    if len(heads) != groups or len(bodies) != groups:
        raise ValueError(f"heads and bodies must be those of {groups} groups, not {len(heads)} and {len(bodies)}")
    operations = {len(record.payloads) for record in heads}
    if len(operations) != 1:
        raise ValueError(f"groups must have equal numbers of heads, not {sorted(operations)}")
    records = {f"head_i__{group}": record for group, record in enumerate(heads)}
    records |= {f"body_i__{group}": record for group, record in enumerate(bodies)}
    # The enable repeats itself, so that the run need not wait as long as the recorded one did.
    shift = first_cycle % params.channel.logic_ratio.denominator
    earliest = {name: record.cycles.astype(np.int64) + shift for name, record in records.items()}
    wanted = {"head_o": operations.pop(), "body_o": _root_beats(params, heads, bodies)}
    found = run_streams(
        *logic_die_verilog(params, platform=platform),
        {name: record.payloads for name, record in records.items()},
        wanted,
        earliest=earliest,
        max_cycles=max_cycles,
    ).streams
    late = [found[name].cycles.astype(np.int64) - cycles for name, cycles in earliest.items()]

    def since(record: StreamRecord) -> StreamRecord:
        return StreamRecord(record.cycles - np.uint64(shift), record.payloads)

    return LogicDieRun(
        params,
        since(found["head_o"]),
        since(found["body_o"]),
        max((int(cycles.max()) for cycles in late if cycles.size), default=0),
        max((int(found[name].cycles[-1]) - shift for name in earliest if found[name].cycles.size), default=0),
    )


def run_behind(params: LogicDieParams, channel: ChannelRun, *, platform: object = None) -> LogicDieRun:
    """Run the logic die behind a recorded channel, of which the first group stands for all.

    Groups with as many tokens as the first, and it the most, give their states in the same cycles, whatever their data
    (``tests/rtl/test_channel_symmetry.py``): exact up to the output of the group's own units, as long as no group is
    held up by its link, ``late_cycles`` of the result being 0.

    Parameters
    ----------
    params : LogicDieParams
        The logic die.
    channel : ChannelRun
        Its channel.
    platform : object
        What the Verilog is made for, see :func:`logic_die_verilog`.
    """
    groups = params.channel.groups
    return run_logic_die(
        params,
        [channel.heads[0]] * groups,
        [channel.bodies[0]] * groups,
        first_cycle=channel.first_cycle,
        platform=platform,
    )


def _root_beats(params: LogicDieParams, heads: Sequence[StreamRecord], bodies: Sequence[StreamRecord]) -> int:
    """Return the beats that the root gives in all operations: those of one state of each that is not empty."""
    state = params.channel.reduction
    beats = np.zeros(len(heads[0].payloads), np.int64)
    for head, body in zip(heads, bodies, strict=True):
        lasts = [unpack(body_layout(state), beat)["last"] for beat in body.payloads]
        ends = np.flatnonzero(lasts)
        full = [number for number, item in enumerate(head.payloads) if not unpack(head_layout(state), item)["empty"]]
        beats[full] = np.diff(ends, prepend=-1)
    return int(beats.sum())
