"""When the banks of a channel are owed a refresh."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_int

__all__ = ["RefreshTimer"]


class RefreshTimer(wiring.Component):
    """Count the refreshes that are owed: one more every ``interval_cycles``, one less for every one given.

    Parameters
    ----------
    interval_cycles : int
        n_refi.

    Members
    -------
    start : In(1)
        Begin, with the first refresh due in ``first_cycles`` from here; nothing is owed before.
    first_cycles : In
        1 to ``interval_cycles``; 0 is no refresh at all.
    done : In(1)
        A refresh command is being issued.
    owed : Out(1)
        At least one is owed.
    """

    start: Signal
    first_cycles: Signal
    done: Signal
    owed: Signal

    def __init__(self, interval_cycles: int) -> None:
        require_int("interval_cycles", interval_cycles, 2)
        self.interval_cycles = interval_cycles
        super().__init__(
            {"start": In(1), "first_cycles": In(range(interval_cycles + 1)), "done": In(1), "owed": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the timer, and the count, which saturates at 15: no sequencer that refreshes between rows sees that."""
        m = Module()
        left = Signal(range(self.interval_cycles + 1))
        count = Signal(4)
        due = Signal()
        m.d.comb += [due.eq(left == 1), self.owed.eq(count != 0)]
        with m.If(self.start):
            m.d.sync += left.eq(self.first_cycles)
        with m.Elif(due):
            m.d.sync += left.eq(self.interval_cycles)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.If(due & ~self.done & ~count.all()):
            m.d.sync += count.eq(count + 1)
        with m.If(~due & self.done):
            m.d.sync += count.eq(count - 1)
        return m
