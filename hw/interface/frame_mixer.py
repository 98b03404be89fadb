"""One stream of frames out of two."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.dma_engine_params import DmaParams
from hw.interface.dma_layouts import outgoing_layout
from hw.interface.layouts import frame_command_layout, numbers_layout

__all__ = ["FrameMixer"]


class FrameMixer(wiring.Component):
    """Let frames of verdicts pass between frames of tokens, and end flits where none is to follow.

    Protocol
    --------
    Plain ready/valid streams. A frame that has begun is finished first; then verdicts go before tokens. At the latest
    every ``run_frames``-th frame ends its flit.

    Latency and throughput
    ----------------------
    A cycle a frame, in which its command goes out, then a beat a cycle.

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    tokens, verdicts : In(stream of outgoing_layout)
        Frames.
    command : Out(stream of frame_command_layout)
        Kind, tag and flush of each, before its payload.
    o : Out(stream of numbers_layout)
        Payloads.
    loose : Out(1)
        The last frame has not ended its flit.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: DmaParams) -> None:
        require_type("params", params, DmaParams)
        self.params = params
        frames = stream.Signature(outgoing_layout(params))
        super().__init__(
            {
                "tokens": In(frames),
                "verdicts": In(frames),
                "command": Out(stream.Signature(frame_command_layout())),
                "o": Out(stream.Signature(numbers_layout(params.path.compression))),
                "loose": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the choice, the command, and the count of frames that share a flit."""
        m = Module()
        tokens, verdicts = self.tokens, self.verdicts
        of_verdicts, flush, told = Signal(), Signal(), self.command.payload
        frame = Signal(outgoing_layout(self.params))
        run = Signal(range(max(self.params.run_frames, 2)))  # Verilog has no vectors of no bits
        m.d.comb += [
            frame.eq(Mux(of_verdicts, verdicts.payload.as_value(), tokens.payload.as_value())),
            flush.eq(frame.flush | (run == self.params.run_frames - 1)),
            told.kind.eq(frame.kind),
            told.tag.eq(frame.tag),
            told.flush.eq(flush),
            self.o.payload.codes.eq(frame.codes),
            self.o.payload.last.eq(frame.last),
        ]
        # A frame is chosen and its command goes out, then its payload; what was chosen stays so.
        chosen, commanded, kept = Signal(), Signal(), Signal()
        m.d.comb += [
            of_verdicts.eq(Mux(chosen, kept, verdicts.valid)),
            self.command.valid.eq((verdicts.valid | tokens.valid) & ~commanded),
            self.o.valid.eq(commanded & Mux(of_verdicts, verdicts.valid, tokens.valid)),
            verdicts.ready.eq(commanded & of_verdicts & self.o.ready),
            tokens.ready.eq(commanded & ~of_verdicts & self.o.ready),
        ]
        with m.If(~chosen):
            m.d.sync += [kept.eq(of_verdicts), chosen.eq(self.command.valid)]
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [commanded.eq(1), run.eq(Mux(flush, 0, run + 1)), self.loose.eq(~flush)]
        with m.If(self.o.valid & self.o.ready & frame.last):
            m.d.sync += [chosen.eq(0), commanded.eq(0)]
        return m
