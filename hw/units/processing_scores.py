"""What scores of the processing unit belong to, and the way out for those that no value waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.layouts import token_score_layout
from hw.units.processing_beat import beat_layout

if TYPE_CHECKING:
    from hw.params import ProcessingParams

__all__ = ["TokenScores", "context_layout", "token_score_signature"]


def context_layout(params: ProcessingParams) -> data.StructLayout:
    """Return the layout of what the scores of an operation need: its id and its scale."""
    return data.StructLayout({"op_id": params.op_id_bits, "scale": params.state_format.bits})


def token_score_signature(params: ProcessingParams) -> wiring.Signature:
    """Describe scores that are not held up: ``token`` counts in the cycles in which ``valid`` is high."""
    return wiring.Signature({"valid": Out(1), "token": Out(token_score_layout(params))})


class TokenScores(wiring.Component):
    """Keep the contexts of operations whose scores are on their way, and pass those of operations of scores on at once.

    An operation of scores ends with its last key, while scores are on their way: the next one may start, and has the
    other of two contexts. The one behind that finds its context ``free`` when the last score of the first is out.

    Scores come in the order of tokens, of each token in that of queries; positions are counted here, so that no token
    has to take its number through the lanes. Tokens that are passed over count, and are not sent.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    start, next_context, next_scored : In
        An operation starts; its context, and whether it is one of scores with tokens that count.
    turn, context : Out
        Number of the current operation's context, and that; constant until the next one starts.
    free : Out(1)
        The next operation's context is free.
    sum_turn, scale : In(1), Out
        Which context a sum of q . k belongs to, and its scale.
    valid, score, beat : In
        A scaled score, and the use of its token's last beat; of any operation.
    o : Out(token_score_signature)
        The score, in the same cycle, if its operation is one of scores.
    """

    start: Signal
    next_context: data.View
    next_scored: Signal
    turn: Signal
    context: data.View
    free: Signal
    sum_turn: Signal
    scale: Signal
    valid: Signal
    score: Signal
    beat: data.View
    o: wiring.PureInterface

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        super().__init__(
            {
                "start": In(1),
                "next_context": In(context_layout(params)),
                "next_scored": In(1),
                "turn": Out(1),
                "context": Out(context_layout(params)),
                "free": Out(1),
                "sum_turn": In(1),
                "scale": Out(params.state_format.bits),
                "valid": In(1),
                "score": In(params.state_format.bits),
                "beat": In(beat_layout(params)),
                "o": Out(token_score_signature(params)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the contexts, which of them have scores to come, and the counter of positions."""
        m = Module()
        beat = self.beat
        contexts = [Signal(context_layout(self.params), name=f"context_{number}") for number in range(2)]
        owed = Signal(2)
        position = Signal(self.params.token_bits)
        scored = Signal()
        last = Signal()
        done = Signal(2)
        m.d.comb += [
            self.context.eq(Mux(self.turn, contexts[1].as_value(), contexts[0].as_value())),
            self.free.eq(~owed.bit_select(~self.turn, 1)),
            self.scale.eq(Mux(self.sum_turn, contexts[1].scale, contexts[0].scale)),
            scored.eq(self.valid & beat.scored),
            last.eq(beat.final & ~beat.again),
            done.eq(Mux(scored & last, Cat(~beat.turn, beat.turn), 0)),
            self.o.valid.eq(scored & ~beat.skip),
            self.o.token.op_id.eq(Mux(beat.turn, contexts[1].op_id, contexts[0].op_id) + beat.query),
            self.o.token.position.eq(position),
            self.o.token.score.eq(self.score),
        ]
        with m.If(scored & ~beat.again):
            m.d.sync += position.eq(Mux(last, 0, position + 1))
        started = Mux(self.start & self.next_scored, Cat(self.turn, ~self.turn), 0)
        m.d.sync += owed.eq((owed & ~done) | started)
        with m.If(self.start):
            m.d.sync += self.turn.eq(~self.turn)
            for number, context in enumerate(contexts):
                with m.If(self.turn != number):
                    m.d.sync += context.eq(self.next_context)
        return m
