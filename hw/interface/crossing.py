"""A stream from one clock to another that has nothing to do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from golden.checks import require_int

if TYPE_CHECKING:
    from amaranth.hdl import ShapeLike

__all__ = ["Crossing"]


class Crossing(wiring.Component):
    """Carry a stream over the border of two clock domains, by a memory whose pointers cross in Gray code.

    Overview
    --------
    One more bit than the place in the memory tells a full one from an empty one. Of a pointer in Gray code that is
    caught while it changes one bit alone is in doubt, so that either the old or the new one is seen, two registers of
    the other clock later.

    Amaranth's ``AsyncFIFO`` does the same, and has the reset of its writer set registers of its reader at once: an
    asynchronous path into the reader's logic, and flip-flops that not every cell library has. Here either side is reset
    by its own domain, which asks for both resets.

    Protocol
    --------
    Plain ready/valid streams, each in its own domain. The two domains are reset together: both resets are held at once
    for at least four cycles of the slower clock, in which pointers reach the other side. Which of them begins and which
    ends first is all the same; what passes while one alone is held means nothing.

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
        """Place the memory and the two pointers."""
        m = Module()
        bits = self.depth.bit_length()
        m.submodules.memory = store = memory.Memory(shape=Shape.cast(self.shape).width, depth=self.depth, init=[])
        write = store.write_port(domain=self.source)
        read = store.read_port(domain=self.target)
        # Where the next item goes and where the next one is taken, in Gray code too, and as the other side sees that.
        head, tail, next_tail = (Signal(bits, name=name) for name in ("head", "tail", "next_tail"))
        head_gray, tail_gray = Signal(bits), Signal(bits)
        head_seen, tail_seen = Signal(bits), Signal(bits)
        m.submodules.head_seen = FFSynchronizer(head_gray, head_seen, o_domain=self.target)
        m.submodules.tail_seen = FFSynchronizer(tail_gray, tail_seen, o_domain=self.source)
        next_head = (head + write.en)[:bits]
        # As far ahead as there is room: the two upper bits of the Gray code differ, all others are equal.
        full = head_gray == tail_seen ^ (3 << (bits - 2))
        m.d.comb += [
            self.i.ready.eq(~full),
            write.en.eq(self.i.valid & self.i.ready),
            write.addr.eq(head[:-1]),
            write.data.eq(Value.cast(self.i.payload)),
            self.o.valid.eq(tail_gray != head_seen),
            Value.cast(self.o.payload).eq(read.data),
            next_tail.eq(tail + (self.o.valid & self.o.ready)),
            read.addr.eq(next_tail[:-1]),
            read.en.eq(1),
        ]
        m.d[self.source] += [head.eq(next_head), head_gray.eq(next_head ^ next_head[1:])]
        m.d[self.target] += [tail.eq(next_tail), tail_gray.eq(next_tail ^ next_tail[1:])]
        return m
