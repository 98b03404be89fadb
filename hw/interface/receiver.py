"""The receiving side of the DMA's data path: flits become payloads of numbers again."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.dma.frames import Kind
from hw.dma_params import PathParams
from hw.interface.decompressor import Decompressor
from hw.interface.deframer import Deframer
from hw.interface.layouts import (
    acknowledgement_layout,
    decoded_layout,
    flit_beat_layout,
    frame_head_layout,
)
from hw.interface.link_receiver import LinkReceiver
from hw.interface.unpacker import Unpacker

__all__ = ["Receiver"]


class Receiver(wiring.Component):
    """Receive, unpack and decompress payloads.

    Protocol
    --------
    Plain ready/valid streams. The header of a payload is offered with its payload or before it, and the next one when
    it is taken, while its payload may still be leaving. What came in 8 bits leaves in 16.

    Parameters
    ----------
    params : PathParams
        Sizes.

    Members
    -------
    i, acknowledgement, dropped
        Those of :class:`hw.interface.link_receiver.LinkReceiver`.
    head : Out(stream of frame_head_layout)
        Headers as they were sent: ``length`` counts the bytes on the wire.
    o : Out(stream of decoded_layout)
        Payloads of numbers.
    fault : Out(1)
        There was a header that is none (:class:`hw.interface.unpacker.Unpacker`).

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: PathParams) -> None:
        if not isinstance(params, PathParams):
            raise TypeError(f"params must be a PathParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(flit_beat_layout(params.link.flit))),
                "acknowledgement": Out(stream.Signature(acknowledgement_layout(params.link))),
                "dropped": Out(16),
                "head": Out(stream.Signature(frame_head_layout())),
                "o": Out(stream.Signature(decoded_layout(params.compression))),
                "fault": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the units, and the switch around the decompressor."""
        m = Module()
        params = self.params
        m.submodules.receiver = receiver = LinkReceiver(params.link)
        m.submodules.unpacker = unpacker = Unpacker(params.link.flit)
        m.submodules.deframer = deframer = Deframer(params.link.flit)
        m.submodules.decompressor = decompressor = Decompressor(params.compression)
        wiring.connect(m, wiring.flipped(self.i), receiver.i)
        wiring.connect(m, receiver.acknowledgement, wiring.flipped(self.acknowledgement))
        wiring.connect(m, receiver.o, unpacker.i)
        wiring.connect(m, unpacker.o, deframer.i)

        # One payload at a time enters; one in 8 bits may do so while the one before it leaves the decompressor.
        entering, offered, small = Signal(), Signal(), Signal()
        inside = Signal(2)
        entered, left, begin, next_small = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            next_small.eq(deframer.head.payload.kind == Kind.COMPRESSED),
            entered.eq(deframer.o.valid & deframer.o.ready & deframer.o.payload.last),
            left.eq(decompressor.o.valid & decompressor.o.ready & decompressor.o.payload.last),
            begin.eq(deframer.head.valid & deframer.head.ready),
            self.dropped.eq(receiver.dropped),
            self.fault.eq(unpacker.fault),
            deframer.head.ready.eq(~offered & (~entering | entered) & (next_small | (inside == left))),
            self.head.valid.eq(offered),
            decompressor.i.payload.eq(deframer.o.payload),
            decompressor.i.valid.eq(deframer.o.valid & entering & small),
            decompressor.o.ready.eq(self.o.ready),
            deframer.o.ready.eq(entering & Mux(small, decompressor.i.ready, self.o.ready)),
            self.o.valid.eq(Mux(inside != 0, decompressor.o.valid, deframer.o.valid & entering & ~small)),
        ]
        m.d.sync += inside.eq(inside + (begin & next_small) - left)
        with m.If(inside != 0):
            m.d.comb += self.o.payload.eq(decompressor.o.payload)
        with m.Else():
            m.d.comb += [
                self.o.payload.codes.as_value().eq(deframer.o.payload.units.as_value()),
                self.o.payload.last.eq(deframer.o.payload.last),
                self.o.payload.fault.eq(deframer.o.payload.count != params.compression.word_bytes),
            ]
        with m.If(begin):
            m.d.sync += [
                entering.eq(1),
                offered.eq(1),
                small.eq(next_small),
                self.head.payload.eq(deframer.head.payload),
            ]
        with m.Elif(entered):
            m.d.sync += entering.eq(0)
        with m.If(self.head.valid & self.head.ready):
            m.d.sync += offered.eq(0)
        return m
