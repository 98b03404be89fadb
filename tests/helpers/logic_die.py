"""States of bank groups for a logic die, and what its root must answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from golden.numerics import unit_numerics
from golden.partial import merge_tree
from hw.cosim import StreamRecord, run_streams
from hw.logic_die_run import LogicDieRun, logic_die_verilog
from hw.payloads import pack_state
from tests.helpers.partials import make_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from golden.partial import PartialState
    from hw.logic_die_params import LogicDieParams

__all__ = ["GroupStates", "assert_root", "run_held", "with_groups"]


@dataclass(frozen=True)
class GroupStates:
    """States of each operation and group, and the operations' ids."""

    params: LogicDieParams
    states: list[list[PartialState]]

    @classmethod
    def make(
        cls, params: LogicDieParams, kinds: Sequence[Sequence[str]], beats: Sequence[int], seed: int
    ) -> GroupStates:
        """Return random states, one row of kinds an operation; see :func:`tests.helpers.partials.make_state`."""
        rng = np.random.default_rng(seed)
        state = params.channel.reduction
        numerics = unit_numerics(state.exp, lanes=state.lanes, kv_format=state.weight_format)
        return cls(
            params,
            [
                [make_state(count * state.lanes, numerics, rng, kind) for kind in row]
                for row, count in zip(kinds, beats, strict=True)
            ],
        )

    def records(self, cycles: np.ndarray, pause: int = 0) -> tuple[list[StreamRecord], list[StreamRecord]]:
        """Return heads and bodies of each group.

        Parameters
        ----------
        cycles : ndarray of int, shape (operations, groups)
            Cycle from which on each head is offered; its first beat comes with it.
        pause : int
            Cycles between the offers of two beats.
        """
        heads, bodies = [], []
        state = self.params.channel.reduction
        for group in range(self.params.channel.groups):
            head_items, body_items, body_cycles = [], [], []
            for number, row in enumerate(self.states):
                head, beats = pack_state(state, row[group], op_id=number % (1 << state.op_id_bits))
                head_items.append(head)
                body_items += beats
                body_cycles += [int(cycles[number, group]) + place * pause for place in range(len(beats))]
            heads.append(StreamRecord(cycles[:, group].astype(np.uint64), head_items))
            bodies.append(StreamRecord(np.array(body_cycles, np.uint64), body_items))
        return heads, bodies

    def expected(self) -> list[PartialState]:
        """Return the states of the root by the golden model of the same tree."""
        state = self.params.channel.reduction
        numerics = unit_numerics(state.exp, lanes=state.lanes, kv_format=state.weight_format)
        return [merge_tree(row, self.params.tree(), numerics) for row in self.states]


def assert_root(run: LogicDieRun, expected: Sequence[PartialState]) -> None:
    """Hold every state of the root bit for bit against ``expected``, its id and that no fault was found with it."""
    state = run.params.channel.reduction
    numerics = unit_numerics(state.exp, lanes=state.lanes, kv_format=state.weight_format)
    heads = [
        pack_state(state, wanted, op_id=number % (1 << state.op_id_bits))[0] for number, wanted in enumerate(expected)
    ]
    assert run.head.payloads == heads
    for number, (found, wanted) in enumerate(zip(run.states(numerics), expected, strict=True)):
        if wanted.empty:  # no body tells the head dimension
            continue
        codes = [np.asarray(side.o, np.float32).view(np.uint32) for side in (found, wanted)]
        np.testing.assert_array_equal(*codes, err_msg=f"operation {number}")


def with_groups(params: LogicDieParams, groups: int, fan_ins: tuple[int, ...]) -> LogicDieParams:
    """Return a logic die for a channel of one pseudo-channel with so many bank groups, of as many smaller banks."""
    organisation = params.channel.organisation
    fewer = organisation.groups_per_channel // groups
    small = replace(
        organisation, pseudochannels=1, ranks=1, bankgroups=groups, capacity_bytes=organisation.capacity_bytes // fewer
    )
    return replace(params, channel=params.channel.replace(organisation=small), fan_ins=fan_ins)


def run_held(
    params: LogicDieParams,
    heads: Sequence[StreamRecord],
    bodies: Sequence[StreamRecord],
    wanted: tuple[int, int],
    *,
    held: Sequence[tuple[int, int]] = (),
    restarts: Sequence[int] = (),
    platform: object = None,
    max_cycles: int = 1_000_000,
) -> LogicDieRun:
    """Run the bench of a logic die whose results are held back, and that is reset.

    Parameters
    ----------
    params : LogicDieParams
        The logic die.
    heads, bodies : sequence of StreamRecord
        States of each group.
    wanted : (int, int)
        Heads and beats of the root to wait for.
    held : sequence of (cycle, bits)
        Cycles in which the root's head (bit 0) and body (bit 1) are held.
    restarts : sequence of int
        Cycles in reset.
    platform : object
        What the Verilog is made for.
    """
    items = {f"head_i__{group}": record for group, record in enumerate(heads)}
    items |= {f"body_i__{group}": record for group, record in enumerate(bodies)}
    inputs = {name: record.payloads for name, record in items.items()}
    earliest = {name: record.cycles.astype(np.int64) for name, record in items.items()}
    inputs |= {"hold": [bits for _, bits in held], "restart": [1] * len(restarts)}
    earliest |= {"hold": np.array([cycle for cycle, _ in held], np.int64), "restart": np.array(restarts, np.int64)}
    text, top = logic_die_verilog(params, platform=platform)
    outputs = dict(zip(("head_o", "body_o"), wanted, strict=True))
    found = run_streams(text, top, inputs, outputs, earliest=earliest, max_cycles=max_cycles).streams
    # Every hold came in its own cycle, and so did every reset.
    for name in ("hold", "restart"):
        np.testing.assert_array_equal(found[name].cycles, earliest[name][: len(found[name].cycles)])
    late = [found[name].cycles.astype(np.int64) - earliest[name][: len(found[name].cycles)] for name in items]
    most = max((int(cycles.max()) for cycles in late if cycles.size), default=0)
    last = max((int(found[name].cycles[-1]) for name in items if found[name].cycles.size), default=0)
    return LogicDieRun(params, found["head_o"], found["body_o"], most, last)
