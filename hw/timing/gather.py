"""Cycles of :class:`hw.units.gather.Gather`.

Everything here equals the RTL to the cycle: the closed form of :func:`cycles` without stalls, the recurrence of
:func:`predict` with any stalls on any stream (``tests/hw/test_gather.py``, ``tests/rtl/test_gather.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.timing.handshake import Sink, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from hw.timing.trace import StreamTrace

__all__ = ["cycles", "latency_cycles", "predict"]


def cycles(ids: int) -> int:
    """Cycles from the transfer of the rows to that of the end, both included: ``ids + 5``, and 4 without an id.

    Ids are offered as fast as they are taken, bursts taken at once: it makes no difference which ids join.

    Raises
    ------
    TypeError, ValueError
        If ``ids`` is no integer from 0.
    """
    require_int("ids", ids, 0)
    return ids + 5 if ids else 4


def latency_cycles(rows: int) -> int:
    """Cycles from the transfer of the rows to the first cycle of the first burst: its own rows and 3.

    Raises
    ------
    TypeError, ValueError
        If ``rows`` is no integer from 1.
    """
    require_int("rows", rows, 1)
    return rows + 3


def predict(
    operations: Sequence[Sequence[int]], traces: Mapping[str, StreamTrace] | None = None
) -> dict[str, npt.NDArray[np.int64]]:
    """Predict every transfer of a run from what its environment did.

    Parameters
    ----------
    operations : sequence of sequence of int
        For each operation the rows of its bursts, in order.
    traces : mapping of str to StreamTrace, optional
        Recorded handshakes by stream; of inputs the first offers are used, of ``bursts`` ``ready``. A stream that is
        not named is never idle and never stalls.

    Returns
    -------
    dict of str to ndarray of int64
        Cycles of the transfers on ``rows``, ``selected`` and ``bursts``, from the end of reset.

    Raises
    ------
    ValueError
        If a trace ends before the operations do.

    Notes
    -----
    For an item i of an operation, an id or its end::

        taken[i] = max(offered, rows + 1, left[i-1])         its product is there a cycle later
        left[i]  = max(taken[i] + 1, left[i-1] + 1)          it joins or opens a burst

    but if it ends the burst before it, not before that could enter the output register; the end then follows in the
    next cycle, as soon as the register is free again, and the rows of the next operation the cycle after.
    """
    traces = traces or {}
    rows, selected = Source(traces.get("rows")), Source(traces.get("selected"))
    bursts = Sink(traces.get("bursts"))
    idle = 0
    for operation in operations:
        left = rows.take(idle) + 1
        for number, joined in enumerate(operation):
            for place in range(joined):
                left = selected.take(left) + 1
                if number and not place:
                    left = bursts.put(left)
        left = selected.take(left) + 1
        if operation:
            left = bursts.put(left) + 1
        idle = bursts.put(left) + 1
    return {"rows": rows.transfers, "selected": selected.transfers, "bursts": bursts.transfers}
