"""The sending end of a link: keeps flits until they have left the receiver, and sends them again where it must."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma_params import LinkParams
from hw.interface.layouts import acknowledgement_layout, flit_beat_layout

__all__ = ["LinkSender"]


class LinkSender(wiring.Component):
    """Send flits in order, at most a window of them ahead of what the receiver has room for.

    Overview
    --------
    Flits are kept in a memory of ``window`` flits, each at the place that its number has modulo the window. Three
    numbers run through them: ``freed <= next <= head``. A flit is sent once it is whole in the memory; its room is free
    when the receiver has freed its own. So there are never more flits on the way than the receiver has room for: the
    room is the credit, and an acknowledgement gives it back.

    Asked by the receiver, or after ``timeout_cycles`` without news while the room of flits is not free, it goes back to
    the first flit that the receiver is known to lack, at the next border of flits. Where it lacks none, the last flit
    goes once more: the receiver then tells what it told before, in case that was lost. After ``attempts`` timeouts
    without an answer in between the link is ``down``: nothing more is sent until a reset. A receiver that is full
    answers, for as long as it is.

    Protocol
    --------
    Plain ready/valid streams. Flits come in numbered from 0, as the packer numbers them. An acknowledgement whose check
    bits are wrong, or whose numbers can't be, is not believed.

    Latency and throughput
    ----------------------
    3 cycles from a flit's last beat in to its first beat out. A beat a cycle, as long as acknowledgements come within
    ``window`` flits.

    Parameters
    ----------
    params : LinkParams
        Sizes.

    Members
    -------
    i, o : In(stream of flit_beat_layout), Out(stream of flit_beat_layout)
        Flits in, flits to the link.
    acknowledgement : In(stream of acknowledgement_layout)
        From the receiver; always taken.
    again : Out(16)
        Times that it went back, modulo 2^16.
    down : Out(1)
        The link is given up.

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
                "acknowledgement": In(stream.Signature(acknowledgement_layout(params))),
                "again": Out(16),
                "down": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the memory, the three numbers, and what moves them."""
        m = Module()
        params = self.params
        beats = params.flit.beats
        m.submodules.memory = store = memory.Memory(
            shape=flit_beat_layout(params.flit).size, depth=params.window * beats, init=[]
        )
        write, read = store.write_port(), store.read_port()
        slot_bits = params.window.bit_length() - 1
        freed, expected, following, head = (
            Signal(params.number_bits, name=name) for name in ("freed", "expected", "following", "head")
        )

        # An acknowledgement may come for flits that are just being sent once more; they are not overwritten meanwhile.
        behind = Signal()
        write_beat = Signal(range(beats))
        write_last = write_beat == beats - 1
        m.d.comb += [
            behind.eq(_distance(freed, following) > _distance(freed, head)),
            self.i.ready.eq((_distance(freed, head) < params.window) & ~behind),
            write.addr.eq(head[:slot_bits] * beats + write_beat),
            write.data.eq(self.i.payload.as_value()),
            write.en.eq(self.i.valid & self.i.ready),
        ]
        with m.If(write.en):
            m.d.sync += [write_beat.eq(Mux(write_last, 0, write_beat + 1)), head.eq(head + write_last)]

        told = self.acknowledgement.payload
        believed, news = Signal(), Signal()
        m.d.comb += [
            self.acknowledgement.ready.eq(1),
            believed.eq(
                self.acknowledgement.valid
                & (told.check == ~Cat(told.freed, told.expected, told.again))
                & (_distance(freed, told.freed) <= _distance(freed, told.expected))
                & (_distance(freed, told.expected) <= _distance(freed, head))
            ),
            news.eq(believed & ((told.freed != freed) | (told.expected != expected))),
        ]
        with m.If(believed):
            m.d.sync += [freed.eq(told.freed), expected.eq(told.expected)]

        timeout = Signal()
        waiting = Signal(range(params.timeout_cycles + 1))
        failures = Signal(range(params.attempts + 1))
        outstanding = (freed != following) & ~self.down
        m.d.comb += timeout.eq(outstanding & (waiting == params.timeout_cycles))
        with m.If(news | ~outstanding | timeout):
            m.d.sync += waiting.eq(0)
        with m.Else():
            m.d.sync += waiting.eq(waiting + 1)
        with m.If(news | (believed & ~told.again)):
            m.d.sync += failures.eq(0)
        with m.Elif(timeout):
            m.d.sync += failures.eq(failures + 1)
            with m.If(failures == params.attempts):
                m.d.sync += self.down.eq(1)

        read_beat = Signal(range(beats))
        go_back = Signal()
        fetched, move, fetch = Signal(), Signal(), Signal()
        read_last = read_beat == beats - 1
        at_border = read_beat == 0
        m.d.comb += [
            move.eq(fetched & (~self.o.valid | self.o.ready)),
            fetch.eq((~at_border | ((following != head) & ~go_back & ~behind & ~self.down)) & (~fetched | move)),
            read.addr.eq(following[:slot_bits] * beats + read_beat),
            read.en.eq(fetch),
        ]
        with m.If(fetch):
            m.d.sync += [read_beat.eq(Mux(read_last, 0, read_beat + 1)), following.eq(following + read_last)]
        # All flits have arrived, and yet not all room is known to be free.
        lacks_none = Signal()
        m.d.comb += lacks_none.eq((expected == head) & (freed != expected))
        with m.If(at_border & (go_back | behind)):
            m.d.sync += [following.eq(expected - (lacks_none & go_back)), self.again.eq(self.again + go_back)]
        m.d.sync += [
            fetched.eq(fetch | (fetched & ~move)),
            go_back.eq((believed & told.again) | timeout | (go_back & ~at_border)),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(move):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.as_value().eq(read.data)]
        return m


def _distance(start: Value, end: Value) -> Value:
    """Return how far ``end`` is behind ``start``, around the end of the numbers."""
    return (end - start)[: len(start)]
