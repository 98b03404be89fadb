"""The receiving end of a link: what leaves is what arrived right and in turn, once each, and is told truly."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal

from hw.interface.link_receiver import LinkReceiver
from tests.formal.bench import Bench
from tests.formal.blocks.link_parts import LINK, Oracle, WithOracle, distance, flits_out
from tests.formal.proofs import Proof

__all__ = ["PROOF"]


def bench(unit: type = LinkReceiver) -> Bench:
    """Send any beats; whether a check sum is right is free, too. Follow one bit of one flit."""
    receiver, oracle = unit(LINK), Oracle(LINK.flit)
    result = Bench(WithOracle(receiver, oracle))
    m = result.m
    m.d.comb += oracle.crc.eq(result.free("check_sum", 32))
    i, o = result.source("i", receiver.i), result.sink("o", receiver.o)
    acknowledgement = result.sink("acknowledgement", receiver.acknowledgement)
    number, ends, beat_out = flits_out(result, o)
    bits, flit = LINK.number_bits, LINK.flit

    # A flit that came is judged in the cycle behind its last beat: good ones by this count.
    beat = Signal(range(flit.beats + 1))
    ended, right_size = Signal(), Signal()
    numbered, sum_told = Signal(bits), Signal(32)
    arrived, left = Signal(bits), Signal(bits)
    m.d.sync += ended.eq(i.go & i.payload.last)
    with m.If(i.go):
        m.d.sync += [
            beat.eq(Mux(i.payload.last, 0, beat + (beat != flit.beats))),
            right_size.eq(beat == flit.beats - 1),
            numbered.eq(i.payload.words[flit.last_words]),
            sum_told.eq(i.payload.words[flit.beat_words - 1]),
        ]
    good = ended & right_size & (oracle.crc == sum_told) & (numbered == arrived)
    # What a sender that keeps to its credits sends finds room from its first beat on.
    had_room = Signal()
    with m.If(i.go):
        m.d.sync += had_room.eq(((beat == 0) | had_room) & (distance(left, arrived + good) < LINK.window))
    result.assume(~good | had_room)
    m.d.sync += [arrived.eq(arrived + good), left.eq(left + ends)]
    result.claim("in turn", ~ends | ((number == left) & (distance(left, arrived) <= LINK.window) & (left != arrived)))
    result.moves("progress", (left != arrived) & ~o.valid, o.valid, 4)

    told = acknowledgement.payload
    freed, expected = Signal(bits), Signal(bits)
    with m.If(acknowledgement.go):
        m.d.sync += [freed.eq(told.freed), expected.eq(told.expected)]
    # A sender counts from what it was told: were more to arrive, numbers would come round before it is told again.
    credited = Signal(init=1)
    with m.If(good & (distance(freed, arrived) >= LINK.window)):
        m.d.sync += credited.eq(0)
    result.claim(
        "told truly",
        ~acknowledgement.valid
        | ~credited
        | (
            (told.check == ~Cat(told.freed, told.expected, told.again))
            & (distance(told.freed, told.expected) <= LINK.window)
            & (distance(freed, told.freed) <= distance(freed, told.expected))
            & (distance(expected, told.expected) <= distance(expected, arrived))
        ),
    )
    # Told freed may be ahead of what left: two beats are on their way out.
    stale = (distance(freed, left) != 0) & (distance(freed, left) <= LINK.window)
    result.moves("told at last", (stale | (expected != arrived)) & ~acknowledgement.valid, acknowledgement.valid, 4)

    size = o.payload.shape().size
    place, pick = result.constant("place", range(2 * size)), result.free("pick")
    result.assume(place < 2 * size)
    second = place >= size
    index = Mux(second, place - size, place).as_unsigned()
    bit_in, bit_out = (flow.payload.as_value().bit_select(index, 1) for flow in (i, o))
    newest, kept, followed, following = Signal(), Signal(), Signal(bits), Signal()
    with m.If(i.go & (beat == second)):
        m.d.sync += newest.eq(bit_in)
    with m.If(good & pick & ~following):
        m.d.sync += [following.eq(1), kept.eq(newest), followed.eq(numbered)]
    with m.Elif(ends & (left == followed)):
        m.d.sync += following.eq(0)
    earlier = Signal()
    with m.If(o.go & ~beat_out):
        m.d.sync += earlier.eq(bit_out)
    result.claim("unchanged", ~(ends & following & (left == followed)) | (Mux(second, bit_out, earlier) == kept))
    return result


PROOF = Proof(
    block="link receiver",
    parameters="flits of 16 bytes, beats of 8, window 2, numbers modulo 8, check sum free",
    bench=bench,
    cycles=20,
)
