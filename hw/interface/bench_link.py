"""A link for simulation: it takes a beat in so many of so many cycles, and brings it a fixed time later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_int

if TYPE_CHECKING:
    from amaranth.hdl import ShapeLike

__all__ = ["RATE_BITS", "BenchLink", "Wire"]

RATE_BITS = 8
"""Bits of the two numbers of a link's rate."""


class Wire(wiring.Component):
    """Bring every item ``cycles`` cycles later. Simulation only.

    Protocol
    --------
    The input is ready at all times, and so must be whoever takes the output.

    Parameters
    ----------
    shape : shape
        Shape of an item.
    cycles : int
        At least 1.

    Members
    -------
    i, o : In(stream), Out(stream)
        Items.
    """

    simulation_only = True

    def __init__(self, shape: ShapeLike, cycles: int) -> None:
        require_int("cycles", cycles, 1)
        self.shape, self.cycles = shape, cycles
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        """Build a memory that items go around in: shifting them would cost a simulator more than all the rest."""
        m = Module()
        m.submodules.items = items = memory.Memory(
            shape=Shape.cast(self.shape).width, depth=max(2, self.cycles), init=[]
        )
        put, get = items.write_port(), items.read_port(domain="comb")
        place = Signal(range(max(2, self.cycles)))
        there = Signal(self.cycles)
        m.d.sync += [
            place.eq(Mux(place == self.cycles - 1, 0, place + 1)),
            there.eq(Cat(self.i.valid, there)[: self.cycles]),
        ]
        m.d.comb += [
            self.i.ready.eq(1),
            put.addr.eq(place),
            put.data.eq(Value.cast(self.i.payload)),
            put.en.eq(self.i.valid),
            get.addr.eq(place),
            self.o.valid.eq(there[-1]),
            Value.cast(self.o.payload).eq(get.data),
        ]
        return m


class BenchLink(wiring.Component):
    """Take a beat in ``beats`` of ``cycles`` cycles, evenly spread, and bring it later. Simulation only.

    Overview
    --------
    ``beats`` are added up a cycle; whenever ``cycles`` are full, a beat may go. What nobody uses is lost, as on a link.

    Parameters
    ----------
    shape : shape
        Shape of a beat.
    latency : int
        Cycles that a beat is on its way; at least 1.

    Members
    -------
    beats, cycles : In(RATE_BITS)
        The rate; ``beats`` are from 1 to ``cycles``.
    i, o : In(stream), Out(stream)
        Beats.
    offered : Out(32)
        Beats that the link could have taken until now.
    """

    simulation_only = True

    def __init__(self, shape: ShapeLike, latency: int) -> None:
        self.shape, self.latency = shape, latency
        super().__init__(
            {
                "beats": In(RATE_BITS),
                "cycles": In(RATE_BITS),
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "offered": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the sum and place the wire."""
        m = Module()
        m.submodules.wire = wire = Wire(self.shape, self.latency)
        total, rest, free = Signal(RATE_BITS + 1), Signal(RATE_BITS), Signal()
        m.d.comb += [
            total.eq(rest + self.beats),
            free.eq(total >= self.cycles),
            self.i.ready.eq(free),
            wire.i.valid.eq(self.i.valid & free),
            Value.cast(wire.i.payload).eq(Value.cast(self.i.payload)),
        ]
        m.d.sync += [rest.eq(Mux(free, total - self.cycles, total)), self.offered.eq(self.offered + free)]
        wiring.connect(m, wire.o, wiring.flipped(self.o))
        return m
