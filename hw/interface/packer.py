"""The packer: frames of any length fill flits without gaps."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.dma.frames import WORD_BYTES
from hw.dma_params import FlitParams
from hw.interface.check_sum import CheckSum
from hw.interface.layouts import flit_beat_layout, frame_beat_layout
from hw.interface.window import Window

__all__ = ["Packer"]


class Packer(wiring.Component):
    """Lay frames end to end, cut the run into flits, number them and add their check sums.

    Overview
    --------
    What :meth:`golden.dma.flits.FlitFormat.pack` says. Words gather in a window of two beats. A full beat of them goes
    out, fewer in a flit's last beat, which ends with number and check sum. At the end of a run of frames (``flush``)
    the rest of the flit is zeros.

    Protocol
    --------
    Plain ready/valid streams. An input beat carries 1 to ``beat_words`` words; frames may begin and end anywhere in
    beats. The first flit after a reset has number 0. Frames that are not flushed wait for others to fill their flit.

    Timing
    ------
    Flits of two beats of four words, the second with two words of payload; 6 words, then the flush::

        cycle   0   1   2   3
        i       4   2!  .   .
        o       .   .   0   1!

    Latency and throughput
    ----------------------
    2 cycles from the input beat that completes an output beat; an output beat a cycle, in the last ``beat_words - 2``
    words of payload. After a flush a beat is taken in the cycle behind that in which the run's last beat is formed
    (:func:`hw.timing.flits.packer_cycles`).

    Numerics
    --------
    Bytes of the golden model (``tests/hw/test_flits.py``, ``tests/rtl/test_flits.py``).

    Parameters
    ----------
    params : FlitParams
        Format of flits, and bytes of a beat.

    Members
    -------
    i : In(stream of frame_beat_layout)
        Words of frames; those beyond ``count`` are zero.
    o : Out(stream of flit_beat_layout)
        Flits.

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
                "i": In(stream.Signature(frame_beat_layout(params))),
                "o": Out(stream.Signature(flit_beat_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the window, the count of beats, and the check sum."""
        m = Module()
        params = self.params
        word_bits = 8 * WORD_BYTES
        m.submodules.window = window = Window(
            unit_bits=word_bits, beat=params.beat_words, capacity=2 * params.beat_words
        )
        crc = CheckSum(params.beat_bytes)
        m.submodules.crc = crc

        flushing = Signal()
        beat = Signal(range(params.beats))
        number = Signal(16)
        last, go, emptied = Signal(), Signal(), Signal()
        size = Signal.like(window.level)
        content = Signal(8 * params.beat_bytes)
        payload_bits = word_bits * params.last_words
        m.d.comb += [
            last.eq(beat == params.beats - 1),
            size.eq(Mux(last, params.last_words, params.beat_words)),
            go.eq(((window.level >= size) | flushing) & (~self.o.valid | self.o.ready)),
            window.take.eq(Mux(go, Mux(window.level >= size, size, window.level), 0)),
            emptied.eq(go & last & (window.level <= size)),
            self.i.ready.eq(window.room & ~flushing),
            window.add.eq(self.i.valid & self.i.ready),
            window.put.eq(self.i.payload.count),
            window.new.eq(self.i.payload.words),
            content.eq(Mux(last, Cat(Cat(window.units)[:payload_bits], number, Const(0, 16 + 32)), Cat(window.units))),
            crc.data.eq(content),
            crc.valid.eq(go),
            crc.start.eq(go & (beat == 0)),
        ]
        with m.If(window.add & self.i.payload.flush):
            m.d.sync += flushing.eq(1)
        with m.Elif(emptied):
            m.d.sync += flushing.eq(0)

        held = Signal.like(content)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(go):
            m.d.sync += [
                self.o.valid.eq(1),
                held.eq(content),
                self.o.payload.last.eq(last),
                beat.eq(Mux(last, 0, beat + 1)),
                number.eq(number + last),
            ]
        # The check sum of a flit is there in the cycle in which its last beat is.
        m.d.comb += self.o.payload.words.as_value().eq(
            held | Mux(self.o.payload.last, Cat(Const(0, len(held) - 32), crc.crc), 0)
        )
        return m
