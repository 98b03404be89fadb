"""Parameters of the bench of two ends of the DMA: frozen, validated when made, free of Amaranth."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite

from golden.checks import require_int, require_type
from hw.dma_engine_params import DmaParams
from hw.memory.timing import DramTiming

__all__ = ["UNITS", "DmaBenchParams", "OpenRowParams"]

UNITS = 256
"""Parts of a cycle of the ends in which the memories count time: their own clocks are no multiples of it."""


@dataclass(frozen=True, kw_only=True)
class OpenRowParams:
    """A memory with open rows behind an end.

    Parameters
    ----------
    timing : DramTiming
        Timing of one channel, in its own clock.
    channel, row : str
        Coordinates of the end's address map that name the channel, and the row in a bank.
    groups, banks : tuple of str
        Those that name the bank group in a channel, of whatever rank, and the bank in the group.
    reads_waiting : int
        Reads, and as many reads back, that wait in a channel before it holds up those of others; at least 2. With few
        one slot fills a channel's queue, and others stand idle behind it. A channel of gem5's controllers holds 32 of
        them (``read_buffer_size`` of its memory interfaces), and so does that of the Zynq-7000 (UG585, 10.1).
    queue_cycles : int
        Cycles of the ends that a column may be ordered ahead of the channel's last one; at least 1.
    write_batch : int
        Columns that wait to be written before reads are interrupted for them, and most that are written in a row; a
        power of two, at least 2.

    Raises
    ------
    TypeError, ValueError
        If a part is something else, or a number is no integer or impossible.
    """

    timing: DramTiming
    channel: str = "channel"
    groups: tuple[str, ...] = ("rank", "bankgroup")
    banks: tuple[str, ...] = ("bank",)
    row: str = "row"
    reads_waiting: int = 4
    queue_cycles: int = 48
    write_batch: int = 32

    def __post_init__(self) -> None:
        require_type("timing", self.timing, DramTiming)
        require_int("reads_waiting", self.reads_waiting, 2)
        require_int("queue_cycles", self.queue_cycles, 1)
        require_int("write_batch", self.write_batch, 2)
        if self.write_batch & (self.write_batch - 1):
            raise ValueError(f"write_batch must be a power of two, not {self.write_batch!r}")


@dataclass(frozen=True, kw_only=True)
class DmaBenchParams:
    """Two ends, their memories and the link between them.

    Parameters
    ----------
    near, far : DmaParams
        The ends; each the other's peer, with slots of as many columns.
    near_memory, far_memory : OpenRowParams
        Their memories; every level of an end's map has a power of two units.
    clock_ns : float
        Clock of the ends.
    link_cycles : int
        Cycles in which a beat or an acknowledgement crosses the link; at least 1.

    Raises
    ------
    TypeError, ValueError
        If a part is something else, the ends don't fit each other, or a memory does not have what it names.
    """

    near: DmaParams
    far: DmaParams
    near_memory: OpenRowParams
    far_memory: OpenRowParams
    clock_ns: float
    link_cycles: int

    def __post_init__(self) -> None:
        for name in ("near", "far"):
            end, memory = getattr(self, name), getattr(self, f"{name}_memory")
            require_type(name, end, DmaParams)
            require_type(f"{name}_memory", memory, OpenRowParams)
            for key in (memory.channel, *memory.groups, *memory.banks, memory.row):
                if key not in end.coordinates:
                    known = ", ".join(end.coordinates)
                    raise ValueError(f"coordinates of {name}_memory must be of {known}, not {key!r}")
            for level in end.space.space.levels:
                if level.size & (level.size - 1):
                    raise ValueError(f"size of level {level.name} of {name} must be a power of two, not {level.size!r}")
        if (self.near.memory, self.near.peer) != (self.far.peer, self.far.memory):
            raise ValueError(f"memory of far must be {self.near.peer} and its peer {self.near.memory}")
        if self.near.columns != self.far.columns:
            raise ValueError(f"columns of far must be the {self.near.columns} of near, not {self.far.columns!r}")
        if self.near.path != self.far.path:
            raise ValueError(f"path of far must be that of near, not {self.far.path!r}")
        if isinstance(self.clock_ns, bool) or not isinstance(self.clock_ns, int | float):
            raise TypeError(f"clock_ns must be a number, not {self.clock_ns!r}")
        if not (isfinite(self.clock_ns) and self.clock_ns > 0):
            raise ValueError(f"clock_ns must be finite and above 0, not {self.clock_ns!r}")
        require_int("link_cycles", self.link_cycles, 1)

    def units(self, memory: OpenRowParams, cycles: int) -> int:
        """Return how long ``cycles`` of a memory's clock are, in :data:`UNITS` of a cycle of the ends, rounded up."""
        return ceil(round(cycles * memory.timing.clock_ns / self.clock_ns * UNITS, 6))
