"""Enable of logic that runs slower than the memory clock."""

from __future__ import annotations

from fractions import Fraction

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from golden.checks import require_type

__all__ = ["ClockEnable"]


class ClockEnable(wiring.Component):
    """Be high in p of every q cycles, as evenly as whole cycles allow: in cycle t if ``(t + 1) * p mod q < p``.

    Parameters
    ----------
    ratio : Fraction
        p/q, above 0 and at most 1.

    Members
    -------
    enable : Out(1)
        The logic's registers take their next values at the end of this cycle.

    Raises
    ------
    TypeError, ValueError
        If the ratio is no Fraction or out of range.
    """

    enable: Signal

    def __init__(self, ratio: Fraction) -> None:
        require_type("ratio", ratio, Fraction)
        if not 0 < ratio <= 1:
            raise ValueError(f"ratio must be above 0 and at most 1, not {ratio}")
        self.ratio = ratio
        super().__init__({"enable": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the accumulator."""
        m = Module()
        part, whole = self.ratio.numerator, self.ratio.denominator
        if part == whole:
            m.d.comb += self.enable.eq(1)
            return m
        phase = Signal(range(whole))
        moved = Signal(range(2 * whole))
        m.d.comb += [moved.eq(phase + part), self.enable.eq(moved >= whole)]
        m.d.sync += phase.eq(moved - self.enable * whole)
        return m
