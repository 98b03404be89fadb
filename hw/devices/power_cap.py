"""Limit of the rate at which columns are read, for a device that is short of power."""

from __future__ import annotations

from fractions import Fraction

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_int, require_type

__all__ = ["PowerCap"]


class PowerCap(wiring.Component):
    """Grant one column every ``period`` cycles on average, and up to ``burst_columns`` at once after a pause.

    A token bucket: it fills by one token in ``period`` cycles and holds ``burst_columns``. In any W cycles no more
    than ``W / period + burst_columns`` columns are granted. The bucket is full after reset.

    Parameters
    ----------
    period : Fraction
        Cycles a column, at least 1; kept exactly, with its denominator as the unit of account.
    burst_columns : int
        Columns that may follow each other at the pace of the memory; at least 2, for a bucket of one token would lose
        the part of a period that is no whole cycle.

    Members
    -------
    take : In(1)
        A column is being read; only while ``ready`` is high.
    ready : Out(1)
        A column may be read in this cycle.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of another type or out of range.
    """

    take: Signal
    ready: Signal

    def __init__(self, period: Fraction, burst_columns: int) -> None:
        require_type("period", period, Fraction)
        if period < 1:
            raise ValueError(f"period must be at least 1 cycle, not {period}")
        require_int("burst_columns", burst_columns, 2)
        self.period = period
        self.burst_columns = burst_columns
        super().__init__({"take": In(1), "ready": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the bucket."""
        m = Module()
        price, income = self.period.numerator, self.period.denominator
        full = price * self.burst_columns
        credit = Signal(range(full + 1), init=full)
        paid = Signal(range(full + income + 1))
        m.d.comb += [
            self.ready.eq(credit >= price),
            paid.eq(credit + income - Mux(self.take, price, 0)),
        ]
        m.d.sync += credit.eq(Mux(paid > full, full, paid))
        return m
