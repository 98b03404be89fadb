"""Latency, interval and cycles of :class:`hw.units.finish.FinishUnit`.

Everything here equals the RTL to the cycle: the closed form of :func:`cycles` without stalls, the recurrence of
:func:`predict` with any stalls on any stream (``tests/hw/test_finish.py``, ``tests/rtl/test_finish.py``).
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

    from golden.formats import FloatFormat
    from hw.params import FinishParams
    from hw.timing.trace import StreamTrace

__all__ = [
    "RECIPROCAL_BITS_PER_CYCLE",
    "Prediction",
    "cycles",
    "interval_cycles",
    "latency_cycles",
    "predict",
    "reciprocal_interval_cycles",
    "reciprocal_iterations",
    "reciprocal_latency_cycles",
]

RECIPROCAL_BITS_PER_CYCLE = 2
"""Quotient bits that the digit recurrence makes in a cycle."""

_BEAT_STAGES = 2  # product, output


def reciprocal_iterations(fmt: FloatFormat) -> int:
    """Cycles of the digit recurrence: the significand, the bit above it and two bits below, two bits a cycle."""
    return -(-(fmt.significand_bits + 3) // RECIPROCAL_BITS_PER_CYCLE)


def reciprocal_interval_cycles(fmt: FloatFormat) -> int:
    """Cycles between reciprocals: load, then the digits; rounding one shares a cycle with the next one's load."""
    return reciprocal_iterations(fmt) + 1


def reciprocal_latency_cycles(fmt: FloatFormat) -> int:
    """Cycles from the transfer of an operand to the first cycle of its reciprocal."""
    return reciprocal_interval_cycles(fmt) + 1


def interval_cycles(params: FinishParams, beats: int | None = None) -> int:
    """Cycles an operation takes, sustained: ``max(beats, 14)``; the next reciprocal is made meanwhile.

    Parameters
    ----------
    params : FinishParams
    beats : int, optional
        Beats of its body, 1 of an empty operation; None is the most, ``params.beats``.

    Raises
    ------
    TypeError, ValueError
        If ``beats`` is not an integer from 1 to ``params.beats``.
    """
    beats = _checked(params, params.beats if beats is None else beats)
    return max(beats, reciprocal_interval_cycles(params.state_format))


def latency_cycles(params: FinishParams) -> int:
    """Cycles from the transfer of a head to the first output beat: 17."""
    return reciprocal_latency_cycles(params.state_format) + _BEAT_STAGES


def cycles(params: FinishParams, beats: Sequence[int]) -> int:
    """Return the cycles from the transfer of the first head to that of the last output beat, both included.

    ``latency + interval of every operation but the last + beats of the last``, and 0 of no operations: heads and bodies
    offered as fast as they are accepted, outputs taken at once.

    Parameters
    ----------
    params : FinishParams
    beats : sequence of int
        Beats of the body in each of the operations that follow one another, 1 of an empty one.

    Raises
    ------
    TypeError, ValueError
        If an entry of ``beats`` is not an integer from 1 to ``params.beats``.
    """
    intervals = [interval_cycles(params, count) for count in beats]
    if not intervals:
        return 0
    return latency_cycles(params) + sum(intervals[:-1]) + beats[-1]


def _checked(params: FinishParams, beats: int) -> int:
    """Return ``beats``; raise unless it is a number of beats that an operation has."""
    require_int("beats", beats, 1, params.beats)
    return beats


@dataclass(frozen=True)
class Prediction:
    """Cycles of every transfer and every first offer of a result, counted from the end of reset."""

    head: npt.NDArray[np.int64]
    body: npt.NDArray[np.int64]
    output: npt.NDArray[np.int64]
    output_presented: npt.NDArray[np.int64]


def predict(
    params: FinishParams,
    empty: npt.NDArray[np.bool_],
    beats: Sequence[int] | None = None,
    *,
    head: StreamTrace | None = None,
    body: StreamTrace | None = None,
    output: StreamTrace | None = None,
) -> Prediction:
    """Predict every transfer of a run from what its environment did.

    Parameters
    ----------
    params : FinishParams
    empty : ndarray of bool, shape (operations,)
        Which operations have no body.
    beats : sequence of int, optional
        Beats of the body in each operation; not looked at where it is empty. None is ``params.beats`` in all of them.
    head, body : StreamTrace, optional
        Recorded handshakes of the inputs; only the cycles in which items were first offered are used. None is a
        sender that offers an item in every cycle.
    output : StreamTrace, optional
        Recorded handshakes of the output; only ``ready`` is used. None is a receiver that never stalls.

    Returns
    -------
    Prediction

    Raises
    ------
    TypeError, ValueError
        If ``empty`` has another shape, ``beats`` another length or an entry that is not an integer from 1 to
        ``params.beats``, or a trace ends before the operations do.

    Notes
    -----
    For operation k and beat i, with R the interval of the reciprocal, ``handed`` the cycle in which a reciprocal moves
    to the output of its unit and ``left`` that in which a product moves to the output register::

        head[k]   = max(offered, handed[k-1])
        handed[k] = max(head[k] + R, last beat of k-1)
        beat[i]   = max(offered unless empty, handed[k] + 1, beat[i-1] + 1, left[i-1])
        left[i]   = beat[i] + 1, but not before the output register is free
    """
    if empty.ndim != 1:
        raise ValueError(f"empty must be of shape (operations,), not {empty.shape}")
    beats = [params.beats] * len(empty) if beats is None else [_checked(params, count) for count in beats]
    if len(beats) != len(empty):
        raise ValueError(f"beats must have an entry for each of {len(empty)} operations, not {len(beats)}")
    heads, bodies, outputs = Source(head), Source(body), Sink(output)
    reciprocal = reciprocal_interval_cycles(params.state_format)
    handed = beat = left = 0
    for no_body, count in zip(empty, beats, strict=True):
        handed = max(heads.take(handed) + reciprocal, beat)
        for _ in range(1 if no_body else count):
            ready = max(handed + 1, beat + 1, left)
            beat = ready if no_body else bodies.take(ready)
            left = outputs.put(beat + 1)
    return Prediction(heads.transfers, bodies.transfers, outputs.transfers, outputs.offers)
