"""States of bank groups for a logic die, and what its root must answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.numerics import unit_numerics
from golden.partial import merge_tree
from hw.cosim import StreamRecord
from hw.payloads import pack_state
from tests.helpers.partials import make_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from golden.partial import PartialState
    from hw.logic_die_params import LogicDieParams
    from hw.logic_die_run import LogicDieRun

__all__ = ["GroupStates", "assert_root"]


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
