"""Recorded handshakes of one stream, and the questions that timing recurrences ask of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["StreamTrace"]


@dataclass(frozen=True)
class StreamTrace:
    """``valid`` and ``ready`` of one stream as rising clock edges sample them, one entry a cycle from the end of reset.

    Parameters
    ----------
    valid, ready : ndarray of bool, shape (cycles,)
        A transfer happens in each cycle in which both are true.

    Raises
    ------
    ValueError
        If the two arrays differ in shape or are not one-dimensional.
    """

    valid: npt.NDArray[np.bool_]
    ready: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.valid.ndim != 1 or self.valid.shape != self.ready.shape:
            raise ValueError(
                f"valid and ready must be vectors of one length, not of shape {self.valid.shape} and {self.ready.shape}"
            )

    @property
    def transfers(self) -> npt.NDArray[np.int64]:
        """Cycles in which an item was transferred, in order."""
        return np.flatnonzero(self.valid & self.ready)

    @property
    def presented(self) -> npt.NDArray[np.int64]:
        """For each transferred item, the first cycle in which the sender offered it."""
        transfers = self.transfers
        starts = np.flatnonzero(self.valid & ~np.concatenate(([False], self.valid[:-1])))
        earliest = np.concatenate(([0], transfers[:-1] + 1)) if transfers.size else transfers
        # An item is on offer from the cycle after its predecessor left if valid never fell, else from the last rise.
        rises = starts[np.searchsorted(starts, transfers, side="right") - 1] if transfers.size else transfers
        return np.maximum(earliest, rises)

    def next_ready(self, cycle: int) -> int:
        """Return the first cycle >= ``cycle`` in which the receiver was ready.

        Raises
        ------
        ValueError
            If the trace ends before that.
        """
        ahead = np.flatnonzero(self.ready[cycle:])
        if not ahead.size:
            raise ValueError(f"trace must reach a ready cycle at or after cycle {cycle}, it ends at {self.ready.size}")
        return cycle + int(ahead[0])
