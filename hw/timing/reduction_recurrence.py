"""The queues of :class:`hw.units.reduction.ReductionUnit`, and when each of its steps happens.

:func:`hw.timing.reduction.predict` runs the recurrence; its equations stand there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hw.params import ReductionParams
    from hw.timing.handshake import Sink, Source

__all__ = ["MIN_BEATS", "PLAN_DEPTH", "Recurrence", "weight_cycles", "weight_queue_depth"]

MIN_BEATS = 2
"""Fewest beats of a body: a word of the scratch is read two cycles after the beat that writes it was taken."""

PLAN_DEPTH = 2
"""Partials whose weight is known and whose body still comes: the one at work and the one behind it."""

_OPERAND_STAGES = 3  # pair of maxima, their difference, the difference in fp16


def weight_cycles(params: ReductionParams) -> int:
    """Cycles from the transfer of a head to the one in which its weight is used for l: operand, exponential, queue."""
    return _OPERAND_STAGES + params.exp.latency_cycles + 1


def weight_queue_depth(params: ReductionParams) -> int:
    """Heads that may be ahead of their weights, so that exponentials never hold up the bodies.

    A head enters in the cycle after the one ``depth`` partials before it has left, its weight is there
    :func:`weight_cycles` later, and meanwhile ``depth`` partials go by: of the shortest bodies too,
    ``depth * MIN_BEATS`` must be at least ``weight_cycles + 1``.
    """
    return -(-(weight_cycles(params) + 1) // MIN_BEATS)


@dataclass
class _Entry:
    """One entry of the queue: its source (None of an all-empty operation), its beats, when it and its weight come."""

    source: int | None
    beats: int
    head: int
    last: bool = False
    known: int = 0
    weight: int = 0


class Recurrence:
    """State of a run: the cycle in which each step last happened.

    Entries are run through sums and bodies as soon as it is known when they enter the queue. A unit of ``params``
    between ``heads`` and ``bodies``, one Source each of its sources, and the two Sinks.
    """

    def __init__(
        self, params: ReductionParams, heads: list[Source], bodies: list[Source], head_o: Sink, body_o: Sink
    ) -> None:
        self.params = params
        self.heads, self.bodies, self.head_o, self.body_o = heads, bodies, head_o, body_o
        self.depth = weight_queue_depth(params)
        self.head = -1
        self.pair_left = self.difference_left = 0
        self.issued: list[int] = []
        self.pending: _Entry | None = None
        self.entries = 0
        self.popped: list[int] = []
        self.summed = -1
        self.ended: list[int] = []
        self.beat = -1
        self.fetched = self.left = 0

    def run(self, empty: npt.NDArray[np.bool_], beats: int) -> None:
        """Take the heads of one operation."""
        some = False
        for source in range(self.params.num_sources):
            final = source == self.params.num_sources - 1
            if self.pending is not None and self.pending.last:
                self.settle()
            room = self.popped[self.entries - self.depth] + 1 if self.entries >= self.depth else 0
            self.head = self.heads[source].take(max(self.head + 1, room, self.pair_left))
            contributes = not empty[source]
            if self.pending is not None and (contributes or final):
                self._know(self.pending, self.head, last=not contributes)
            if contributes or (final and not some):
                self.pending = _Entry(source if contributes else None, beats, self.head, last=final)
                self.entries += 1
                if contributes and some:
                    self.pending.weight = self._exponential(self.head)
            some = some or contributes

    def settle(self) -> None:
        """Pass on the entry that is its operation's last; it needs no further head."""
        if self.pending is not None:
            self._know(self.pending, self.pending.head + 1, last=True)

    def _exponential(self, head: int) -> int:
        """Return the first cycle in which the weight of a head may be used."""
        params = self.params
        free = self.issued[-params.num_exp] + params.exp.interval_cycles if len(self.issued) >= params.num_exp else 0
        before = self.issued[-1] if self.issued else 0
        self.pair_left = max(head + 1, self.difference_left)
        self.difference_left = max(self.pair_left + 1, before)
        self.issued.append(max(self.difference_left + 1, free))
        return self.issued[-1] + params.exp.latency_cycles + 1

    def _know(self, entry: _Entry, known: int, *, last: bool) -> None:
        """Run an entry to its end."""
        self.pending = None
        room = self.ended[-PLAN_DEPTH] + 1 if len(self.ended) >= PLAN_DEPTH else 0
        popped = max(known + 1, entry.weight, self.summed + 1, room)
        self.popped.append(popped)
        self.summed = self.head_o.put(popped + 1) if last else popped + 1
        if entry.source is None:
            return
        for _ in range(entry.beats):
            self.beat = self.bodies[entry.source].take(max(popped + 1, self.beat + 1, self.fetched))
            self.fetched = max(self.beat + 1, self.left)
            self.left = self.body_o.put(self.fetched + 1) if last else self.fetched + 1
        self.ended.append(self.beat)
