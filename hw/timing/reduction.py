"""Latency, interval and cycles of :class:`hw.units.reduction.ReductionUnit`.

Everything here equals the RTL to the cycle: the closed form of :func:`cycles` without stalls, the recurrence of
:func:`predict` with any stalls on any stream and any pattern of empty states (``tests/hw/test_reduction.py``,
``tests/rtl/test_reduction.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.timing.handshake import Sink, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from hw.params import ReductionParams
    from hw.timing.trace import StreamTrace

__all__ = [
    "PLAN_DEPTH",
    "Prediction",
    "cycles",
    "fill_cycles",
    "interval_cycles",
    "latency_cycles",
    "predict",
    "weight_cycles",
    "weight_queue_depth",
]

PLAN_DEPTH = 2
"""Partials whose weight is known and whose body still comes: the one at work and the one behind it."""

_OPERAND_STAGES = 3  # pair of maxima, their difference, the difference in fp16
_BODY_STAGES = 3  # fetched beat, product, output


def weight_cycles(params: ReductionParams) -> int:
    """Cycles from the transfer of a head to the one in which its weight is used for l: operand, exponential, queue."""
    return _OPERAND_STAGES + params.exp.latency_cycles + 1


def weight_queue_depth(params: ReductionParams) -> int:
    """Heads that may be ahead of their weights, so that exponentials never hold up the bodies.

    A head enters in the cycle after the one ``depth`` partials before it has left, its weight is there
    :func:`weight_cycles` later, and meanwhile ``depth`` partials of ``beats`` beats go by: ``depth * beats`` must be
    at least ``weight_cycles + 1``. A head also waits for the next one, which tells it whether it is the
    operation's last: hence at least 2.
    """
    return max(2, -(-(weight_cycles(params) + 1) // params.beats))


def interval_cycles(params: ReductionParams) -> int:
    """Cycles a contributing partial takes, sustained: ``max(beats, ceil(exp interval / num_exp))``.

    ``num_exp`` is chosen so that this is ``beats``. An empty partial takes one cycle of the heads alone.
    """
    return max(params.beats, -(-params.exp.interval_cycles // params.num_exp))


def fill_cycles(params: ReductionParams) -> int:
    """Cycles by which the first operation's bodies come later than if its weights were there: until beat 0, at least.

    The first partial starts 3 cycles after its head; with more than one source the second one waits for the first
    exponential, unless that is hidden under the beats of the first.
    """
    first_body = 3
    if params.num_sources == 1:
        return first_body
    second_body = 1 + weight_cycles(params) + 1
    return max(first_body, second_body - interval_cycles(params))


def latency_cycles(params: ReductionParams) -> int:
    """Cycles from the transfer of an operation's first head to its first merged beat, nothing stalled, none empty."""
    return fill_cycles(params) + (params.num_sources - 1) * interval_cycles(params) + _BODY_STAGES


def cycles(params: ReductionParams, operations: int) -> int:
    """Return the cycles from the transfer of the first head to that of the last merged beat, both included.

    ``fill + operations * num_sources * interval + 3``, and 0 of no operations; heads and bodies offered as fast as
    they are accepted, results taken at once, no state empty.

    Parameters
    ----------
    params : ReductionParams
    operations : int
        Operations that follow one another.

    Raises
    ------
    ValueError
        If ``operations`` is negative.
    """
    if operations < 0:
        raise ValueError(f"operations must be at least 0, not {operations!r}")
    if operations == 0:
        return 0
    return fill_cycles(params) + operations * params.num_sources * interval_cycles(params) + _BODY_STAGES


@dataclass(frozen=True)
class Prediction:
    """Cycles of every transfer and every first offer of a result, counted from the end of reset.

    Parameters
    ----------
    head_i, body_i : tuple of ndarray of int64
        Transfers of each source.
    head_o, body_o : ndarray of int64
        Transfers of the results.
    head_o_presented, body_o_presented : ndarray of int64
        First cycle in which each result was offered.
    """

    head_i: tuple[npt.NDArray[np.int64], ...]
    body_i: tuple[npt.NDArray[np.int64], ...]
    head_o: npt.NDArray[np.int64]
    head_o_presented: npt.NDArray[np.int64]
    body_o: npt.NDArray[np.int64]
    body_o_presented: npt.NDArray[np.int64]


