"""Way out of the processing unit for the scores of tokens, which have no value to wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.layouts import token_score_layout
from hw.units.processing_beat import beat_layout, contexts_layout

if TYPE_CHECKING:
    from amaranth.lib import data

    from hw.params import ProcessingParams

__all__ = ["TokenScores", "token_score_signature"]


def token_score_signature(params: ProcessingParams) -> wiring.Signature:
    """Describe scores that are not held up: ``token`` counts in the cycles in which ``valid`` is high."""
    return wiring.Signature({"valid": Out(1), "token": Out(token_score_layout(params))})


class TokenScores(wiring.Component):
    """Name the token and the query of every scaled score of an operation of scores, and pass it on at once.

    Scores come in the order of tokens, of each token in that of queries; positions are counted here, so that no token
    has to take its number through the lanes. Tokens that are passed over count, and are not sent.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    valid, score, beat : In
        A score, scaled, and the use of its token's last beat; of any operation.
    contexts : In(contexts_layout)
        Operations by ``turn`` of the beat.
    o : Out(token_score_signature)
        The score, in the same cycle.
    done : Out(2)
        It is the operation's last, by its ``turn``.
    """

    valid: Signal
    score: Signal
    beat: data.View
    contexts: data.View
    o: wiring.PureInterface
    done: Signal

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        super().__init__(
            {
                "valid": In(1),
                "score": In(params.state_format.bits),
                "beat": In(beat_layout(params)),
                "contexts": In(contexts_layout(params)),
                "o": Out(token_score_signature(params)),
                "done": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the counter of positions."""
        m = Module()
        beat = self.beat
        position = Signal(self.params.token_bits)
        scored = Signal()
        last = Signal()
        m.d.comb += [
            scored.eq(self.valid & beat.scored),
            last.eq(beat.final & ~beat.again),
            self.o.valid.eq(scored & ~beat.skip),
            self.o.token.op_id.eq(self.contexts[beat.turn].op_id + beat.query),
            self.o.token.position.eq(position),
            self.o.token.score.eq(self.score),
            self.done.eq(Mux(scored & last, 1 << beat.turn, 0)),
        ]
        with m.If(scored & ~beat.again):
            m.d.sync += position.eq(Mux(last, 0, position + 1))
        return m
