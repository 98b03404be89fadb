"""Cycles of :class:`hw.units.gather.Gather`.

Everything here equals the RTL to the cycle: the closed form of :func:`cycles` without stalls, the recurrence of
:func:`predict` with any stalls on any stream (``tests/hw/test_gather.py``, ``tests/rtl/test_gather.py``).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.timing.handshake import Sink, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from hw.timing.trace import StreamTrace

__all__ = ["GatherWork", "cycles", "latency_cycles", "predict"]


@dataclass(frozen=True)
class GatherWork:
    """One operation.

    Parameters
    ----------
    ids : tuple of int
        Ids of each transfer on ``selected`` but the end, at least one each.
    bursts : tuple of int
        Rows of each burst, in order; as many in all as there are ids.
    """

    ids: tuple[int, ...]
    bursts: tuple[int, ...]


def cycles(ids: int) -> int:
    """Cycles from the transfer of the rows to that of the end, both included: ``ids + 6``, and 5 without an id.

    Ids are offered from the transfer of the rows on and as fast as they are taken, bursts taken at once: it makes no
    difference which ids join, or which come together.

    Raises
    ------
    TypeError, ValueError
        If ``ids`` is no integer from 0.
    """
    require_int("ids", ids, 0)
    return ids + 6 if ids else 5


def latency_cycles(rows: int) -> int:
    """Cycles from the transfer of the rows to the first cycle of the first burst: its own rows and 4.

    Raises
    ------
    TypeError, ValueError
        If ``rows`` is no integer from 1.
    """
    require_int("rows", rows, 1)
    return rows + 4


def predict(
    operations: Sequence[GatherWork], traces: Mapping[str, StreamTrace] | None = None
) -> dict[str, npt.NDArray[np.int64]]:
    """Predict every transfer of a run from what its environment did.

    Parameters
    ----------
    operations : sequence of GatherWork
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

        given[i] = max(transfer on selected, given[i-1], taken[i-1]) + 1    it is in the register of RowIds
        taken[i] = max(given[i], rows + 1, left[i-1])                       its product is there a cycle later
        left[i]  = taken[i] + 1                                             it joins or opens a burst

    but if it ends the burst before it, not before that could enter the output register; the end then follows in the
    next cycle, as soon as the register is free again, and the rows of the next operation the cycle after. The next
    transfer on ``selected`` is taken, at the earliest, in the cycle before the last id of the one before is given.
    """
    traces = traces or {}
    rows, selected = Source(traces.get("rows")), Source(traces.get("selected"))
    bursts = Sink(traces.get("bursts"))
    idle = free = taken = 0
    for operation in operations:
        left = rows.take(idle) + 1
        # Ids that end the burst before them, by their place.
        starts = {*itertools.accumulate(operation.bursts[:-1])}
        place = 0
        for ids in (*operation.ids, 1):
            free = selected.take(free)
            for _ in range(ids):
                free = max(free + 1, taken)
                taken = max(free + 1, left)
                left = taken + 1
                if place in starts:
                    left = bursts.put(left)
                place += 1
        if operation.bursts:
            left = bursts.put(left) + 1
        idle = bursts.put(left) + 1
    return {"rows": rows.transfers, "selected": selected.transfers, "bursts": bursts.transfers}
