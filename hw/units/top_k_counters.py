"""Counters of digits in Amaranth: a histogram of as many digits a cycle as there are lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

if TYPE_CHECKING:
    from amaranth.hdl import Value

    from hw.top_k_params import TopKShardParams

__all__ = ["DigitCounters"]


class DigitCounters(wiring.Component):
    """Histogram of the digits of a shard's keys, for :class:`hw.units.top_k_shard.TopKShard`.

    Overview
    --------
    ``bins[d]`` grows by the number of lanes whose ``hits`` is high and whose digit is d. A digit has few values, so
    that a bin is a register and a count of ones over the lanes: no memory whose words several lanes could want at once.

    Protocol
    --------
    Lanes count in every cycle. ``clear`` sets all bins to zero; it must be low while ``busy`` or ``row`` is high.
    ``turn`` hands each bin's count to the next higher one and the highest one's to the lowest; after ``2**digit_bits``
    turns all are where they were, and ``top`` has shown them from the highest down.

    Timing
    ------
    A count is in its bin three cycles after its lane (one register for hits and digits, one for the ones of each bin);
    ``busy`` is high in the first of the two cycles between. One row of lanes a cycle.

    Parameters
    ----------
    params : TopKShardParams
        Sizes.

    Members
    -------
    row : In(1)
        Lanes are looked at, whether one counts or none.
    hits : In(lanes)
        Lanes that count; none while ``row`` is low.
    digits : In(ArrayLayout(digit_bits, lanes))
        Their digits.
    clear, turn : In(1)
        As above.
    top : Out(count_bits)
        The highest bin.
    pick : In(digit_bits)
        A digit.
    picked : Out(count_bits)
        Its bin, in the same cycle.
    busy : Out(1)
        ``row`` was high in the last cycle.
    """

    def __init__(self, params: TopKShardParams) -> None:
        self.params = params
        super().__init__(
            {
                "row": In(1),
                "hits": In(params.lanes),
                "digits": In(data.ArrayLayout(params.digit_bits, params.lanes)),
                "clear": In(1),
                "turn": In(1),
                "top": Out(params.count_bits),
                "pick": In(params.digit_bits),
                "picked": Out(params.count_bits),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the registers and, for each bin, the count of ones."""
        m = Module()
        params = self.params
        hits = Signal(params.lanes)
        digits = Signal(data.ArrayLayout(params.digit_bits, params.lanes))
        m.d.sync += [self.busy.eq(self.row), hits.eq(self.hits), digits.eq(self.digits)]

        bins = [Signal(params.count_bits, name=f"bin_{value}") for value in range(params.bins)]
        for value, count in enumerate(bins):
            ones = Signal(range(params.lanes + 1), name=f"ones_{value}")
            m.d.sync += ones.eq(_count_ones([hits[lane] & (digits[lane] == value) for lane in range(params.lanes)]))
            with m.If(self.clear):
                m.d.sync += count.eq(0)
            with m.Elif(self.turn):
                m.d.sync += count.eq(bins[value - 1])
            with m.Else():
                m.d.sync += count.eq(count + ones)
        m.d.comb += [self.top.eq(bins[-1]), self.picked.eq(Array(bins)[self.pick])]
        return m


def _count_ones(bits: list[Value]) -> Value:
    """Return the number of ones, by a tree."""
    counts = bits
    while len(counts) > 1:
        counts = [first + second for first, second in zip(counts[0::2], counts[1::2], strict=True)]
    return counts[0]
