"""A window on a run of units: beats of any number are put in behind, any number is taken from the front."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_int

__all__ = ["Window"]


class Window(wiring.Component):
    """The next ``capacity`` units of a run, a shift register with variable shifts.

    Protocol
    --------
    No stream, but the inside of units that are. In a cycle ``take`` units leave from the front, at most ``level``; then
    ``put`` units are added behind if ``add`` is high, which it must be only while ``room`` is. ``room`` says whether
    ``beat`` units have room behind what stays, so it depends on ``take``. ``units`` beyond ``level`` are zero.

    Parameters
    ----------
    unit_bits, beat, capacity : int
        Bits of a unit, most units that are added at once, and units held.

    Members
    -------
    add : In(1); put : In(range); new : In(ArrayLayout)
        Units to add, those beyond ``put`` zero.
    take : In(range)
        Units that leave.
    level : Out(range); units : Out(ArrayLayout)
        Units held.
    room : Out(1)
        A beat may be added.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or below 1, or the capacity less than a beat.
    """

    def __init__(self, *, unit_bits: int, beat: int, capacity: int) -> None:
        require_int("unit_bits", unit_bits, 1)
        require_int("beat", beat, 1)
        require_int("capacity", capacity, beat)
        self.unit_bits, self.beat, self.capacity = unit_bits, beat, capacity
        super().__init__(
            {
                "add": In(1),
                "put": In(range(beat + 1)),
                "new": In(data.ArrayLayout(unit_bits, beat)),
                "take": In(range(capacity + 1)),
                "level": Out(range(capacity + 1)),
                "units": Out(data.ArrayLayout(unit_bits, capacity)),
                "room": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the register and its two shifters."""
        m = Module()
        kept = Signal(range(self.capacity + 1))
        bits = self.unit_bits * self.capacity
        shifted = Signal(bits)
        m.d.comb += [
            kept.eq(self.level - self.take),
            self.room.eq(kept <= self.capacity - self.beat),
            shifted.eq(self.units.as_value() >> (self.take * self.unit_bits)),
        ]
        added = (self.new.as_value() << (kept * self.unit_bits))[:bits]
        m.d.sync += [
            self.units.as_value().eq(shifted | Mux(self.add, added, 0)),
            self.level.eq(kept + Mux(self.add, self.put, 0)),
        ]
        return m
