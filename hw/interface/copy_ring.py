"""The ring of tokens in flight: reserve, copy, verify, switch, release, in this order for each."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from golden.dma.descriptors import Status
from hw.dma_engine_params import DmaParams
from hw.interface.commit import Commit
from hw.interface.dma_layouts import (
    answer_layout,
    ask_layout,
    completion_layout,
    message_layout,
    outcome_layout,
    read_layout,
    token_layout,
)

__all__ = ["CopyRing"]


class CopyRing(wiring.Component):
    """Bring tokens to the other end, many at once, and have each take effect in order.

    Overview
    --------
    The steps of :class:`golden.dma.mover.Mover`, with the holder of the block table beyond three streams. A token
    enters the ring when the holder is asked where it may go (``ask``, ``answer``: a slot is reserved, or a valid copy
    is there already and nothing is sent, or the status says why not). It is read and sent (``read``), and the far end
    says whether it holds what was sent (``outcome``); other attempts are made, ``attempts`` in all. Tokens leave the
    ring in the order in which they entered (:class:`hw.interface.commit.Commit`, ``message``), so that a descriptor
    ends at its first token that fails, and those behind it stay where they are.

    Two copies of one slot are never in flight together: the second waits until the holder has taken what the first had
    to say.

    Once the link is ``down`` nothing is read any more, and tokens without an outcome fail with LINK_DOWN. What was sent
    of them may still be written at the far end. So their slots are not abandoned: the holder frees them when both ends
    have been reset, as it does with what a reset cuts short.

    Protocol
    --------
    Plain ready/valid streams. Answers come in the order of the questions; every order to read has one outcome. The
    holder answers for a token when no other end is moving it.

    Latency and throughput
    ----------------------
    1 cycle from a token to its question, 2 from its answer to its order to read, 2 from the outcome of the oldest to
    its switch. A token a cycle, 2 cycles each where they move.

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    i : In(stream of token_layout)
        Tokens.
    ask, answer : Out(stream of ask_layout), In(stream of answer_layout)
        Reservations.
    read, outcome : Out(stream of read_layout), In(stream of outcome_layout)
        Orders to read and send, and how each ended.
    message : Out(stream of message_layout)
        Switches, releases and slots given back.
    completion : Out(stream of completion_layout)
        Descriptors that ended.
    down : In(1)
        The link is given up; stays high until a reset.
    owed : Out(2)
        Tokens that became due to be read in this cycle.
    retries, without_transfer : Out(16)
        Attempts behind the first of each token, and tokens that were there already, modulo 2^16.

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
                "i": In(stream.Signature(token_layout(params))),
                "ask": Out(stream.Signature(ask_layout(params))),
                "answer": In(stream.Signature(answer_layout())),
                "read": Out(stream.Signature(read_layout(params))),
                "outcome": In(stream.Signature(outcome_layout(params))),
                "message": Out(stream.Signature(message_layout(params))),
                "completion": Out(stream.Signature(completion_layout(params))),
                "down": In(1),
                "owed": Out(2),
                "retries": Out(16),
                "without_transfer": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the ring's memories, the numbers that run around it, and what moves them."""
        m = Module()
        params = self.params
        copies, bits = params.copies, params.copy_bits
        m.submodules.tokens = tokens = memory.Memory(shape=token_layout(params), depth=copies, init=[])
        m.submodules.answers = answers = memory.Memory(shape=answer_layout(), depth=copies, init=[])
        m.submodules.again = again = SyncFIFOBuffered(width=bits, depth=copies)
        m.submodules.commit = commit = Commit(params)
        # head <= looked <= answered <= tail: left, seen by the reader, answered, asked. A bit more tells laps apart.
        tail, answered, looked, head = (Signal(bits + 1, name=name) for name in ("tail", "answered", "looked", "head"))
        held, final, exposed = Signal(copies), Signal(copies), Signal(copies)
        sources = [Signal(params.source_bits, name=f"source_{number}") for number in range(copies)]
        statuses = [Signal(4, name=f"status_{number}") for number in range(copies)]
        attempts = [Signal(range(params.attempts), name=f"attempts_{number}") for number in range(copies)]

        token, conflict, enter = self.i.payload, Signal(), Signal()
        token_in = tokens.write_port()
        m.d.comb += [
            # A token that has left the ring still counts while the holder has not taken its message.
            conflict.eq(
                Cat(held[number] & (sources[number] == token.slot) for number in range(copies)).any()
                | (self.message.valid & (self.message.payload.source == token.slot))
            ),
            self.i.ready.eq(~(tail - head)[bits] & ~conflict & (~self.ask.valid | self.ask.ready)),
            enter.eq(self.i.valid & self.i.ready),
            token_in.addr.eq(tail[:bits]),
            token_in.data.eq(token),
            token_in.en.eq(enter),
        ]
        with m.If(self.ask.ready):
            m.d.sync += self.ask.valid.eq(0)
        with m.If(enter):
            m.d.sync += [
                tail.eq(tail + 1),
                self.ask.valid.eq(1),
                self.ask.payload.tag.eq(token.tag),
                self.ask.payload.slot.eq(token.slot),
            ]

        answer, heard, needed = self.answer.payload, Signal(), Signal()
        answer_in = answers.write_port()
        m.d.comb += [
            self.answer.ready.eq(answered != tail),
            heard.eq(self.answer.valid & self.answer.ready),
            needed.eq((answer.status == Status.OK) & ~answer.there),
            answer_in.addr.eq(answered[:bits]),
            answer_in.data.eq(answer),
            answer_in.en.eq(heard),
        ]
        with m.If(heard):
            m.d.sync += [
                answered.eq(answered + 1),
                self.without_transfer.eq(self.without_transfer + answer.there),
            ]

        # Another attempt goes before first ones.
        copy, order, read_free = Signal(bits), Signal(), Signal()
        token_read, answer_read = tokens.read_port(domain="comb"), answers.read_port(domain="comb")
        m.d.comb += [
            read_free.eq((~self.read.valid | self.read.ready) & ~self.down),
            copy.eq(Mux(again.r_rdy, again.r_data, looked[:bits])),
            order.eq(read_free & (again.r_rdy | ((looked != answered) & ~final.bit_select(looked[:bits], 1)))),
            again.r_en.eq(read_free),
            token_read.addr.eq(copy),
            answer_read.addr.eq(copy),
        ]
        with m.If(read_free & ~again.r_rdy & (looked != answered)):
            m.d.sync += looked.eq(looked + 1)
        with m.If(self.read.ready):
            m.d.sync += self.read.valid.eq(0)
        with m.If(order):
            m.d.sync += [
                self.read.valid.eq(1),
                self.read.payload.copy.eq(copy),
                self.read.payload.source.eq(token_read.data.slot),
                self.read.payload.slot.eq(answer_read.data.slot),
                self.read.payload.compressed.eq(token_read.data.compressed),
            ]

        # What comes when the link is given up may be about a token whose number another has by now.
        told, retry = self.outcome.payload, Signal()
        concerns = self.outcome.valid & ~self.down
        m.d.comb += [
            self.outcome.ready.eq(1),
            retry.eq(concerns & (told.status != Status.OK) & (Array(attempts)[told.copy] != params.attempts - 1)),
            again.w_en.eq(retry),
            again.w_data.eq(told.copy),
            self.owed.eq((heard & needed) + retry),
        ]
        m.d.sync += self.retries.eq(self.retries + retry)

        token_out, answer_out = tokens.read_port(domain="comb"), answers.read_port(domain="comb")
        settled, leaving = Signal(), commit.i.payload
        m.d.comb += [
            token_out.addr.eq(head[:bits]),
            answer_out.addr.eq(head[:bits]),
            settled.eq(final.bit_select(head[:bits], 1)),
            commit.i.valid.eq((head != answered) & (settled | self.down)),
            *(leaving[name].eq(token_out.data[name]) for name in ("tag", "move", "ends")),
            leaving.source.eq(token_out.data.slot),
            leaving.slot.eq(answer_out.data.slot),
            leaving.reserved.eq(answer_out.data.status == Status.OK),
            leaving.quiet.eq(settled | ~exposed.bit_select(head[:bits], 1)),
            leaving.status.eq(Mux(settled, Array(statuses)[head[:bits]], Status.LINK_DOWN)),
        ]
        with m.If(commit.i.valid & commit.i.ready):
            m.d.sync += head.eq(head + 1)
            # A token that left without having been read is none to be read any more.
            with m.If(looked == head):
                m.d.sync += looked.eq(head + 1)
        for number in range(copies):
            with m.If(enter & (tail[:bits] == number)):
                m.d.sync += [held[number].eq(1), sources[number].eq(token.slot)]
            with m.Elif(commit.i.valid & commit.i.ready & (head[:bits] == number)):
                m.d.sync += held[number].eq(0)
            with m.If(heard & (answered[:bits] == number)):
                m.d.sync += [
                    final[number].eq(~needed),
                    exposed[number].eq(0),
                    statuses[number].eq(answer.status),
                    attempts[number].eq(0),
                ]
            with m.Elif(retry & (told.copy == number)):
                m.d.sync += attempts[number].eq(attempts[number] + 1)
            with m.Elif(concerns & (told.copy == number)):
                m.d.sync += [final[number].eq(1), statuses[number].eq(told.status)]
            with m.If(order & (copy == number)):
                m.d.sync += exposed[number].eq(1)
        wiring.connect(m, commit.message, wiring.flipped(self.message))
        wiring.connect(m, commit.completion, wiring.flipped(self.completion))
        return m
