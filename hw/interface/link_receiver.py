"""The receiving end of a link: lets through what arrives whole and in its turn, and asks for the rest again."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma_params import LinkParams
from hw.interface.check_sum import CheckSum
from hw.interface.layouts import acknowledgement_layout, flit_beat_layout

__all__ = ["LinkReceiver"]


class LinkReceiver(wiring.Component):
    """Check flits, keep the good ones until they are taken, and tell the sender.

    Overview
    --------
    A flit is good if it has its number of beats, the right check sum and the number that is due; then it counts as
    arrived and leaves in order. One with a number that arrived before is dropped, and what arrived is told once more.
    Any other is dropped, and the sender is asked for the one that is due, once until that arrives: the sender's timeout
    takes care of a question that is lost.

    Protocol
    --------
    ``i`` is always taken: the sender sends no more than there is room for. ``last`` ends a flit whatever came before
    it, so that a lost beat costs no more than its flit and the next. A good flit of which a beat finds no room is
    treated as a bad one; no :class:`hw.interface.link_sender.LinkSender` sends such.

    Latency and throughput
    ----------------------
    4 cycles from a flit's last beat in to its first beat out; a beat a cycle.

    Parameters
    ----------
    params : LinkParams
        Sizes.

    Members
    -------
    i, o : In(stream of flit_beat_layout), Out(stream of flit_beat_layout)
        Flits from the link, good ones in order.
    acknowledgement : Out(stream of acknowledgement_layout)
        To the sender.
    dropped : Out(16)
        Flits that were not let through, modulo 2^16.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: LinkParams) -> None:
        if not isinstance(params, LinkParams):
            raise TypeError(f"params must be a LinkParams, not {params!r}")
        self.params = params
        beats = stream.Signature(flit_beat_layout(params.flit))
        super().__init__(
            {
                "i": In(beats),
                "o": Out(beats),
                "acknowledgement": Out(stream.Signature(acknowledgement_layout(params))),
                "dropped": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the memory, the check, and what is told."""
        m = Module()
        params = self.params
        flit = params.flit
        beats, bits = flit.beats, params.number_bits
        m.submodules.memory = store = memory.Memory(
            shape=flit_beat_layout(flit).size, depth=params.window * beats, init=[]
        )
        crc = CheckSum(flit.beat_bytes)
        m.submodules.crc = crc
        write, read = store.write_port(), store.read_port()
        slot_bits = params.window.bit_length() - 1
        freed, expected, due = (Signal(bits, name=name) for name in ("freed", "expected", "due"))

        # The check sum of a flit is there in the cycle behind its last beat, in which the next flit may begin.
        write_beat = Signal(range(beats + 1))
        check, sized, room, stored = Signal(), Signal(), Signal(), Signal()
        number, sum_told = Signal(bits), Signal(32)
        good, repeated, bad = Signal(), Signal(), Signal()
        words = self.i.payload.words
        body = self.i.payload.words.as_value()
        ends = self.i.valid & self.i.payload.last
        m.d.comb += [
            self.i.ready.eq(1),
            due.eq(expected + good),
            write.addr.eq(due[:slot_bits] * beats + write_beat),
            write.data.eq(self.i.payload.as_value()),
            room.eq((due - freed)[:bits] < params.window),
            write.en.eq(self.i.valid & (write_beat < beats) & room),
            crc.data.eq(Mux(self.i.payload.last, body[:-32], body)),
            crc.valid.eq(self.i.valid),
            crc.start.eq(self.i.valid & (write_beat == 0)),
        ]
        m.d.sync += [check.eq(ends), expected.eq(due)]
        with m.If(self.i.valid):
            m.d.sync += [
                write_beat.eq(Mux(self.i.payload.last, 0, Mux(write_beat == beats, beats, write_beat + 1))),
                sized.eq(write_beat == beats - 1),
                stored.eq(room & (stored | (write_beat == 0))),
                number.eq(words[flit.last_words][:bits]),
                sum_told.eq(words[flit.beat_words - 1]),
            ]
        sound = sized & (crc.crc == sum_told)
        before = (expected - number - 1)[:bits] < (1 << (bits - 1))
        m.d.comb += [
            good.eq(check & sound & (number == expected) & stored),
            repeated.eq(check & sound & ~good & (number != expected) & before),
            bad.eq(check & ~good & ~repeated),
        ]
        m.d.sync += self.dropped.eq(self.dropped + (bad | repeated))

        read_beat = Signal(range(beats))
        fetched, move, fetch = Signal(), Signal(), Signal()
        read_last = read_beat == beats - 1
        m.d.comb += [
            move.eq(fetched & (~self.o.valid | self.o.ready)),
            fetch.eq((freed != expected) & (~fetched | move)),
            read.addr.eq(freed[:slot_bits] * beats + read_beat),
            read.en.eq(fetch),
        ]
        with m.If(fetch):
            m.d.sync += [read_beat.eq(Mux(read_last, 0, read_beat + 1)), freed.eq(freed + read_last)]
        m.d.sync += fetched.eq(fetch | (fetched & ~move))
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(move):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.as_value().eq(read.data)]

        asked, ask, tell = Signal(), Signal(), Signal()
        told = self.acknowledgement.payload
        load, is_news = Signal(), Signal()
        m.d.comb += [
            is_news.eq((told.freed != freed) | (told.expected != expected)),
            load.eq((is_news | ask | tell) & (~self.acknowledgement.valid | self.acknowledgement.ready)),
        ]
        m.d.sync += [
            asked.eq((asked | bad) & ~good),
            ask.eq((bad & ~asked) | (ask & ~load)),
            tell.eq(repeated | (tell & ~load)),
        ]
        with m.If(self.acknowledgement.ready):
            m.d.sync += self.acknowledgement.valid.eq(0)
        with m.If(load):
            m.d.sync += [
                self.acknowledgement.valid.eq(1),
                told.freed.eq(freed),
                told.expected.eq(expected),
                told.again.eq(ask),
                told.check.eq(~Cat(freed, expected, ask)),
            ]
        return m
