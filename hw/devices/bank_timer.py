"""What one bank, of the same number in every bank group, is ready for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.devices.spacing import Spacing
from hw.memory.rules import distance

if TYPE_CHECKING:
    from amaranth.hdl import Value

    from hw.memory.timing import DramTiming

__all__ = ["BankTimer"]

_COMMANDS = {"activate": "ACTSB", "read": "MACSB", "write": "WR", "close": "PRESB", "refresh": "REFAB"}


class BankTimer(wiring.Component):
    """Keep the distances between the commands to one bank, and whether a row of it is open.

    The distances are those of :func:`hw.memory.rules.distance` between commands that meet in a bank, where they are
    longer than between banks of a group: those are the sequencer's to keep.

    Parameters
    ----------
    timing : DramTiming
        The memory.

    Members
    -------
    activate, read, write, close : In(1)
        The command reaches this bank in this cycle.
    is_open : Out(1)
        A row is open, from the cycle after its activation to that of its precharge.
    may_activate, may_read, may_write, may_close, may_refresh : Out(1)
        Those before it are far enough away, whatever ``is_open`` says.
    """

    activate: Signal
    read: Signal
    write: Signal
    close: Signal
    is_open: Signal
    may_activate: Signal
    may_read: Signal
    may_write: Signal
    may_close: Signal
    may_refresh: Signal

    def __init__(self, timing: DramTiming) -> None:
        self.timing = timing
        super().__init__(
            {name: In(1) for name in _COMMANDS if name != "refresh"}
            | {"is_open": Out(1)}
            | {f"may_{name}": Out(1) for name in _COMMANDS}
        )

    def elaborate(self, platform: object) -> Module:
        """Build a counter for every pair of commands that a bank keeps further apart than its bank group does."""
        m = Module()
        for after, command in _COMMANDS.items():
            found: list[Value] = []
            for before in ("activate", "read", "write", "close"):
                cycles = distance(self.timing, _COMMANDS[before], command)
                if cycles > distance(self.timing, _COMMANDS[before], command, "bankgroup"):
                    m.submodules[f"{before}_{after}"] = spacing = Spacing(cycles)
                    m.d.comb += spacing.event.eq(getattr(self, before))
                    found.append(spacing.ready)
            m.d.comb += getattr(self, f"may_{after}").eq(Cat(*found).all())
        m.d.sync += self.is_open.eq((self.is_open | self.activate) & ~self.close)
        return m
