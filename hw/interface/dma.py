"""One end of the inter-device DMA: a memory, a link, and tokens in both directions at once."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from golden.dma.frames import Kind
from hw.dma_engine_params import DmaParams
from hw.interface.destination_writer import DestinationWriter
from hw.interface.dma_layouts import (
    answer_layout,
    ask_layout,
    completion_layout,
    fetch_address_layout,
    fetch_layout,
    fetched_layout,
    message_layout,
    readback_layout,
    segment_layout,
    write_layout,
)
from hw.interface.dma_sender import DmaSender
from hw.interface.frame_mixer import FrameMixer
from hw.interface.layouts import acknowledgement_layout, flit_beat_layout
from hw.interface.receiver import Receiver
from hw.interface.transmitter import Transmitter
from hw.interface.verdict_collector import VerdictCollector
from hw.interface.verdict_spreader import VerdictSpreader

__all__ = ["Dma"]


class Dma(wiring.Component):
    r"""Move tokens of this memory to the one at the other end of a link, and take those that come from there.

    Overview
    --------
    Two ends face each other, flits and acknowledgements crossed. Each carries out its own descriptors
    (:class:`hw.interface.dma_sender.DmaSender`) and serves those of the other end
    (:class:`hw.interface.destination_writer.DestinationWriter`), whose verdicts go back in frames among the tokens::

        descriptor > queue > ring > reader \                                    / writer > verdicts
                                            mixer > transmitter > link > receiver
                              verdicts back /                                   \ verdicts > ring > message

    A token is switched when the far end has read back what it wrote, and released after that. A fault costs another
    attempt or ends the descriptor with a status, as in :class:`golden.dma.mover.Mover`, and no token is lost:

    * a flit that is damaged or lost is sent again by the link;
    * a column that can't be read, or a copy that is not what was sent, is tried again, ``attempts`` times in all;
    * a link that is down ends all that is not verified.

    A reset forgets descriptors and tokens under way; whoever gave them counts them as RESET. Both ends are reset
    together, and the links between them with whatever is on them. The holder of the block table then frees slots that
    it had reserved, as :meth:`golden.dma.mover.Mover.recover` does. The slot of a copy that ended LINK_DOWN and was not
    abandoned is among them: it may still be written until that reset.

    Protocol
    --------
    Plain ready/valid streams, all in one clock; :class:`hw.interface.dma_crossed.DmaCrossed` brings the four streams
    of the link into another.

    Latency and throughput
    ----------------------
    See :mod:`hw.timing.dma`. Frames are limited by the link where that takes a beat in fewer than
    ``columns / (columns + 2)`` cycles.

    Numerics
    --------
    Contents, completions and the block table equal the golden mover's (``tests/rtl/test_dma.py``).

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    descriptor, completion, ask, answer, message, fetch, fetched, retries, without_transfer, down
        Those of :class:`hw.interface.dma_sender.DmaSender`.
    write, check, checked
        Those of :class:`hw.interface.destination_writer.DestinationWriter`.
    sending, acknowledged : Out(stream of flit_beat_layout), In(stream of acknowledgement_layout)
        Flits to the other end, and what it says of them.
    arriving, acknowledgement : In(stream of flit_beat_layout), Out(stream of acknowledgement_layout)
        Flits from the other end, and what is said of them.
    again, dropped : Out(16)
        Times that the link went back to send again, and flits that it did not let through, modulo 2^16.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: DmaParams) -> None:
        require_type("params", params, DmaParams)
        self.params = params
        flits = stream.Signature(flit_beat_layout(params.path.link.flit))
        told = stream.Signature(acknowledgement_layout(params.path.link))
        super().__init__(
            {
                "descriptor": In(stream.Signature(segment_layout(params))),
                "completion": Out(stream.Signature(completion_layout(params))),
                "ask": Out(stream.Signature(ask_layout(params))),
                "answer": In(stream.Signature(answer_layout())),
                "message": Out(stream.Signature(message_layout(params))),
                "fetch": Out(stream.Signature(fetch_layout(params))),
                "fetched": In(stream.Signature(fetched_layout(params))),
                "write": Out(stream.Signature(write_layout(params))),
                "check": Out(stream.Signature(fetch_address_layout(params))),
                "checked": In(stream.Signature(readback_layout(params))),
                "sending": Out(flits),
                "acknowledged": In(told),
                "arriving": In(flits),
                "acknowledgement": Out(told),
                "down": Out(1),
                "retries": Out(16),
                "without_transfer": Out(16),
                "again": Out(16),
                "dropped": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the parts, and part tokens that arrive from verdicts that arrive."""
        m = Module()
        params = self.params
        m.submodules.sender = sender = DmaSender(params)
        m.submodules.mixer = mixer = FrameMixer(params)
        m.submodules.transmitter = transmitter = Transmitter(params.path)
        m.submodules.receiver = receiver = Receiver(params.path)
        m.submodules.writer = writer = DestinationWriter(params)
        m.submodules.collector = collector = VerdictCollector(params)
        m.submodules.spreader = spreader = VerdictSpreader(params)
        for name in ("descriptor", "answer", "fetched"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(sender, name))
        for name in ("completion", "ask", "message", "fetch"):
            wiring.connect(m, getattr(sender, name), wiring.flipped(getattr(self, name)))
        for name in ("write", "check"):
            wiring.connect(m, getattr(writer, name), wiring.flipped(getattr(self, name)))
        wiring.connect(m, wiring.flipped(self.checked), writer.checked)
        wiring.connect(m, sender.o, mixer.tokens)
        wiring.connect(m, collector.o, mixer.verdicts)
        wiring.connect(m, mixer.command, transmitter.command)
        wiring.connect(m, mixer.o, transmitter.i)
        wiring.connect(m, transmitter.o, wiring.flipped(self.sending))
        wiring.connect(m, wiring.flipped(self.acknowledged), transmitter.acknowledgement)
        wiring.connect(m, wiring.flipped(self.arriving), receiver.i)
        wiring.connect(m, receiver.acknowledgement, wiring.flipped(self.acknowledgement))
        wiring.connect(m, writer.verdict, collector.i)
        wiring.connect(m, spreader.o, sender.verdict)
        m.d.comb += [
            collector.quiet.eq(sender.quiet),
            collector.loose.eq(mixer.loose),
            sender.verdicts_waiting.eq(collector.waiting),
            sender.link_down.eq(transmitter.down),
            self.down.eq(sender.down),
            self.retries.eq(sender.retries),
            self.without_transfer.eq(sender.without_transfer),
            self.again.eq(transmitter.again),
            self.dropped.eq(receiver.dropped),
        ]

        # The header of a payload is kept beside it, but for the first cycle, in which it may come with it.
        begun, kept_verdicts, kept_tag = Signal(), Signal(), Signal(32)
        ends, taken, of_verdicts, tag = Signal(), Signal(), Signal(), Signal(32)
        head = receiver.head
        m.d.comb += [
            ends.eq(receiver.o.valid & receiver.o.ready & receiver.o.payload.last),
            head.ready.eq(~begun | ends),
            taken.eq(head.valid & head.ready),
            of_verdicts.eq(Mux(begun, kept_verdicts, head.payload.kind == Kind.VERDICT)),
            tag.eq(Mux(begun, kept_tag, head.payload.tag)),
        ]
        m.d.sync += begun.eq(Mux(begun, ~ends | taken, taken & ~ends))
        with m.If(taken):
            m.d.sync += [kept_verdicts.eq(head.payload.kind == Kind.VERDICT), kept_tag.eq(head.payload.tag)]
        there = begun | head.valid
        m.d.comb += receiver.o.ready.eq(there & Mux(of_verdicts, spreader.i.ready, writer.i.ready))
        for target, mine in ((spreader.i, of_verdicts), (writer.i, ~of_verdicts)):
            m.d.comb += [
                target.valid.eq(receiver.o.valid & there & mine),
                target.payload.tag.eq(tag),
                *(target.payload[name].eq(receiver.o.payload[name]) for name in ("codes", "last", "fault")),
            ]
        return m
