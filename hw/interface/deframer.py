"""The deframer: headers and payloads part again."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.dma.frames import WORD_BYTES
from hw.dma_params import FlitParams
from hw.interface.layouts import frame_head_layout, units_layout, unpacked_layout

__all__ = ["Deframer"]


class Deframer(wiring.Component):
    """Give the header of a frame, then its payload in bytes without the zeros that filled its last word.

    Protocol
    --------
    Plain ready/valid streams. A header is taken before its payload begins.

    Latency and throughput
    ----------------------
    1 cycle; a beat a cycle.

    Parameters
    ----------
    params : FlitParams
        Sizes.

    Members
    -------
    i : In(stream of unpacked_layout)
        Frames.
    head : Out(stream of frame_head_layout)
        Headers.
    o : Out(stream of units_layout(8, beat_bytes))
        Payloads; bytes beyond ``count`` are zero, ``last`` ends each.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: FlitParams) -> None:
        if not isinstance(params, FlitParams):
            raise TypeError(f"params must be a FlitParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(unpacked_layout(params))),
                "head": Out(stream.Signature(frame_head_layout())),
                "o": Out(stream.Signature(units_layout(8, params.beat_bytes))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the two registers and the count of bytes left."""
        m = Module()
        left = Signal(16)
        words = self.i.payload.words.as_value()
        head_free, body_free, taken = Signal(), Signal(), Signal()
        last, size = Signal(), Signal(range(self.params.beat_bytes + 1))
        m.d.comb += [
            head_free.eq(~self.head.valid | self.head.ready),
            body_free.eq((~self.o.valid | self.o.ready) & head_free),
            self.i.ready.eq(Mux(self.i.payload.header, head_free, body_free)),
            taken.eq(self.i.valid & self.i.ready),
            last.eq(left <= WORD_BYTES * self.params.beat_words),
            size.eq(Mux(last, left, self.params.beat_bytes)),
        ]
        with m.If(self.head.ready):
            m.d.sync += self.head.valid.eq(0)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(taken & self.i.payload.header):
            m.d.sync += [
                self.head.valid.eq(1),
                self.head.payload.kind.eq(words[:8]),
                self.head.payload.length.eq(words[16:32]),
                self.head.payload.tag.eq(words[32:64]),
                left.eq(words[16:32]),
            ]
        with m.If(taken & ~self.i.payload.header):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.units.as_value().eq(words),
                self.o.payload.count.eq(size),
                self.o.payload.last.eq(last),
                left.eq(left - size),
            ]
        return m
