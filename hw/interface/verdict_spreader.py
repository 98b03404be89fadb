"""Frames of verdicts, taken apart again."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.dma_engine_params import DmaParams
from hw.interface.dma_layouts import arrival_layout

__all__ = ["VerdictSpreader"]


class VerdictSpreader(wiring.Component):
    """Give the verdicts of :class:`hw.interface.verdict_collector.VerdictCollector`, one by one.

    Protocol
    --------
    Plain ready/valid streams. A frame is one beat; its tag is the number of verdicts in it.

    Latency and throughput
    ----------------------
    1 cycle; a verdict a cycle, one more a frame.

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    i : In(stream of arrival_layout)
        Frames.
    o : Out(stream of unsigned)
        Verdicts.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: DmaParams) -> None:
        require_type("params", params, DmaParams)
        self.params = params
        super().__init__({"i": In(stream.Signature(arrival_layout(params))), "o": Out(stream.Signature(4))})

    def elaborate(self, platform: object) -> Module:
        """Build the shift register."""
        m = Module()
        rest = Signal(4 * self.params.verdicts)
        count = Signal(range(self.params.verdicts + 1))
        m.d.comb += [self.i.ready.eq(count == 0), self.o.valid.eq(count != 0), self.o.payload.eq(rest[:4])]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [rest.eq(self.i.payload.codes.as_value()), count.eq(self.i.payload.tag)]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [rest.eq(rest >> 4), count.eq(count - 1)]
        return m
