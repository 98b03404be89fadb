"""The unpacker: the words of every frame leave once and in order, headers and ends marked, fillings left out."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal, Value

from golden.dma.frames import Kind
from hw.interface.unpacker import Unpacker
from tests.formal.bench import Bench
from tests.formal.blocks.packer import FLIT
from tests.formal.proofs import Proof
from tests.formal.scoreboard import in_order

__all__ = ["PROOF"]

_MOST_BYTES = 12


def bench(unit: type = Unpacker) -> Bench:
    """Give flits of frames of up to 12 bytes and of zeros, and read them word by word beside the block."""
    unpacker = unit(FLIT)
    result = Bench(unpacker)
    m = result.m
    i, o = result.source("i", unpacker.i), result.sink("o", unpacker.o)
    words = FLIT.beat_words
    beat = Signal(range(FLIT.beats))
    last = beat == FLIT.beats - 1
    result.assume(~i.valid | (i.payload.last == last))
    with m.If(i.go):
        m.d.sync += beat.eq(Mux(last, 0, beat + 1))

    # Words of the frame that are to come, the second of its header among them; the rest of a flit may be filling.
    to_come, filling = Signal(range(_MOST_BYTES // 4 + 2)), Signal()
    left, fills = to_come, filling
    pushed, there = [], []
    for place in range(words):
        word = i.payload.words[place]
        counts = ~last | (place < FLIT.last_words)
        begins = counts & ~fills & (left == 0)
        known = (word[:8] != 0) & (word[:8] <= max(Kind)) & (word[16:32] != 0) & (word[16:32] <= _MOST_BYTES)
        result.assume(~i.valid | ~begins | known | (word == 0))
        header = Signal(name=f"header_{place}")
        m.d.comb += header.eq(begins & (word != 0))
        taken = counts & ~fills & (~begins | header)
        following, ends = Signal.like(to_come, name=f"left_{place}"), Signal(name=f"ends_{place}")
        fills_now = Signal(name=f"fills_{place}")
        m.d.comb += [
            following.eq(Mux(header, 1 + ((word[16:32] + 3) >> 2), Mux(taken, left - 1, left))),
            ends.eq(taken & ~header & (left == 1)),
            fills_now.eq(fills | (begins & ~header)),
        ]
        pushed.append(Cat(word, header, ends))
        there.append(taken)
        left, fills = following, fills_now
    with m.If(i.go):
        m.d.sync += [to_come.eq(left), filling.eq(fills & ~last)]
    popped = [
        Cat(
            Value.cast(o.payload.words[place]),
            o.payload.header if place == 0 else Value.cast(0)[:1],
            o.payload.last & (o.payload.count == place + 1),
        )
        for place in range(words)
    ]
    level = in_order(
        result,
        "order",
        capacity=3 * words,
        pushed=pushed,
        push=Mux(i.go, sum(there[1:], there[0]), 0),
        popped=popped,
        pop=Mux(o.go, o.payload.count, 0),
    )
    result.claim("no fault", ~unpacker.fault)
    result.claim("counts", ~o.valid | ((o.payload.count != 0) & (o.payload.count <= words)))
    # A header is whole with its second word, a beat with its last.
    result.moves("progress", (level >= words) & ~o.valid, o.valid, 3)
    return result


PROOF = Proof(
    block="unpacker",
    parameters="flits of 24 bytes, beats of 12, payloads of 1 to 12 bytes",
    bench=bench,
    cycles=7,
    bounded=frozenset({"order", "no fault", "progress"}),
)
