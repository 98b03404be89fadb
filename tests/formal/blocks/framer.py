"""The framer: every byte leaves once and in order behind a header that tells how many, zeros fill the last word."""

from __future__ import annotations

from amaranth.hdl import Const, Mux, Signal, Value

from golden.dma.compression import BlockCompression
from golden.dma.flits import FlitFormat
from golden.formats import FP16
from hw.dma_params import CompressionParams, FlitParams, LinkParams, PathParams
from hw.interface.framer import Framer
from tests.formal.bench import Bench
from tests.formal.proofs import Proof
from tests.formal.scoreboard import in_order

__all__ = ["PATH", "PROOF"]

PATH = PathParams(
    compression=CompressionParams(compression=BlockCompression(fmt=FP16, block=4), lanes=4),
    link=LinkParams(flit=FlitParams(flits=FlitFormat(16), beat_bytes=8), window=2),
    payload_beats=1,
)
"""Beats of four numbers of 16 bits, payloads of one."""


def bench(unit: type = Framer) -> Bench:
    """Give payloads of 1 to 9 bytes in a beat; the header is that of the command that is offered."""
    framer = unit(PATH)
    result = Bench(framer)
    m = result.m
    command, i = result.source("command", framer.command), result.source("i", framer.i)
    o = result.sink("o", framer.o)
    most = len(i.payload.units)
    count = i.payload.count
    result.assume(~i.valid | ((count != 0) & (count <= most) & i.payload.last))
    for place in range(most):
        result.assume(~i.valid | (place < count) | (Value.cast(i.payload.units[place]) == 0))

    # A header, then words until its bytes are through.
    words = o.payload.words.as_value()
    left = Signal(range(most + 4))
    head = left == 0
    beat_bytes = PATH.link.flit.beat_bytes
    with m.If(o.go):
        m.d.sync += left.eq(Mux(head, words[16:32], Mux(left > beat_bytes, left - beat_bytes, 0)))
    final = ~head & (left <= beat_bytes)
    in_beat = Mux(head, 2, Mux(final, (left + 3) >> 2, PATH.link.flit.beat_words))
    result.claim("words", ~o.valid | (o.payload.count == in_beat))
    result.claim("headers", ~(o.valid & head) | ((words[16:32] != 0) & (words[16:32] <= most) & (words[8:16] == 0)))
    told, wants = Signal(command.payload.shape()), command.payload
    with m.If(command.go):
        m.d.sync += told.eq(wants)
    result.claim(
        "commands",
        ~o.valid
        | Mux(
            head,
            command.valid & (words[:8] == wants.kind) & (words[32:64] == wants.tag) & ~o.payload.flush,
            o.payload.flush == (final & told.flush),
        ),
    )
    filled = (count + 3)[2:] << 2
    payloads = 2 * PATH.buffer_beats + 4
    in_order(
        result,
        "order",
        capacity=payloads * 12,
        pushed=[*(i.payload.units[place] for place in range(most)), *([Const(0, 8)] * (12 - most))],
        push=Mux(i.go, filled, 0),
        popped=[words[8 * place : 8 * place + 8] for place in range(beat_bytes)],
        pop=Mux(o.go & ~head, o.payload.count << 2, 0),
    )
    level = in_order(
        result,
        "lengths",
        capacity=payloads,
        pushed=[count],
        push=i.go,
        popped=[words[16 : 16 + len(count)]],
        pop=o.go & head,
    )
    result.moves("progress", (level != 0) & command.valid & ~o.valid, o.valid, 7)
    return result


PROOF = Proof(
    block="framer",
    parameters="beats of 8 bytes, payloads of 1 to 9",
    bench=bench,
    cycles=12,
    bounded=frozenset({"words", "headers", "commands", "order", "lengths", "progress"}),
)
