"""Minimum distance between two events, in cycles: a fixed one, or one that the first event tells."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_int

__all__ = ["Pace", "Spacing"]


class Spacing(wiring.Component):
    """Say from when on an event may follow another: an event in cycle t makes ``ready`` low up to t + cycles - 1.

    An event that comes while ``ready`` is low starts the wait anew.

    Parameters
    ----------
    cycles : int
        Distance; 1 is the next cycle.

    Members
    -------
    event : In(1)
        The first event.
    ready : Out(1)
        The second may come in this cycle; high after reset.
    """

    event: Signal
    ready: Signal

    def __init__(self, cycles: int) -> None:
        require_int("cycles", cycles, 1)
        self.cycles = cycles
        super().__init__({"event": In(1), "ready": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the counter."""
        m = Module()
        left = Signal(range(self.cycles))
        m.d.comb += self.ready.eq(left == 0)
        with m.If(self.event):
            m.d.sync += left.eq(self.cycles - 1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return m


class Pace(wiring.Component):
    """Say from when on an event may follow one that named its distance; else as :class:`Spacing`.

    Parameters
    ----------
    most_cycles : int
        Largest distance.

    Members
    -------
    event : In(1)
        The first event.
    cycles : In(range(most_cycles + 1))
        Distance of the next one from it, at least 1.
    ready : Out(1)
        The second may come in this cycle; high after reset.
    """

    event: Signal
    cycles: Signal
    ready: Signal

    def __init__(self, most_cycles: int) -> None:
        require_int("most_cycles", most_cycles, 1)
        self.most_cycles = most_cycles
        super().__init__({"event": In(1), "cycles": In(range(most_cycles + 1)), "ready": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the counter."""
        m = Module()
        left = Signal(range(self.most_cycles))
        m.d.comb += self.ready.eq(left == 0)
        with m.If(self.event):
            m.d.sync += left.eq(self.cycles - 1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return m
