"""The decompressor: blocks of 8-bit numbers become 16-bit ones again."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.dma.compression import RAW_SCALE
from hw.dma_params import CompressionParams
from hw.interface.layouts import decoded_layout, units_layout
from hw.interface.window import Window

__all__ = ["Decompressor"]

_MAGNITUDE_BITS = 7


class Decompressor(wiring.Component):
    """Decode the payloads that :class:`hw.interface.compressor.Compressor` encodes.

    Overview
    --------
    What :meth:`golden.dma.compression.BlockCompression.decode` says. Bytes come in beats of any number and gather in a
    window; once a beat of numbers is there, with the scale in front where a block begins, it goes out.

    Protocol
    --------
    Plain ready/valid streams. A payload's bytes end with the beat that has ``last``, which carries at least one. Where
    they end inside a beat of numbers they are no payload: what is left of it is given up, and its last beat has
    ``fault`` and zeros.

    Latency and throughput
    ----------------------
    2 cycles from the input beat that completes a beat of numbers to its output. A beat of numbers a cycle, but no
    more bytes than a beat a cycle come in: a raw block waits a cycle for its scale
    (:func:`hw.timing.compression.decompressor_cycles`).

    Numerics
    --------
    Exact. Bit for bit the golden model (``tests/rtl/test_compression.py``).

    Parameters
    ----------
    params : CompressionParams
        Format, block and lanes.

    Members
    -------
    i : In(stream of units_layout(8, 2 * lanes))
        Bytes; those beyond ``count`` are zero.
    o : Out(stream of decoded_layout)
        Numbers.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: CompressionParams) -> None:
        if not isinstance(params, CompressionParams):
            raise TypeError(f"params must be a CompressionParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(units_layout(8, params.word_bytes))),
                "o": Out(stream.Signature(decoded_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the window, the count of what is left of a payload, and the lanes."""
        m = Module()
        params = self.params
        lanes, word_bytes = params.lanes, params.word_bytes
        m.submodules.window = window = Window(unit_bits=8, beat=word_bytes, capacity=2 * word_bytes + 1)

        # Bytes in the window up to the end of the payload that is decoded, once that end is in.
        ending = Signal()
        left = Signal.like(window.level)
        beat = Signal(range(params.block_beats))
        scale = Signal(8)
        first, scale_now, raw = Signal(), Signal(8), Signal()
        need, there = Signal.like(window.level), Signal.like(window.level)
        whole, broken, last, go, finish, add = (
            Signal(name=name) for name in ("whole", "broken", "last", "go", "finish", "add")
        )
        m.d.comb += [
            first.eq(beat == 0),
            scale_now.eq(Mux(first, window.units[0], scale)),
            raw.eq(scale_now == RAW_SCALE),
            need.eq(Mux(raw, word_bytes, lanes) + first),
            there.eq(Mux(ending, left, window.level)),
            whole.eq(there >= need),
            broken.eq(ending & ~whole),
            last.eq(ending & (there <= need)),
            go.eq((whole | broken) & (~self.o.valid | self.o.ready)),
            finish.eq(go & last),
            window.take.eq(Mux(go, Mux(broken, there, need), 0)),
            # The end of a second payload waits until that of the first is decoded.
            self.i.ready.eq(window.room & ~(ending & self.i.payload.last & ~finish)),
            add.eq(self.i.valid & self.i.ready),
            window.add.eq(add),
            window.put.eq(self.i.payload.count),
            window.new.eq(self.i.payload.units),
        ]
        with m.If(add & self.i.payload.last):
            m.d.sync += [ending.eq(1), left.eq(window.level - window.take + self.i.payload.count)]
        with m.Else():
            m.d.sync += left.eq(left - window.take)
            with m.If(finish):
                m.d.sync += ending.eq(0)

        content = Cat(window.units)
        content = Mux(first, content[8:], content)[: 16 * lanes]
        small = Cat(self._expand(content[8 * lane :][:8], scale_now) for lane in range(lanes))
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(go):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.codes.as_value().eq(Mux(broken, 0, Mux(raw, content, small))),
                self.o.payload.last.eq(last),
                self.o.payload.fault.eq(broken),
                beat.eq(Mux(last | (beat == params.block_beats - 1), 0, beat + 1)),
                scale.eq(scale_now),
            ]
        return m

    def _expand(self, code: Value, scale: Value) -> Value:
        """Return the number of an 8-bit code: ``code * 2^scale`` smallest subnormals."""
        fmt = self.params.compression.fmt
        fraction_bits = fmt.significand_bits
        magnitude = code[:_MAGNITUDE_BITS]
        length: Value = Const(0, 3)
        for bit in range(_MAGNITUDE_BITS):
            length = Mux(magnitude[bit], bit + 1, length)
        # Bits of the number, of which a normal one has more than the fraction.
        total = scale + length
        normal = total > fraction_bits
        exponent = Mux(normal, total - fraction_bits, 0)[: fmt.exponent_bits]
        # A normal number's leading bit is hidden; a subnormal's shift is the scale, as its exponent counts as 1.
        shift = Mux(normal, (fraction_bits + 1 - length)[:4], scale[:4])
        fraction = (magnitude << shift)[:fraction_bits]
        return Mux(magnitude == 0, 0, Cat(fraction, exponent))[: fmt.bits - 1] | (code[-1] << (fmt.bits - 1))
