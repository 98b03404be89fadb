"""Permissions of the processing unit for a sender of kv beats that has to know ahead of time."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Permissions"]


class Permissions(wiring.Component):
    """Count, modulo 4, the operations and the tiles whose kv beats would be taken without a wait.

    A sender whose beats cannot be stopped on their way compares the counters with how many operations and
    tiles it has begun. Neither counter is ever more than 2 ahead of what has been read, so that two bits do.

    Tiles are granted in order. One that counts is granted when its first weight is there and the lanes are
    free; one of dropped tokens when all that count before it have been, for its beats wait for nothing.

    Members
    -------
    next_ready, start_walk, start_idle : In(1)
        The next operation can start without a wait; an operation with, without a walk starts.
    live_tile, dropped_tile : In(1)
        The keys that count of a tile have come; those of a tile in which none counts have.
    tile_weight : In(1)
        From the next cycle on the first weight of a tile can be read.
    body_free : In(1)
        From the next cycle on no body is in the lanes.
    key_operations, value_tiles : Out(2)
        The counters; 0 after reset.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "next_ready": In(1),
                "start_walk": In(1),
                "start_idle": In(1),
                "live_tile": In(1),
                "dropped_tile": In(1),
                "tile_weight": In(1),
                "body_free": In(1),
                "key_operations": Out(2),
                "value_tiles": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build both counters."""
        m = Module()
        counted = Signal()
        m.d.sync += [
            self.key_operations.eq(self.key_operations + (self.start_idle | (self.next_ready & ~counted))),
            counted.eq((counted | self.next_ready) & ~self.start_walk),
        ]

        owed = Signal(2)
        weighted = Signal(2)
        dropped = Signal()
        grant_live = (self.tile_weight | weighted.any()) & self.body_free
        grant_dropped = dropped & ~owed.any()
        m.d.sync += [
            owed.eq(owed + self.live_tile - grant_live),
            weighted.eq(weighted + self.tile_weight - grant_live),
            dropped.eq(self.dropped_tile | (dropped & ~grant_dropped)),
            self.value_tiles.eq(self.value_tiles + (grant_live | grant_dropped)),
        ]
        return m
