"""Registers between the memory clock and logic that runs under an enable of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

if TYPE_CHECKING:
    from amaranth.hdl import ShapeLike

__all__ = ["FromLogic", "ToLogic"]


class ToLogic(wiring.Component):
    """Hold an item of one memory cycle until the logic takes it.

    Members
    -------
    valid, payload : In
        An item arrives; it must not while ``free`` is low, except in a cycle in which the last one is taken.
    enable : In(1)
        The logic's registers move in this cycle.
    o : Out(stream)
        To the logic; a transfer counts in cycles of ``enable`` alone.
    free : Out(1)
        There is no item.
    overrun : Out(1)
        An item arrived that had no room, and was lost; stays high.

    Parameters
    ----------
    shape : shape
        Shape of an item.
    """

    def __init__(self, shape: ShapeLike) -> None:
        self.shape = shape
        super().__init__(
            {
                "valid": In(1),
                "payload": In(shape),
                "enable": In(1),
                "o": Out(stream.Signature(shape)),
                "free": Out(1),
                "overrun": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the register."""
        m = Module()
        taken = self.enable & self.o.valid & self.o.ready
        m.d.comb += self.free.eq(~self.o.valid)
        with m.If(taken):
            m.d.sync += self.o.valid.eq(0)
        with m.If(self.valid):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(self.payload)]
            with m.If(self.o.valid & ~taken):
                m.d.sync += self.overrun.eq(1)
        return m


class FromLogic(wiring.Component):
    """Offer an item of the logic in the memory clock; one item in two cycles of the memory clock at most.

    Members
    -------
    i : In(stream)
        From the logic; a transfer counts in cycles of ``enable`` alone.
    enable : In(1)
        The logic's registers move in this cycle.
    o : Out(stream)
        In the memory clock.

    Parameters
    ----------
    shape : shape
        Shape of an item.
    """

    def __init__(self, shape: ShapeLike) -> None:
        self.shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "enable": In(1), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        """Build the register."""
        m = Module()
        full = Signal()
        m.d.comb += [self.o.valid.eq(full), self.i.ready.eq(~full)]
        with m.If(self.o.ready):
            m.d.sync += full.eq(0)
        with m.If(self.enable & self.i.valid & self.i.ready):
            m.d.sync += [full.eq(1), self.o.payload.eq(self.i.payload)]
        return m
