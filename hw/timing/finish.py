"""Latency, interval and cycles of :class:`hw.units.finish.FinishUnit`.

Everything here equals the RTL to the cycle: the closed form of :func:`cycles` without stalls, the recurrence of
:func:`predict` with any stalls on any stream (``tests/hw/test_finish.py``, ``tests/rtl/test_finish.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.timing.handshake import Sink, Source

if TYPE_CHECKING:
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


def interval_cycles(params: FinishParams) -> int:
    """Cycles an operation takes, sustained: ``max(beats, 14)``; the next reciprocal is made meanwhile."""
    return max(params.beats, reciprocal_interval_cycles(params.state_format))


def latency_cycles(params: FinishParams) -> int:
    """Cycles from the transfer of a head to the first output beat: 17."""
    return reciprocal_latency_cycles(params.state_format) + _BEAT_STAGES


def cycles(params: FinishParams, operations: int) -> int:
    """Return the cycles from the transfer of the first head to that of the last output beat, both included.

    ``latency + (operations - 1) * interval + beats``, and 0 of no operations: heads and bodies offered as fast as they
    are accepted, outputs taken at once. An empty operation takes as long as any other.

    Parameters
    ----------
    params : FinishParams
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
    return latency_cycles(params) + (operations - 1) * interval_cycles(params) + params.beats


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
    ValueError
        If ``empty`` has another shape, or a trace ends before the operations do.

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
    heads, bodies, outputs = Source(head), Source(body), Sink(output)
    reciprocal = reciprocal_interval_cycles(params.state_format)
    handed = beat = left = 0
    for no_body in empty:
        handed = max(heads.take(handed) + reciprocal, beat)
        for _ in range(params.beats):
            ready = max(handed + 1, beat + 1, left)
            beat = ready if no_body else bodies.take(ready)
            left = outputs.put(beat + 1)
    return Prediction(heads.transfers, bodies.transfers, outputs.transfers, outputs.offers)
