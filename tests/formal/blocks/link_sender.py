"""The sending end of a link: never more on the way than there is room for, and what goes again goes unchanged."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal

from hw.interface.link_sender import LinkSender
from tests.formal.bench import Bench
from tests.formal.blocks.link_parts import LINK, distance, flits_in, flits_out
from tests.formal.proofs import Proof

__all__ = ["PROOF"]


def bench(unit: type = LinkSender) -> Bench:
    """Acknowledge what was sent, whenever, and destroy acknowledgements freely; follow one bit of one flit."""
    sender = unit(LINK)
    result = Bench(sender)
    m = result.m
    i, o = result.source("i", sender.i), result.sink("o", sender.o)
    told = sender.acknowledgement.payload
    m.d.comb += [
        sender.acknowledgement.valid.eq(result.free("acknowledgement_valid")),
        told.as_value().eq(result.free("acknowledgement_payload", told.shape().size)),
    ]
    head, beat_in = flits_in(result, i)
    number, ends, beat_out = flits_out(result, o)

    # What the receiver has: all before freed left it, all before expected arrived, all before sent were sent.
    bits = LINK.number_bits
    freed, expected, sent = Signal(bits), Signal(bits), Signal(bits)
    sound = sender.acknowledgement.valid & (told.check == ~Cat(told.freed, told.expected, told.again))
    result.assume(
        ~sound
        | (
            (distance(freed, told.freed) <= distance(freed, told.expected))
            & (distance(freed, expected) <= distance(freed, told.expected))
            & (distance(freed, told.expected) <= distance(freed, sent))
        )
    )
    with m.If(sound):
        m.d.sync += [freed.eq(told.freed), expected.eq(told.expected)]
    first_time = number == sent
    with m.If(ends & first_time):
        m.d.sync += sent.eq(sent + 1)
    result.claim("credits", distance(freed, sent) <= LINK.window)
    result.claim("credits", distance(freed, head) <= LINK.window)
    result.claim("credits", distance(freed, sent) <= distance(freed, head))
    # One that is sent again was sent before and may have been freed meanwhile.
    result.claim("in turn", ~ends | first_time | (distance(number, sent) <= 2 * LINK.window))
    # An acknowledgement starts the wait for the next one anew, and one that asks may send it back. Whatever has no room
    # yet may be asked about: an acknowledgement that is lost was perhaps the last.
    waits = (freed != head) & ~sender.down & ~o.valid & ~sound
    result.moves("goes again", waits, o.valid, LINK.timeout_cycles + 6)
    # What is on its way when it is acknowledged leaves first; meanwhile nothing is overwritten.
    blocked = (distance(freed, head) < LINK.window) & ~i.ready & ~(o.valid & ~o.ready) & ~sound
    result.moves("credits come back", blocked, i.ready, LINK.timeout_cycles + 6)

    place = result.constant("place", range(2 * o.payload.shape().size))
    pick = result.free("pick")
    size = o.payload.shape().size
    result.assume(place < 2 * size)
    second = place >= size
    index = Mux(second, place - size, place).as_unsigned()
    bit_in = i.payload.as_value().bit_select(index, 1)
    bit_out = o.payload.as_value().bit_select(index, 1)
    following, kept, followed = Signal(), Signal(), Signal(bits)
    with m.If(i.go & (beat_in == second) & pick & ~following):
        m.d.sync += [following.eq(1), kept.eq(bit_in), followed.eq(head)]
    with m.Elif(following & (distance(followed, freed) != 0) & (distance(followed, freed) <= LINK.window)):
        m.d.sync += following.eq(0)
    earlier = Signal()
    with m.If(o.go & ~beat_out):
        m.d.sync += earlier.eq(bit_out)
    result.claim("unchanged", ~(ends & following & (number == followed)) | (Mux(second, bit_out, earlier) == kept))
    return result


PROOF = Proof(
    block="link sender",
    parameters="flits of 16 bytes, beats of 8, window 2, numbers modulo 8, timeout 3",
    bench=bench,
    cycles=20,
)
