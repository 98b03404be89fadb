"""Latency, interval and cycles of :class:`hw.units.state_join.StateJoin`.

Everything here equals the RTL to the cycle: the closed form of :func:`cycles` without stalls, the recurrence of
:func:`predict` with any stalls on any stream (``tests/hw/test_state_join.py``, ``tests/rtl/test_state_join.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.timing.handshake import Sink, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from hw.params import ProcessingParams
    from hw.timing.trace import StreamTrace

__all__ = ["LATENCY_CYCLES", "PLAN_DEPTH", "Prediction", "cycles", "predict", "require_slices"]

PLAN_DEPTH = 2
"""Operations whose heads were taken and whose bodies still come: the one at work and the one behind it."""

LATENCY_CYCLES = 2
"""Cycles from the transfer of an operation's heads to its first joined beat; its joined head comes after one."""


def require_slices(params: ProcessingParams) -> None:
    """Raise ValueError unless the units have slices to join."""
    require_int("slices", params.slices, 2)


def cycles(params: ProcessingParams, beats: Sequence[int]) -> int:
    """Return the cycles from the transfer of the first heads to that of the last joined beat, both included.

    ``2 + sum(beats)``, and 0 of no operations: an operation each ``beats`` cycles. Heads and bodies offered as fast as
    they are accepted, results taken at once, no state empty.

    Parameters
    ----------
    params : ProcessingParams
    beats : sequence of int
        Beats of the joined body in each of the operations that follow one another.

    Raises
    ------
    TypeError, ValueError
        If an entry of ``beats`` is not an integer from ``slices`` to ``slices * params.beats``, or slices is 1.
    """
    require_slices(params)
    for count in beats:
        require_int("beats", count, params.slices, params.slices * params.beats)
    return LATENCY_CYCLES + sum(beats) if beats else 0


@dataclass(frozen=True)
class Prediction:
    """Cycles of every transfer and every first offer of a result, counted from the end of reset.

    Parameters
    ----------
    head_i : ndarray of int64
        Transfers of the heads, the same at every source.
    body_i : tuple of ndarray of int64
        Transfers of each source's body.
    head_o, body_o : ndarray of int64
        Transfers of the results.
    head_o_presented, body_o_presented : ndarray of int64
        First cycle in which each result was offered.
    """

    head_i: npt.NDArray[np.int64]
    body_i: tuple[npt.NDArray[np.int64], ...]
    head_o: npt.NDArray[np.int64]
    head_o_presented: npt.NDArray[np.int64]
    body_o: npt.NDArray[np.int64]
    body_o_presented: npt.NDArray[np.int64]


def predict(
    params: ProcessingParams,
    beats: npt.NDArray[np.integer],
    *,
    head_i: Sequence[StreamTrace] | None = None,
    body_i: Sequence[StreamTrace] | None = None,
    head_o: StreamTrace | None = None,
    body_o: StreamTrace | None = None,
) -> Prediction:
    """Predict every transfer of a run from what its environment did.

    Parameters
    ----------
    params : ProcessingParams
    beats : ndarray of int, shape (operations, slices)
        Beats of each source's body; 0 where its state is empty.
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
        If ``beats`` has another shape, slices is 1, or a trace ends before the operations do.

    Notes
    -----
    For operation k, the p-th that has a body, and beat i, with D the depth of the plan queue::

        head[k] = max(offered at all sources, head[k-1] + 1, ended[p-D] + 1 if k has a body),
                  but not before the head register is free
        beat[i] = max(offered, head[k] + 1, beat[i-1] + 1), but not before the body register is free
        ended[p] = the operation's last beat
    """
    require_slices(params)
    if beats.ndim != 2 or beats.shape[1] != params.slices:
        raise ValueError(f"beats must be of shape (operations, {params.slices}), not {beats.shape}")
    heads = [Source(head_i[j] if head_i else None) for j in range(params.slices)]
    bodies = [Source(body_i[j] if body_i else None) for j in range(params.slices)]
    heads_out, bodies_out = Sink(head_o), Sink(body_o)
    beat = -1
    ended: list[int] = []
    for row in beats:
        room = ended[-PLAN_DEPTH] + 1 if len(ended) >= PLAN_DEPTH and row.any() else 0
        head = heads_out.put(max(room, *(source.next_offer() for source in heads)))
        for source in heads:
            source.take(head)
        beat = max(beat, head)
        for source, count in zip(bodies, row, strict=True):
            for _ in range(count):
                beat = bodies_out.put(max(source.next_offer(), beat + 1))
                source.take(beat)
        if row.any():
            ended.append(beat)
    return Prediction(
        heads[0].transfers,
        tuple(source.transfers for source in bodies),
        heads_out.transfers,
        heads_out.offers,
        bodies_out.transfers,
        bodies_out.offers,
    )
