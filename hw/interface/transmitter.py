"""The sending side of the DMA's data path: payloads of numbers become flits on a link."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from golden.dma.frames import Kind
from hw.dma_params import PathParams
from hw.interface.compressor import Compressor
from hw.interface.framer import Framer
from hw.interface.layouts import (
    acknowledgement_layout,
    flit_beat_layout,
    frame_command_layout,
    numbers_layout,
)
from hw.interface.link_sender import LinkSender
from hw.interface.packer import Packer

__all__ = ["COMMANDS", "Transmitter"]

COMMANDS = 8
"""Payloads that may be on the way between the input and the link."""


class Transmitter(wiring.Component):
    """Compress, frame, pack and send payloads.

    Overview
    --------
    A command says of each payload whether it goes as it is (:attr:`golden.dma.frames.Kind.RAW`, STATE) or in 8 bits
    (COMPRESSED), and gives the tag that arrives with it. Payloads keep their order whichever way they take.

    Protocol
    --------
    Plain ready/valid streams. A command is taken before its payload; up to ``COMMANDS`` payloads are on the way.

    Parameters
    ----------
    params : PathParams
        Sizes.

    Members
    -------
    command : In(stream of frame_command_layout)
        One a payload.
    i : In(stream of numbers_layout)
        Payloads.
    o, acknowledgement, again, down
        Those of :class:`hw.interface.link_sender.LinkSender`.

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
                "command": In(stream.Signature(frame_command_layout())),
                "i": In(stream.Signature(numbers_layout(params.compression))),
                "o": Out(stream.Signature(flit_beat_layout(params.link.flit))),
                "acknowledgement": In(stream.Signature(acknowledgement_layout(params.link))),
                "again": Out(16),
                "down": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the units and the two switches, at the compressor's ends."""
        m = Module()
        params = self.params
        m.submodules.compressor = compressor = Compressor(params.compression)
        m.submodules.framer = framer = Framer(params)
        m.submodules.packer = packer = Packer(params.link.flit)
        m.submodules.sender = sender = LinkSender(params.link)
        width = frame_command_layout().size
        # The same commands for the switch in front of the compressor, the one behind it, and the framer.
        names = ("enter", "leave", "frame")
        enter, leave, frame = queues = [SyncFIFO(width=width, depth=COMMANDS) for _ in names]
        for name, queue in zip(names, queues, strict=True):
            m.submodules[f"commands_{name}"] = queue
            m.d.comb += [queue.w_data.eq(self.command.payload), queue.w_en.eq(self.command.valid & self.command.ready)]
        m.d.comb += self.command.ready.eq(Cat(queue.w_rdy for queue in queues).all())

        small_in, small_out = Signal(), Signal()
        m.d.comb += [
            small_in.eq(enter.r_data[:8] == Kind.COMPRESSED),
            small_out.eq(leave.r_data[:8] == Kind.COMPRESSED),
            compressor.i.payload.eq(self.i.payload),
            compressor.i.valid.eq(self.i.valid & enter.r_rdy & small_in),
            enter.r_en.eq(self.i.valid & self.i.ready & self.i.payload.last),
        ]
        # A raw payload passes by, in the cycles in which it is its turn behind the compressor too.
        plain = Signal()
        m.d.comb += [
            plain.eq(enter.r_rdy & ~small_in & leave.r_rdy & ~small_out & (enter.level == leave.level)),
            self.i.ready.eq(enter.r_rdy & Mux(small_in, compressor.i.ready, plain & framer.i.ready)),
            compressor.o.ready.eq(framer.i.ready & leave.r_rdy & small_out),
            framer.i.valid.eq(Mux(small_out, compressor.o.valid & leave.r_rdy, self.i.valid & plain)),
            leave.r_en.eq(framer.i.valid & framer.i.ready & framer.i.payload.last),
        ]
        with m.If(small_out):
            m.d.comb += framer.i.payload.eq(compressor.o.payload)
        with m.Else():
            m.d.comb += [
                framer.i.payload.units.as_value().eq(Cat(self.i.payload.codes.as_value(), Const(0, 8))),
                framer.i.payload.count.eq(params.compression.word_bytes),
                framer.i.payload.last.eq(self.i.payload.last),
            ]
        m.d.comb += [
            framer.command.payload.as_value().eq(frame.r_data),
            framer.command.valid.eq(frame.r_rdy),
            frame.r_en.eq(framer.command.ready),
            self.again.eq(sender.again),
            self.down.eq(sender.down),
        ]
        wiring.connect(m, framer.o, packer.i)
        wiring.connect(m, packer.o, sender.i)
        wiring.connect(m, sender.o, wiring.flipped(self.o))
        wiring.connect(m, wiring.flipped(self.acknowledgement), sender.acknowledgement)
        return m
