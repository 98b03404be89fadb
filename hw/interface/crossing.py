"""A stream from one clock to another that has nothing to do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Shape, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

from golden.checks import require_int

if TYPE_CHECKING:
    from amaranth.hdl import ShapeLike

__all__ = ["Crossing"]


class Crossing(wiring.Component):
    """Carry a stream over the border of two clock domains, by a FIFO whose pointers cross in Gray code.

    Protocol
    --------
    Plain ready/valid streams, each in its own domain. A reset of the writing domain empties the FIFO for both; a reader
    must be reset with it, as what it had begun to take is gone.

    Latency and throughput
    ----------------------
    An item a cycle of the slower clock. An item is there 2 to 3 cycles of the reading clock after the writing edge, and
    room comes back after as many of the writing clock: a depth of at least 8 hides both where the clocks are alike.

    Parameters
    ----------
    shape : shape
        Shape of an item.
    depth : int
        Items that fit; a power of two, at least 4.
    source, target : str
        Domain that writes and domain that reads.

    Members
    -------
    i, o : In(stream), Out(stream)
        In the domain that writes, and in the one that reads.

    Raises
    ------
    TypeError, ValueError
        If ``depth`` is no integer or impossible, or the two domains are one.
    """

    def __init__(self, shape: ShapeLike, *, depth: int, source: str, target: str) -> None:
        require_int("depth", depth, 4)
        if depth & (depth - 1):
            raise ValueError(f"depth must be a power of two, not {depth!r}")
        if source == target:
            raise ValueError(f"target must be another domain than {source!r}, not {target!r}")
        self.shape, self.depth, self.source, self.target = shape, depth, source, target
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        """Place the FIFO."""
        m = Module()
        m.submodules.fifo = fifo = AsyncFIFO(
            width=Shape.cast(self.shape).width, depth=self.depth, w_domain=self.source, r_domain=self.target
        )
        m.d.comb += [
            fifo.w_data.eq(self.i.payload),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            Value.cast(self.o.payload).eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
        ]
        return m
