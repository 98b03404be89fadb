"""The two ends of a stream in a timing recurrence: who offers the items, and who takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from hw.timing.trace import StreamTrace

__all__ = ["Sink", "Source"]


class Source:
    """Items of an input stream: each is taken once it is offered, the unit is ready, and its predecessor is gone.

    Parameters
    ----------
    trace : StreamTrace, optional
        Recorded handshakes, of which only the first offers are used; None offers an item in every cycle.
    """

    def __init__(self, trace: StreamTrace | None) -> None:
        self._offered = None if trace is None else trace.presented
        self._taken: list[int] = []

    def next_offer(self) -> int:
        """Return the first cycle in which the next item is offered, its predecessor being gone.

        Raises
        ------
        ValueError
            If the trace has no further item.
        """
        index = len(self._taken)
        offered = 0
        if self._offered is not None:
            if index >= self._offered.size:
                raise ValueError(f"trace must hold more than {index} transfers")
            offered = int(self._offered[index])
        return max(offered, self._taken[-1] + 1 if self._taken else 0)

    def take(self, ready: int) -> int:
        """Return the cycle in which the next item is transferred, the unit being ready for it from ``ready`` on.

        Raises
        ------
        ValueError
            If the trace has no further item.
        """
        self._taken.append(max(self.next_offer(), ready))
        return self._taken[-1]

    @property
    def transfers(self) -> npt.NDArray[np.int64]:
        """Cycles of the transfers so far."""
        return np.array(self._taken, dtype=np.int64)


class Sink:
    """Items of an output stream behind one register that refills in the cycle in which it empties.

    Parameters
    ----------
    trace : StreamTrace, optional
        Recorded handshakes, of which only ``ready`` is used; None is always ready.
    """

    def __init__(self, trace: StreamTrace | None) -> None:
        self._next_ready: npt.NDArray[np.int64] | None = None
        if trace is not None:
            # Entry i: the first ready cycle at or after cycle i; the length stands for none.
            cycles = np.where(trace.ready, np.arange(trace.ready.size), trace.ready.size)
            self._next_ready = np.minimum.accumulate(cycles[::-1])[::-1]
        self._offered: list[int] = []
        self._taken: list[int] = []

    def put(self, cycle: int) -> int:
        """Return the cycle in which an item that is there in ``cycle`` enters the register.

        Raises
        ------
        ValueError
            If the trace ends before the item could be taken.
        """
        loaded = max(cycle, self._taken[-1]) if self._taken else cycle
        taken = loaded + 1
        if self._next_ready is not None:
            size = self._next_ready.size
            taken = int(self._next_ready[taken]) if taken < size else size
            if taken == size:
                raise ValueError(f"trace must reach a ready cycle at or after cycle {loaded + 1}, it ends at {size}")
        self._offered.append(loaded + 1)
        self._taken.append(taken)
        return loaded

    @property
    def offers(self) -> npt.NDArray[np.int64]:
        """First cycle in which each item so far was offered."""
        return np.array(self._offered, dtype=np.int64)

    @property
    def transfers(self) -> npt.NDArray[np.int64]:
        """Cycles of the transfers so far."""
        return np.array(self._taken, dtype=np.int64)
