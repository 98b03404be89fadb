"""The framer: payloads get the header that says how long they are."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from golden.dma.frames import WORD_BYTES
from hw.dma_params import PathParams
from hw.interface.layouts import bytes_layout, frame_beat_layout, frame_command_layout
from hw.interface.window import Window

__all__ = ["Framer"]


class Framer(wiring.Component):
    """Put a header in front of each payload.

    Overview
    --------
    The words of :meth:`golden.dma.frames.Frame.to_bytes`. How many bytes a compressed payload has is known with its
    last, so a payload waits in a buffer until then, while the one before it leaves. Zeros fill its last word.

    Protocol
    --------
    Plain ready/valid streams. One command a payload, in the same order; a payload has no more than ``payload_beats``
    beats of numbers, which the buffer holds in any form. The frame's last beat carries the command's ``flush``.

    Latency and throughput
    ----------------------
    A beat a cycle on either side; a frame takes one beat more than its payload. The header leaves 4 cycles behind the
    payload's last beat of bytes, or 5 where two beats of words are left with it.

    Parameters
    ----------
    params : PathParams
        Sizes.

    Members
    -------
    command : In(stream of frame_command_layout)
        Kind, tag and flush of each frame.
    i : In(stream of bytes_layout)
        Payloads.
    o : Out(stream of frame_beat_layout)
        Frames.

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
                "i": In(stream.Signature(bytes_layout(params.compression))),
                "o": Out(stream.Signature(frame_beat_layout(params.link.flit))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the window that makes beats of words, the buffer, and the way out."""
        m = Module()
        params, flit = self.params, self.params.link.flit
        beat_bytes = flit.beat_bytes
        m.submodules.window = window = Window(unit_bits=8, beat=beat_bytes + 1, capacity=2 * beat_bytes + 1)
        words_layout = data.StructLayout({"words": 8 * beat_bytes, "count": range(flit.beat_words + 1), "last": 1})
        # While a frame leaves, the next one gathers.
        depth = 2 * params.buffer_beats
        m.submodules.words = words = SyncFIFOBuffered(width=words_layout.size, depth=depth)
        m.submodules.lengths = lengths = SyncFIFOBuffered(width=16, depth=depth)

        ending, finish, go = Signal(), Signal(), Signal()
        length = Signal(16)
        entry = Signal(words_layout)
        m.d.comb += [
            self.i.ready.eq(window.room & ~ending),
            window.add.eq(self.i.valid & self.i.ready),
            window.put.eq(self.i.payload.count),
            window.new.eq(self.i.payload.units),
            go.eq(((window.level >= beat_bytes) | (ending & (window.level != 0))) & words.w_rdy & lengths.w_rdy),
            window.take.eq(Mux(go, Mux(window.level >= beat_bytes, beat_bytes, window.level), 0)),
            finish.eq(go & ending & (window.level <= beat_bytes)),
            entry.words.eq(Cat(window.units)),
            entry.count.eq((window.take + WORD_BYTES - 1) >> (WORD_BYTES.bit_length() - 1)),
            entry.last.eq(finish),
            words.w_data.eq(entry),
            words.w_en.eq(go),
            lengths.w_data.eq(length + window.take),
            lengths.w_en.eq(finish),
        ]
        with m.If(go):
            m.d.sync += length.eq(Mux(finish, 0, length + window.take))
        with m.If(window.add & self.i.payload.last):
            m.d.sync += ending.eq(1)
        with m.Elif(finish):
            m.d.sync += ending.eq(0)

        in_body, free, head, body = (Signal(name=name) for name in ("in_body", "free", "head", "body"))
        out = Signal(words_layout)
        told = self.command.payload
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            head.eq(free & ~in_body & lengths.r_rdy & self.command.valid),
            body.eq(free & in_body & words.r_rdy),
            out.eq(words.r_data),
            words.r_en.eq(body),
            lengths.r_en.eq(head),
            self.command.ready.eq(body & out.last),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(head):
            m.d.sync += [
                in_body.eq(1),
                self.o.valid.eq(1),
                self.o.payload.words.as_value().eq(Cat(told.kind, Const(0, 8), lengths.r_data, told.tag)),
                self.o.payload.count.eq(flit.header_words),
                self.o.payload.flush.eq(0),
            ]
        with m.If(body):
            m.d.sync += [
                in_body.eq(~out.last),
                self.o.valid.eq(1),
                self.o.payload.words.as_value().eq(out.words),
                self.o.payload.count.eq(out.count),
                self.o.payload.flush.eq(out.last & told.flush),
            ]
        return m
