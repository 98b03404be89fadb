"""Both ends of a link and a wire that loses and destroys: every flit leaves once, in order, and no credit is lost."""

from __future__ import annotations

from amaranth.hdl import Mux, Signal

from hw.interface.link_receiver import LinkReceiver
from hw.interface.link_sender import LinkSender
from tests.formal.bench import Bench
from tests.formal.blocks.link_parts import LINK, Oracle, WithOracle, distance, flits_in, flits_out
from tests.formal.proofs import Proof

__all__ = ["PROOF"]


def bench(receiving: type = LinkReceiver, sending: type = LinkSender) -> Bench:
    """Lose any beat and any acknowledgement, destroy any flit; a check sum tells a destroyed one."""
    sender, receiver, oracle = sending(LINK), receiving(LINK), Oracle(LINK.flit)
    result = Bench(sender, WithOracle(receiver, oracle))
    m = result.m
    i, o = result.source("i", sender.i), result.sink("o", receiver.o)
    wire, back = result.watch("wire", sender.o), result.watch("back", receiver.acknowledgement)
    loses, destroys, loses_back = result.free("loses"), result.free("destroys"), result.free("loses_back")
    m.d.comb += [
        receiver.i.payload.eq(sender.o.payload),
        receiver.i.valid.eq(sender.o.valid & sender.o.ready & ~loses),
        sender.o.ready.eq(result.free("wire_ready")),
        sender.acknowledgement.payload.eq(receiver.acknowledgement.payload),
        sender.acknowledgement.valid.eq(back.go & ~loses_back),
        receiver.acknowledgement.ready.eq(result.free("back_ready")),
    ]
    # The sum is there in the cycle behind the flit's last beat.
    intact, sum_told = Signal(init=1), Signal(32)
    first = Signal(init=1)
    with m.If(receiver.i.valid):
        m.d.sync += [
            first.eq(receiver.i.payload.last),
            intact.eq((first | intact) & ~destroys),
            sum_told.eq(receiver.i.payload.words[LINK.flit.beat_words - 1]),
        ]
    with m.Elif(wire.go):
        m.d.sync += intact.eq(0)
    m.d.comb += oracle.crc.eq(Mux(intact, sum_told, ~sum_told))
    head, _ = flits_in(result, i)
    number, ends, _ = flits_out(result, o)
    left, sent = Signal(LINK.number_bits), Signal(LINK.number_bits)
    wire_ends = wire.go & wire.payload.last
    wire_number = wire.payload.words[LINK.flit.last_words][: LINK.number_bits]
    m.d.sync += left.eq(left + ends)
    with m.If(wire_ends & (wire_number == sent)):
        m.d.sync += sent.eq(sent + 1)
    result.claim("each once and in order", ~ends | ((number == left) & (left != head)))
    # Two of the window may wait to leave; the room of one is free when it is in the last register.
    result.claim("credits", distance(left, head) <= LINK.window + 1)
    result.claim("credits", distance(left, sent) <= distance(left, head))
    return result


PROOF = Proof(
    block="link",
    parameters="flits of 16 bytes, beats of 8, window 2, numbers modulo 8, wire loses and destroys",
    bench=bench,
    cycles=28,
)
