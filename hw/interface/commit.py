"""The end of a token's way: the messages that switch and release it, and the completion of its descriptor."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from golden.dma.descriptors import Status
from hw.dma_engine_params import DmaParams
from hw.interface.dma_layouts import MessageKind, completion_layout, held_layout, message_layout

__all__ = ["Commit"]


class Commit(wiring.Component):
    """Tell the holder of the block table what becomes of tokens, one after the other, and end descriptors.

    Overview
    --------
    A token whose copy is verified is switched, and then released if it moves, so that there is a valid copy that is
    read in every cycle. The first of a descriptor that has another status breaks it: neither that one nor those behind
    it are switched, and what the holder answered for them is abandoned, unless something may still be written there.
    So every answer of OK has one message, switch or abandon, but for that case.

    Protocol
    --------
    Plain ready/valid streams. A release is offered after its switch was taken, a completion after the descriptor's last
    message.

    Timing
    ------
    A moves and ends its descriptor, B behind it is copied::

        cycle       0   1   2   3   4
        i           A   A   B   B   .
        message     .   SA  RA  .   SB
        completion  .   .   .   A   .

    Latency and throughput
    ----------------------
    1 cycle to the switch; 2 cycles a token that moves, 1 for others, 1 more for the end of a descriptor.

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    i : In(stream of held_layout)
        Tokens, in order.
    message : Out(stream of message_layout)
        To the holder.
    completion : Out(stream of completion_layout)
        Descriptors that ended.

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
                "i": In(stream.Signature(held_layout(params))),
                "message": Out(stream.Signature(message_layout(params))),
                "completion": Out(stream.Signature(completion_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the two steps of a token and the state of its descriptor."""
        m = Module()
        token, said = self.i.payload, self.message.payload
        free, good, switched, ended = Signal(), Signal(), Signal(), Signal()
        broken, done = Signal(4), Signal.like(self.completion.payload.done)
        kind, tell = Signal(MessageKind), Signal()
        m.d.comb += [
            free.eq(
                (~self.message.valid | self.message.ready) & (~ended | (self.completion.valid & self.completion.ready))
            ),
            # Not before the last message of the descriptor is taken, and no other follows until then.
            self.completion.valid.eq(ended & ~self.message.valid),
            good.eq((token.status == Status.OK) & (broken == Status.OK)),
            tell.eq(good | (token.reserved & token.quiet)),
            self.i.ready.eq(free & (switched | ~good | ~token.move)),
        ]
        with m.If(~good):
            m.d.comb += kind.eq(MessageKind.ABANDON)
        with m.Elif(switched):
            m.d.comb += kind.eq(MessageKind.RELEASE)
        with m.Else():
            m.d.comb += kind.eq(MessageKind.SWITCH)
        with m.If(self.message.ready):
            m.d.sync += self.message.valid.eq(0)
        with m.If(self.completion.valid & self.completion.ready):
            m.d.sync += ended.eq(0)
        with m.If(self.i.valid & free):
            m.d.sync += [
                self.message.valid.eq(tell),
                said.kind.eq(kind),
                said.tag.eq(token.tag),
                said.source.eq(token.source),
                said.slot.eq(token.slot),
                switched.eq(good & token.move & ~switched),
            ]
            with m.If(self.i.ready):
                m.d.sync += [done.eq(done + good), broken.eq(Mux(broken == Status.OK, token.status, broken))]
                with m.If(token.ends):
                    m.d.sync += [
                        done.eq(0),
                        broken.eq(Status.OK),
                        ended.eq(1),
                        self.completion.payload.tag.eq(token.tag),
                        self.completion.payload.status.eq(Mux(broken == Status.OK, token.status, broken)),
                        self.completion.payload.done.eq(done + good),
                    ]
        return m
