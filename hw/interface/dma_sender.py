"""The sending side of an end of the DMA: tokens of descriptors become frames, and verdicts on them become messages."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.dma_engine_params import DmaParams
from hw.interface.copy_ring import CopyRing
from hw.interface.descriptor_queue import DescriptorQueue
from hw.interface.dma_layouts import (
    answer_layout,
    ask_layout,
    completion_layout,
    fetch_layout,
    fetched_layout,
    message_layout,
    outgoing_layout,
    segment_layout,
)
from hw.interface.source_reader import SourceReader

__all__ = ["DmaSender"]


class DmaSender(wiring.Component):
    """Carry out descriptors: reserve, read and send tokens, retry, switch and release.

    Overview
    --------
    :class:`hw.interface.descriptor_queue.DescriptorQueue` in front of :class:`hw.interface.copy_ring.CopyRing`, which
    gives its orders to :class:`hw.interface.source_reader.SourceReader`. Verdicts come in the order in which frames
    began, so that a queue of copies under way is all that names them. The link counts as down when its sender says so,
    or when a verdict is due and none comes for ``silence_cycles``, as when the other direction is down.

    Protocol
    --------
    Plain ready/valid streams.

    Latency and throughput
    ----------------------
    That of the parts; see :mod:`hw.timing.dma`.

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    descriptor, completion : In(stream of segment_layout), Out(stream of completion_layout)
        What is to be moved, and how it ended.
    ask, answer, message
        The holder of the block table: see :class:`hw.interface.copy_ring.CopyRing`.
    fetch, fetched : Out(stream of fetch_layout), In(stream of fetched_layout)
        Reads of the memory.
    o : Out(stream of outgoing_layout)
        Frames.
    verdict : In(stream of unsigned)
        Statuses of frames sent.
    verdicts_waiting : In(1)
        A frame of verdicts is to be sent soon.
    link_down : In(1)
        The link's sender has given up.
    quiet : Out(1)
        No token waits to be sent.
    down : Out(1)
        The link counts as down.
    retries, without_transfer : Out(16)
        See :class:`hw.interface.copy_ring.CopyRing`.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: DmaParams) -> None:
        require_type("params", params, DmaParams)
        self.params = params
        super().__init__(
            {
                "descriptor": In(stream.Signature(segment_layout(params))),
                "completion": Out(stream.Signature(completion_layout(params))),
                "ask": Out(stream.Signature(ask_layout(params))),
                "answer": In(stream.Signature(answer_layout())),
                "message": Out(stream.Signature(message_layout(params))),
                "fetch": Out(stream.Signature(fetch_layout(params))),
                "fetched": In(stream.Signature(fetched_layout(params))),
                "o": Out(stream.Signature(outgoing_layout(params))),
                "verdict": In(stream.Signature(4)),
                "verdicts_waiting": In(1),
                "link_down": In(1),
                "quiet": Out(1),
                "down": Out(1),
                "retries": Out(16),
                "without_transfer": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the parts, the queue of copies under way, and the joint stream of completions."""
        m = Module()
        params = self.params
        m.submodules.queue = queue = DescriptorQueue(params)
        m.submodules.ring = ring = CopyRing(params)
        m.submodules.reader = reader = SourceReader(params)
        m.submodules.under_way = under_way = SyncFIFOBuffered(width=params.copy_bits, depth=params.copies)
        wiring.connect(m, wiring.flipped(self.descriptor), queue.i)
        wiring.connect(m, queue.o, ring.i)
        wiring.connect(m, ring.ask, wiring.flipped(self.ask))
        wiring.connect(m, wiring.flipped(self.answer), ring.answer)
        wiring.connect(m, ring.message, wiring.flipped(self.message))
        wiring.connect(m, ring.read, reader.i)
        wiring.connect(m, reader.fetch, wiring.flipped(self.fetch))
        wiring.connect(m, wiring.flipped(self.fetched), reader.fetched)
        wiring.connect(m, reader.o, wiring.flipped(self.o))

        lost = Signal()
        silence = Signal(range(params.silence_cycles + 1))
        m.d.comb += self.down.eq(self.link_down | lost)
        with m.If(~under_way.r_rdy | self.verdict.valid):
            m.d.sync += silence.eq(0)
        with m.Elif(silence != params.silence_cycles):
            m.d.sync += silence.eq(silence + 1)
        with m.Else():
            m.d.sync += lost.eq(1)

        unsent = Signal(range(params.copies + 1))
        m.d.sync += unsent.eq(unsent + ring.owed - reader.done)
        failed = reader.failed
        m.d.comb += [
            self.quiet.eq(unsent == 0),
            reader.flush.eq((unsent == 1) & ~self.verdicts_waiting),
            under_way.w_data.eq(reader.sent.payload),
            under_way.w_en.eq(reader.sent.valid),
            reader.sent.ready.eq(under_way.w_rdy),
            # A failure to read is of a frame that never began, and needs no place in the order of verdicts.
            ring.outcome.valid.eq(failed.valid | (self.verdict.valid & under_way.r_rdy)),
            failed.ready.eq(1),
            self.verdict.ready.eq(~failed.valid),
            under_way.r_en.eq(self.verdict.valid & self.verdict.ready),
            ring.down.eq(self.down),
            self.retries.eq(ring.retries),
            self.without_transfer.eq(ring.without_transfer),
        ]
        with m.If(failed.valid):
            m.d.comb += ring.outcome.payload.eq(failed.payload)
        with m.Else():
            m.d.comb += [
                ring.outcome.payload.copy.eq(under_way.r_data),
                ring.outcome.payload.status.eq(self.verdict.payload),
            ]

        # Refusals go first: they keep the queue from taking the next descriptor.
        free = ~self.completion.valid | self.completion.ready
        m.d.comb += [
            queue.refused.ready.eq(free),
            ring.completion.ready.eq(free & ~queue.refused.valid),
            queue.ended.eq(ring.completion.valid & ring.completion.ready),
        ]
        with m.If(self.completion.ready):
            m.d.sync += self.completion.valid.eq(0)
        with m.If(free & (queue.refused.valid | ring.completion.valid)):
            m.d.sync += self.completion.valid.eq(1)
            with m.If(queue.refused.valid):
                m.d.sync += self.completion.payload.eq(queue.refused.payload)
            with m.Else():
                m.d.sync += self.completion.payload.eq(ring.completion.payload)
        return m
