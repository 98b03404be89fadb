"""Verdicts on payloads that arrived, gathered into frames for their sender."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from golden.dma.frames import Kind
from hw.dma_engine_params import DmaParams
from hw.interface.dma_layouts import outgoing_layout

__all__ = ["VerdictCollector"]


class VerdictCollector(wiring.Component):
    """Gather verdicts until there are ``verdict_batch`` of them, or until they have waited long enough.

    Overview
    --------
    A frame of kind VERDICT has one beat with four bits a verdict, the oldest lowest, and their number as its tag. While
    payloads are sent a frame waits until it is full, or for ``verdict_wait_cycles``, so that verdicts take little of
    the link; else it goes at once. Where the last frame did not end its flit and none is to follow, a frame of no
    verdicts does.

    Protocol
    --------
    Plain ready/valid streams.

    Latency and throughput
    ----------------------
    2 cycles where nothing else is sent; a verdict a cycle, but for the cycle in which a frame is made.

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    i : In(stream of unsigned)
        Verdicts, in the order of payloads.
    quiet : In(1)
        No payload is waiting to be sent, or being sent.
    loose : In(1)
        The last frame has not ended its flit.
    o : Out(stream of outgoing_layout)
        Frames.
    waiting : Out(1)
        There are verdicts that are not on their way.

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
                "i": In(stream.Signature(4)),
                "quiet": In(1),
                "loose": In(1),
                "o": Out(stream.Signature(outgoing_layout(params))),
                "waiting": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the beat that gathers, its age, and the frame that leaves."""
        m = Module()
        params = self.params
        gathered = Signal(4 * params.verdict_batch)
        count = Signal(range(params.verdict_batch + 1))
        age = Signal(range(params.verdict_wait_cycles + 1))
        go, full = Signal(), Signal()
        said = self.o.payload
        m.d.comb += [
            full.eq(count == params.verdict_batch),
            go.eq(
                ~self.o.valid
                & (
                    full
                    | ((count != 0) & (self.quiet | (age == params.verdict_wait_cycles)))
                    | (self.quiet & self.loose)
                )
            ),
            self.i.ready.eq(~full & ~go),
            self.waiting.eq(self.o.valid | (count != 0)),
            said.kind.eq(Kind.VERDICT),
            said.last.eq(1),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(go):
            m.d.sync += [
                self.o.valid.eq(1),
                said.codes.as_value().eq(gathered),
                said.tag.eq(count),
                said.flush.eq(self.quiet),
                gathered.eq(0),
                count.eq(0),
                age.eq(0),
            ]
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += [gathered.word_select(count[:-1], 4).eq(self.i.payload), count.eq(count + 1)]
        with m.If(~go & (count != 0) & (age != params.verdict_wait_cycles)):
            m.d.sync += age.eq(age + 1)
        return m
