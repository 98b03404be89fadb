"""The compressor: 16-bit numbers become 8-bit ones with a scale a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from golden.dma.compression import RAW_SCALE
from hw.dma_params import CompressionParams
from hw.interface.layouts import bytes_layout, numbers_layout

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Compressor"]

_MAGNITUDE_BITS = 7


class Compressor(wiring.Component):
    """Encode payloads of 16-bit floats as blocks of 8-bit integers.

    Overview
    --------
    What :class:`golden.dma.compression.BlockCompression` says. The scale of a block depends on its largest number, so
    a block waits in a buffer until its last beat is in; the scale goes out in front of its first beat. A block with an
    infinity or a NaN goes out as it came, behind the scale 255.

    Protocol
    --------
    Plain ready/valid streams. A payload is one or more beats and ends with ``last``; every payload begins a block. The
    bytes of a payload are those of its output beats, one behind the other, and its last output beat has ``last``.

    Timing
    ------
    Two beats a block; payload A of three beats, payload B of one::

        cycle   0   1   2   3   4   5   6
        i       A0  A1  A2  B   .   .   .
        o       .   .   .   A0  A1  A2  B

    Latency and throughput
    ----------------------
    ``min(beats, block / lanes) + 1`` cycles from the first beat of a payload into an idle unit to its first output
    beat, then a beat a cycle; a beat a cycle is taken as long as the output is (:mod:`hw.timing.compression`).

    Numerics
    --------
    Round to nearest even, saturated to 127: bit for bit the golden model (``tests/rtl/test_compression.py``), whose
    docstring bounds the error by 1/128 of the block's largest number.

    Parameters
    ----------
    params : CompressionParams
        Format, block and lanes.

    Members
    -------
    i : In(stream of numbers_layout)
        Payloads.
    o : Out(stream of bytes_layout)
        Their bytes: ``lanes`` or ``2 * lanes`` of them, one more in a block's first beat. Bytes beyond ``count`` are
        zero.

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
            {"i": In(stream.Signature(numbers_layout(params))), "o": Out(stream.Signature(bytes_layout(params)))}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the buffer, the search for the largest number, and the lanes."""
        m = Module()
        params = self.params
        fmt = params.compression.fmt
        # One beat more than a block waits while the block goes out, and a FIFO has its word a cycle late.
        depth = params.block_beats + 2
        beats_layout = data.StructLayout({"codes": data.ArrayLayout(16, params.lanes), "ends": 1, "last": 1})
        m.submodules.beats = beats = SyncFIFO(width=beats_layout.size, depth=depth)
        m.submodules.scales = scales = SyncFIFO(width=8, depth=depth)

        taken = Signal()
        beat = Signal(range(params.block_beats))
        ends = Signal()
        largest = Signal(fmt.bits - 1)
        largest_now = Signal.like(largest)
        entry = Signal(beats_layout)
        m.d.comb += [
            self.i.ready.eq(beats.w_rdy & scales.w_rdy),
            taken.eq(self.i.valid & self.i.ready),
            ends.eq(self.i.payload.last | (beat == params.block_beats - 1)),
            largest_now.eq(_largest([largest, *(code[: fmt.bits - 1] for code in self.i.payload.codes)])),
            entry.codes.eq(self.i.payload.codes),
            entry.ends.eq(ends),
            entry.last.eq(self.i.payload.last),
            beats.w_data.eq(entry),
            beats.w_en.eq(taken),
            scales.w_data.eq(self._scale(largest_now)),
            scales.w_en.eq(taken & ends),
        ]
        with m.If(taken):
            m.d.sync += [beat.eq(Mux(ends, 0, beat + 1)), largest.eq(Mux(ends, 0, largest_now))]

        first = Signal(init=1)
        out = Signal(beats_layout)
        go = Signal()
        m.d.comb += [
            out.eq(beats.r_data),
            go.eq(beats.r_rdy & scales.r_rdy & (~self.o.valid | self.o.ready)),
            beats.r_en.eq(go),
            scales.r_en.eq(go & out.ends),
        ]
        scale = scales.r_data
        raw = scale == RAW_SCALE
        small = Cat(self._quantise(code, scale) for code in out.codes)
        content = Mux(raw, out.codes.as_value(), small)
        count = Mux(raw, 2 * params.lanes, params.lanes)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(go):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.units.as_value().eq(Mux(first, Cat(scale, content), content)),
                self.o.payload.count.eq(count + first),
                self.o.payload.last.eq(out.last),
                first.eq(out.ends),
            ]
        return m

    def _scale(self, largest: Value) -> Value:
        """Return the scale of a block whose largest magnitude has the code ``largest``."""
        fmt = self.params.compression.fmt
        fraction_bits = fmt.significand_bits
        exponent = largest[fraction_bits:]
        # A normal number has significand_bits + exponent bits, counted in smallest subnormals; 7 of them are kept.
        scale: Value = exponent + fraction_bits - _MAGNITUDE_BITS
        subnormal: Value = Const(0, 8)
        for bit in range(_MAGNITUDE_BITS, fraction_bits):
            subnormal = Mux(largest[bit], bit + 1 - _MAGNITUDE_BITS, subnormal)
        return Mux(exponent == fmt.exponent_mask, RAW_SCALE, Mux(exponent == 0, subnormal, scale))[:8]

    def _quantise(self, code: Value, scale: Value) -> Value:
        """Return the 8-bit code of a number: its integer over ``2^scale``, rounded."""
        fmt = self.params.compression.fmt
        fraction_bits = fmt.significand_bits
        exponent = code[fraction_bits : fmt.bits - 1]
        significand = Cat(code[:fraction_bits], exponent != 0)
        # Never negative: no number of a block is larger than the one that the scale is made for.
        distance = (scale - Mux(exponent == 0, 0, exponent - 1))[:8]
        below = fraction_bits + 2
        shift = Mux(distance > below, below, distance)
        fixed = (Cat(Const(0, below), significand) >> shift)[: fraction_bits + 1 + below]
        whole, guard, sticky = fixed[below:], fixed[below - 1], fixed[: below - 1].any()
        rounded = whole + (guard & (sticky | whole[0]))
        saturated = Mux(rounded >> _MAGNITUDE_BITS, (1 << _MAGNITUDE_BITS) - 1, rounded)
        return Cat(saturated[:_MAGNITUDE_BITS], code[fmt.bits - 1])


def _largest(terms: Sequence[Value]) -> Value:
    """Return the largest of unsigned numbers, by a tree."""
    if len(terms) == 1:
        return terms[0]
    pairs = [Mux(a > b, a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
    return _largest([*pairs, *terms[len(pairs) * 2 :]])
