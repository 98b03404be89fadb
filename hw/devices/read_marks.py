"""Marks that wait beside the columns that are on their way from the banks to the units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["ReadMarks"]


class ReadMarks(wiring.Component):
    """Show, with the data of each read, the parts that want them.

    A part gets one wire, of no bus: as data, the marks of a row's tokens would be ``parts * tile_tokens`` bits, 256 at
    head dimension 128 in HBM3, which is one column.

    Latency and throughput
    ----------------------
    ``n_cl`` cycles, as the data take; a read every ``n_ccdab`` cycles, the pace of the memory. As many marks are kept
    as reads can be on their way: ``ceil(n_cl / n_ccdab)``.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.
    parts : int
        Parts that are told, the first ones.

    Members
    -------
    read, wanted : In(1), In
        A column is being read; parts that want it.
    arriving : Out(parts)
        Parts that want the column whose data arrive in this cycle; else without meaning.
    """

    read: Signal
    wanted: Signal
    arriving: Signal

    def __init__(self, params: ChannelParams, *, parts: int) -> None:
        self.params = params
        self.parts = parts
        super().__init__({"read": In(1), "wanted": In(params.parts), "arriving": Out(parts)})

    def elaborate(self, platform: object) -> Module:
        """Build the queue, and the way of a read through the memory."""
        m = Module()
        timing = self.params.timing
        underway = Signal(timing.n_cl)
        depth = -(-timing.n_cl // timing.n_ccdab)
        m.submodules.queue = queue = SyncFIFOBuffered(width=self.parts, depth=depth)
        m.d.sync += underway.eq(Cat(self.read, underway))
        m.d.comb += [
            queue.w_en.eq(self.read),
            queue.w_data.eq(self.wanted[: self.parts]),
            queue.r_en.eq(underway[-1]),
            self.arriving.eq(queue.r_data),
        ]
        return m
