"""Parameters of an end of the DMA whose link has a clock of its own: frozen, validated when made, free of Amaranth."""

from __future__ import annotations

from dataclasses import dataclass

from golden.checks import require_int, require_type
from hw.dma_engine_params import DmaParams

__all__ = ["DmaCrossedParams"]


@dataclass(frozen=True, kw_only=True)
class DmaCrossedParams:
    """One end of the DMA, and what carries its link into another clock.

    Parameters
    ----------
    dma : DmaParams
        The end. Its link's timeout covers the crossings: :func:`hw.timing.dma_crossed.round_trip_cycles`.
    depth : int
        Beats, or acknowledgements, that fit into each crossing; a power of two, at least 4. 8 hide the crossing where
        the clocks are alike.

    Raises
    ------
    TypeError, ValueError
        If ``dma`` is something else, or ``depth`` is no integer or impossible.
    """

    dma: DmaParams
    depth: int = 8

    def __post_init__(self) -> None:
        require_type("dma", self.dma, DmaParams)
        require_int("depth", self.depth, 4)
        if self.depth & (self.depth - 1):
            raise ValueError(f"depth must be a power of two, not {self.depth!r}")
