"""Latency, interval and cycles of :class:`hw.units.reduction.ReductionUnit`.

Everything here equals the RTL to the cycle: the closed form of :func:`cycles` without stalls, the recurrence of
:func:`predict` with any stalls on any stream, any pattern of empty states and any sequence of head dimensions
(``tests/hw/test_reduction.py``, ``tests/rtl/test_reduction.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from hw.timing.handshake import Sink, Source
from hw.timing.reduction_recurrence import MIN_BEATS, Recurrence, weight_cycles

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hw.params import ReductionParams
    from hw.timing.trace import StreamTrace

__all__ = [
    "Prediction",
    "cycles",
    "fill_cycles",
    "interval_cycles",
    "latency_cycles",
    "predict",
]

_BODY_STAGES = 3  # fetched beat, product, output


def interval_cycles(params: ReductionParams, beats: int | None = None) -> int:
    """Cycles a contributing partial takes at most, sustained: ``max(beats, ceil(exp interval / num_exp))``.

    Parameters
    ----------
    params : ReductionParams
    beats : int, optional
        Beats of each body; None is the most, ``params.beats``, at which this is ``beats``.

    Raises
    ------
    TypeError, ValueError
        If ``beats`` is not an integer from 2 to ``params.beats``.

    Notes
    -----
    Where the second term is the larger, an operation takes ``max(num_sources * beats, (num_sources - 1) * exp interval
    / num_exp)`` cycles in the long run, which is less: its first partial needs no exponential. An empty partial takes
    one cycle of the heads alone.
    """
    beats = _checked(params, params.beats if beats is None else beats)
    return max(beats, -(-params.exp.interval_cycles // params.num_exp))


def fill_cycles(params: ReductionParams, beats: int | None = None) -> int:
    """Cycles from the first head to the first beat, and those that the second partial waits for the first exponential.

    The first partial starts 3 cycles after its head; with more than one source the second one waits for the first
    exponential, unless that is hidden under the ``beats`` of the first (None: ``params.beats``).

    Raises
    ------
    TypeError, ValueError
        If ``beats`` is not an integer from 2 to ``params.beats``.
    """
    beats = _checked(params, params.beats if beats is None else beats)
    first_body = 3
    if params.num_sources == 1:
        return first_body
    second_body = 1 + weight_cycles(params) + 1
    return max(first_body, second_body - beats)


def latency_cycles(params: ReductionParams, beats: int | None = None) -> int:
    """Cycles from an operation's first head to its first merged beat, nothing stalled, none empty, none before it.

    ``fill + (num_sources - 1) * beats + 3`` where the exponentials keep up with bodies of ``beats`` beats (None:
    ``params.beats``), else by the recurrence.

    Raises
    ------
    TypeError, ValueError
        If ``beats`` is not an integer from 2 to ``params.beats``.
    """
    beats = _checked(params, params.beats if beats is None else beats)
    return cycles(params, [beats]) - beats


def cycles(params: ReductionParams, beats: Sequence[int]) -> int:
    """Return the cycles from the transfer of the first head to that of the last merged beat, both included.

    ``fill + num_sources * sum(beats) + 3``, with the fill of the first operation, and 0 of no operations; heads and
    bodies offered as fast as they are accepted, results taken at once, no state empty.

    Parameters
    ----------
    params : ReductionParams
    beats : sequence of int
        Beats of a body in each of the operations that follow one another.

    Raises
    ------
    TypeError, ValueError
        If an entry of ``beats`` is not an integer from 2 to ``params.beats``.

    Notes
    -----
    The closed form holds where the exponentials keep up: exp interval at most ``num_exp * beats`` in every operation,
    as it always is with an exponential of interval 1. Elsewhere the number is that of :func:`predict`.
    """
    for count in beats:
        _checked(params, count)
    if not beats:
        return 0
    if params.num_sources > 1 and params.exp.interval_cycles > params.num_exp * min(beats):
        empty = np.zeros((len(beats), params.num_sources), np.bool_)
        return int(predict(params, empty, beats).body_o[-1]) + 1
    return fill_cycles(params, beats[0]) + params.num_sources * sum(beats) + _BODY_STAGES


def _checked(params: ReductionParams, beats: int) -> int:
    """Return ``beats``; raise unless it is a number of beats that the unit merges."""
    require_int("beats", beats, MIN_BEATS, params.beats)
    return beats


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
    beats: Sequence[int] | None = None,
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
    beats : sequence of int, optional
        Beats of a body in each operation, whether it has one or not; None is ``params.beats`` in all of them.
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
    TypeError, ValueError
        If ``empty`` has another shape, ``beats`` another length or an entry that is not an integer from 2 to
        ``params.beats``, or a trace ends before the operations do.

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
    beats = [params.beats] * len(empty) if beats is None else [_checked(params, count) for count in beats]
    if len(beats) != len(empty):
        raise ValueError(f"beats must have an entry for each of {len(empty)} operations, not {len(beats)}")
    sources = range(params.num_sources)
    unit = Recurrence(
        params,
        heads=[Source(head_i[j] if head_i else None) for j in sources],
        bodies=[Source(body_i[j] if body_i else None) for j in sources],
        head_o=Sink(head_o),
        body_o=Sink(body_o),
    )
    for row, count in zip(empty, beats, strict=True):
        unit.run(row, count)
    unit.settle()
    return Prediction(
        tuple(source.transfers for source in unit.heads),
        tuple(source.transfers for source in unit.bodies),
        unit.head_o.transfers,
        unit.head_o.offers,
        unit.body_o.transfers,
        unit.body_o.offers,
    )
