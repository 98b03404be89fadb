"""The unpacker: frames come out of the payloads of flits again."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.dma.frames import WORD_BYTES, Kind
from hw.dma_params import FlitParams
from hw.interface.layouts import flit_beat_layout, unpacked_layout
from hw.interface.window import Window

__all__ = ["Unpacker"]


class Unpacker(wiring.Component):
    """Find the frames in flits whose check sums and numbers were found right.

    Overview
    --------
    What :meth:`golden.dma.flits.FlitFormat.unpack` says. Words gather in a window of two beats, without the flits'
    trailers. A header goes out in a beat of its own, then the payload in whole beats, the first word of it first. Where
    a frame could begin and a zero stands, the rest of the flit is skipped.

    Protocol
    --------
    Plain ready/valid streams. A header of no known kind, or of no bytes, raises ``fault`` for good and is skipped with
    the rest of its flit: a sender that keeps the rules sends none.

    Timing
    ------
    Beats of four words; a frame of a header and three words, behind it the next::

        cycle   0   1   2   3   4
        i       h h 1 2 . . .   .
                    3 h h 1
        o       .   .   H   3   H

    Latency and throughput
    ----------------------
    2 cycles from the beat that completes a header to the header, the same for a beat of payload. A beat a cycle: a
    frame of n words of payload takes ``1 + ceil(n / beat_words)`` (:func:`hw.timing.flits.unpacker_cycles`), so that
    payloads of many beats leave at the link's rate.

    Parameters
    ----------
    params : FlitParams
        Format of flits, and bytes of a beat.

    Members
    -------
    i : In(stream of flit_beat_layout)
        Flits.
    o : Out(stream of unpacked_layout)
        Frames. Words beyond ``count`` are zero.
    fault : Out(1)
        There was a header that is none.

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
                "i": In(stream.Signature(flit_beat_layout(params))),
                "o": Out(stream.Signature(unpacked_layout(params))),
                "fault": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the window, the place in the flit, and what is left of a frame."""
        m = Module()
        params = self.params
        word_bits = 8 * WORD_BYTES
        m.submodules.window = window = Window(
            unit_bits=word_bits, beat=params.beat_words, capacity=2 * params.beat_words
        )
        payload_words = params.beats * params.beat_words - (params.beat_words - params.last_words)
        words = self.i.payload.words.as_value()
        m.d.comb += [
            self.i.ready.eq(window.room),
            window.add.eq(self.i.valid & window.room),
            window.put.eq(Mux(self.i.payload.last, params.last_words, params.beat_words)),
            window.new.as_value().eq(Mux(self.i.payload.last, words[: word_bits * params.last_words], words)),
        ]

        # Words of the flit in which the window begins, from there on; words of the payload still to come.
        in_flit = Signal(range(payload_words + 1), init=payload_words)
        left = Signal(range((1 << 16) // WORD_BYTES + 1))
        kind, length = window.units[0][:8], window.units[0][16:32]
        known = Cat(kind == known_kind for known_kind in Kind).any()
        head, body, skip, free, skipping = (Signal(name=name) for name in ("head", "body", "skip", "free", "skipping"))
        size, skipped = Signal.like(window.level), Signal.like(window.level)
        final = Signal()
        sound = known & (length != 0)
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            final.eq(left <= params.beat_words),
            size.eq(Mux(final, left, params.beat_words)),
            head.eq((left == 0) & ~skipping & (window.level >= params.header_words) & sound & free),
            body.eq((left != 0) & (window.level >= size) & free),
            skip.eq((left == 0) & (window.level != 0) & (skipping | ~sound)),
            skipped.eq(Mux(in_flit < window.level, in_flit, window.level)),
            window.take.eq(Mux(skip, skipped, Mux(head, params.header_words, Mux(body, size, 0)))),
        ]
        after = Signal(range(payload_words + 1))
        m.d.comb += after.eq(Mux(in_flit > window.take, in_flit - window.take, in_flit - window.take + payload_words))
        m.d.sync += in_flit.eq(after)
        with m.If(skip):
            m.d.sync += skipping.eq(skipped != in_flit)
            with m.If(~skipping & (window.units[0][:8] != 0)):
                m.d.sync += self.fault.eq(1)
        with m.If(head):
            m.d.sync += left.eq((length + WORD_BYTES - 1) >> (WORD_BYTES.bit_length() - 1))
        with m.If(body):
            m.d.sync += left.eq(left - size)

        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(head | body):
            count = Mux(head, params.header_words, size)
            m.d.sync += [
                self.o.valid.eq(1),
                *(
                    self.o.payload.words[place].eq(Mux(place < count, window.units[place], 0))
                    for place in range(params.beat_words)
                ),
                self.o.payload.count.eq(count),
                self.o.payload.header.eq(head),
                self.o.payload.last.eq(body & final),
            ]
        return m
