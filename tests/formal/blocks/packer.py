"""The packer: words of frames fill flits in order, zeros only behind a flush, flits numbered and whole."""

from __future__ import annotations

from amaranth.hdl import Array, Const, Mux, Signal

from golden.dma.flits import FlitFormat
from golden.dma.frames import WORD_BYTES
from hw.dma_params import FlitParams
from hw.interface.packer import Packer
from tests.formal.bench import Bench
from tests.formal.blocks.link_parts import Oracle, WithOracle
from tests.formal.proofs import Proof
from tests.formal.scoreboard import in_order

__all__ = ["FLIT", "PROOF"]

FLIT = FlitParams(flits=FlitFormat(24), beat_bytes=12)
"""Flits of two beats of three words, the last with one word of payload."""


def bench(unit: type = Packer) -> Bench:
    """Give any words, and say where a run ends; a flush counts as the zeros that fill its flit."""
    packer, oracle = unit(FLIT), Oracle(FLIT)
    result = Bench(WithOracle(packer, oracle))
    m = result.m
    check_sum = result.free("check_sum", 32)
    with m.If(oracle.valid):
        m.d.sync += oracle.crc.eq(check_sum)
    i, o = result.source("i", packer.i), result.sink("o", packer.o)
    words = FLIT.beat_words
    result.assume(~i.valid | ((i.payload.count != 0) & (i.payload.count <= words)))
    for place in range(words):
        result.assume(~i.valid | (place < i.payload.count) | (i.payload.words[place] == 0))
    in_flit = (FLIT.beats - 1) * words + FLIT.last_words
    used, after, filled = Signal(range(in_flit)), Signal(range(in_flit + words)), Signal(range(in_flit))
    total = used + i.payload.count
    m.d.comb += [
        after.eq(Mux(total >= in_flit, total - in_flit, total)),
        filled.eq(Mux(i.payload.flush & (after != 0), in_flit - after, 0)),
    ]
    with m.If(i.go):
        m.d.sync += used.eq(Mux(i.payload.flush, 0, after))
    beat, number = Signal(range(FLIT.beats)), Signal(16)
    last = beat == FLIT.beats - 1
    with m.If(o.go):
        m.d.sync += [beat.eq(Mux(last, 0, beat + 1)), number.eq(number + last)]
    lanes = words + in_flit - 1
    # What lies behind the words that came are the zeros of a flush.
    zeros = [Const(0, 8 * WORD_BYTES)] * (lanes - words)
    pushed = [*(Mux(place < i.payload.count, i.payload.words[place], 0) for place in range(words)), *zeros]
    level = in_order(
        result,
        "order",
        capacity=3 * words + in_flit - 1,
        pushed=pushed,
        push=Mux(i.go, i.payload.count + filled, 0),
        popped=[o.payload.words[place] for place in range(words)],
        pop=Mux(o.go, Mux(last, FLIT.last_words, words), 0),
    )
    trailer = Array(o.payload.words)[FLIT.last_words]
    result.claim("flits", ~o.valid | (o.payload.last == last))
    result.claim("numbers", ~(o.valid & last) | (trailer == number))
    result.moves("progress", (level >= words) & ~o.valid, o.valid, 3)
    return result


PROOF = Proof(block="packer", parameters="flits of 24 bytes, beats of 12, check sum free", bench=bench, cycles=8)