def predict(
    params: ReductionParams,
    empty: npt.NDArray[np.bool_],
    *,
    head_i: Sequence[StreamTrace] | None = None,
    body_i: Sequence[StreamTrace] | None = None,
    head_o: StreamTrace | None = None,
    body_o: StreamTrace | None = None,
) -> Prediction:
    """Predict every transfer of a run from what its environment did.

    Parameters
    ----------
    params : ReductionParams
    empty : ndarray of bool, shape (operations, num_sources)
        Which states are empty.
    head_i, body_i : sequence of StreamTrace, optional
        Recorded handshakes of each source; only the cycles in which items were first offered are used. None is a
        source that offers an item in every cycle.
    head_o, body_o : StreamTrace, optional
        Recorded handshakes of the results; only ``ready`` is used. None is a receiver that never stalls.

    Returns
    -------
    Prediction

    Raises
    ------
    ValueError
        If ``empty`` has another shape, or a trace ends before the operations do.

    Notes
    -----
    With D the depth of the weight queue, B that of the plan queue, L and I latency and interval of an exponential
    unit, and max over what a step waits for (``q`` counts heads, ``e`` entries of the queue: contributing heads and
    operations without any, ``c`` exponentials, ``f`` partials, ``i`` beats)::

        head[q]   = max(offered, head[q-1] + 1, popped[e-D] + 1, pair_left[c-1])
        pair_left[c] = max(head + 1, difference_left[c-1])      difference_left[c] = max(pair_left[c] + 1, issued[c-1])
        issued[c] = max(difference_left[c] + 1, issued[c-num_exp] + I)
        known[e]  = head of the next contributing or the operation's last; head + 1 if it is the last itself
        popped[e] = max(known[e] + 1, issued[c] + L + 1, summed[e-1] + 1, ended[f-B] + 1)
        summed[e] = popped[e] + 1, and of the operation's last also not before the head register is free
        beat[i]   = max(offered, popped + 1, beat[i-1] + 1, fetched[i-1])
        fetched[i] = max(beat[i] + 1, left[i-1])                ended[f] = the partial's last beat
        left[i]   = fetched[i] + 1, and of the operation's last partial also not before the output register is free
    """
    if empty.ndim != 2 or empty.shape[1] != params.num_sources:
        raise ValueError(f"empty must be of shape (operations, {params.num_sources}), not {empty.shape}")
    sources = range(params.num_sources)
    unit = _Unit(
        params,
        heads=[Source(head_i[j] if head_i else None) for j in sources],
        bodies=[Source(body_i[j] if body_i else None) for j in sources],
        head_o=Sink(head_o),
        body_o=Sink(body_o),
    )
    for row in empty:
        unit.run(row)
    unit.settle()
    return Prediction(
        tuple(source.transfers for source in unit.heads),
        tuple(source.transfers for source in unit.bodies),
        unit.head_o.transfers,
        unit.head_o.offers,
        unit.body_o.transfers,
        unit.body_o.offers,
    )


@dataclass
class _Entry:
    """One entry of the queue: its source (None of an all-empty operation), when it and its weight are there."""

    source: int | None
    head: int
    last: bool = False
    known: int = 0
    weight: int = 0


class _Unit:
    """The recurrence. Entries are run through sums and bodies as soon as it is known when they enter the queue."""

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

    def run(self, empty: npt.NDArray[np.bool_]) -> None:
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
                self.pending = _Entry(source if contributes else None, self.head, last=final)
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
        for _ in range(self.params.beats):
            self.beat = self.bodies[entry.source].take(max(popped + 1, self.beat + 1, self.fetched))
            self.fetched = max(self.beat + 1, self.left)
            self.left = self.body_o.put(self.fetched + 1) if last else self.fetched + 1
        self.ended.append(self.beat)
