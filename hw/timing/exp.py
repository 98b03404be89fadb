"""Cycles of :class:`hw.units.exp.ExpUnit`.

Latency and interval are :attr:`golden.exp.ExpSpec.latency_cycles` and ``interval_cycles``. What is here
follows from them: whole runs without stalls (:func:`cycles`) and every cycle of a stalled run (:func:`predict`).
Both equal the RTL (``tests/hw/test_exp.py``, ``tests/rtl/test_exp.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hw.timing.handshake import Sink, Source

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.exp import ExpSpec
    from hw.timing.trace import StreamTrace

__all__ = ["Prediction", "cycles", "predict"]


class Prediction(NamedTuple):
    """Cycles of every transfer and every first offer of a result, counted from the end of reset."""

    operand: npt.NDArray[np.int64]
    result: npt.NDArray[np.int64]
    result_presented: npt.NDArray[np.int64]


def cycles(spec: ExpSpec, count: int) -> int:
    """Return the cycles from the transfer of the first operand to that of the last result, both included.

    ``(count - 1) * interval + latency + 1``, and 0 of no operands: operands offered as fast as they are
    accepted, results taken at once.

    Raises
    ------
    ValueError
        If ``count`` is negative.
    """
    if count < 0:
        raise ValueError(f"count must be at least 0, not {count!r}")
    return (count - 1) * spec.interval_cycles + spec.latency_cycles + 1 if count else 0


def predict(
    spec: ExpSpec, count: int, *, operand: StreamTrace | None = None, result: StreamTrace | None = None
) -> Prediction:
    """Predict every transfer of a run from what the unit's neighbours did.

    Parameters
    ----------
    spec : ExpSpec
        The unit.
    count : int
        Operands that go through.
    operand : StreamTrace, optional
        Recorded handshakes of the input; only the cycles in which operands were first offered are used. None is a
        sender that offers one in every cycle.
    result : StreamTrace, optional
        Recorded handshakes of the output; only ``ready`` is used. None is a receiver that never stalls.

    Returns
    -------
    Prediction

    Raises
    ------
    ValueError
        If ``count`` is negative, or a trace ends before the run does.

    Notes
    -----
    Pipelined, with L registers under one enable: a result that waits for the output stops every stage, so an operand
    is accepted in the first running cycle at or after its offer, and its result appears in the cycle after the L-th
    running cycle from there, that one counted. Combinational: a result is offered when its operand is, and both are
    transferred in the first cycle in which the result is taken.

    Serial, with a the acceptance of operand i, I the interval and R = latency - interval registers behind the core,
    ``m[j]`` the cycle in which it moves into register j and d the one in which it is taken from the last::

        a[i]    = max(offered[i], m[0][i-1])
        m[0][i] = max(a[i] + I, m[1][i-1])    m[j][i] = max(m[j-1][i] + 1, m[j+1][i-1])
        d[i]    = first ready cycle >= m[R-1][i] + 1                m[R][i-1] = d[i-1]

    Without a register behind the core, R = 0, the result is offered from where it was computed: ``a[i] + I``.
    """
    if count < 0:
        raise ValueError(f"count must be at least 0, not {count!r}")
    walk = {"combinational": _combinational, "pipelined": _pipelined, "serial": _serial}[spec.evaluation]
    return walk(spec, count, operand, result)


def _combinational(spec: ExpSpec, count: int, operand: StreamTrace | None, result: StreamTrace | None) -> Prediction:
    operands = Source(operand)
    rows: list[tuple[int, int, int]] = []
    free = 0
    for _ in range(count):
        offered = operands.take(free)
        taken = offered if result is None else result.next_ready(offered)
        free = taken + 1
        rows.append((taken, taken, offered))
    return Prediction(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def _pipelined(spec: ExpSpec, count: int, operand: StreamTrace | None, result: StreamTrace | None) -> Prediction:
    offered = np.zeros(count, dtype=np.int64) if operand is None else operand.presented
    if offered.size < count:
        raise ValueError(f"trace must hold more than {offered.size} transfers")
    rows: list[tuple[int, int, int]] = []
    # Stretches in which everything waits, each from the offer of a result to its transfer, in order.
    waits: list[tuple[int, int]] = []
    accepted = -1

    def running(cycle: int) -> int:
        """Return the first running cycle at or after ``cycle``."""
        for start, end in reversed(waits):
            if cycle >= end:
                break
            if cycle >= start:
                return end
        return cycle

    for offer in offered[:count].tolist():
        accepted = cycle = running(max(offer, accepted + 1))
        for _ in range(spec.latency_cycles - 1):
            cycle = running(cycle + 1)
        presented = cycle + 1
        taken = presented if result is None else result.next_ready(presented)
        if taken > presented:
            waits.append((presented, taken))
        rows.append((accepted, taken, presented))
    return Prediction(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def _serial(spec: ExpSpec, count: int, operand: StreamTrace | None, result: StreamTrace | None) -> Prediction:
    operands, results = Source(operand), Sink(result)
    if spec.latency_cycles == spec.interval_cycles:
        # The core is the output register: it is free in the cycle in which its result is taken.
        taken = 0
        for _ in range(count):
            results.put(operands.take(taken) + spec.interval_cycles - 1)
            taken = int(results.transfers[-1])
        return Prediction(operands.transfers, results.transfers, results.offers)
    # Cycles in which the last item moved into each register behind the core, but the one that is the output.
    moved = [0] * (spec.latency_cycles - spec.interval_cycles)
    for _ in range(count):
        ready = operands.take(moved[0]) + spec.interval_cycles
        for j in range(len(moved) - 1):
            moved[j] = max(ready, moved[j + 1])
            ready = moved[j] + 1
        moved[-1] = results.put(ready)
    return Prediction(operands.transfers, results.transfers, results.offers)
