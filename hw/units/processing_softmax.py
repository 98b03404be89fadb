"""Online softmax of the processing unit: scores to weights, running maximum and running sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.float import FloatAdd, FloatMax, FloatMul, FloatRound
from hw.units.processing_beat import beat_layout, token_shape
from hw.units.processing_exponentials import Exponentials, tile_layout
from hw.units.processing_queries import store

if TYPE_CHECKING:
    from hw.params import ProcessingParams

__all__ = ["OnlineSoftmax"]


class OnlineSoftmax(wiring.Component):
    """Scale scores, keep their maximum, turn them into weights tile by tile, and sum those, for every query.

    A score is written into its tile's half of the buffer; when the last score of a tile is there, its
    exponentials are issued, and a weight overwrites its score. The other half takes the scores of the next
    tile meanwhile. The order of the kv stream sees to it that a half is not written before it has been
    read, and that no third tile's scores come before the first tile's exponentials are done.

    A token that is passed over takes its place and its time here, but moves neither maximum nor sum. A score of an
    operation of scores is scaled, and goes no further here.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    sum_valid, sum, sum_beat : In
        q.k of a token, unscaled, and the use of the token's last beat that it comes from.
    scale : In(32)
        Factor of the score whose sum is there.
    last_query : In
        Number of the last query; constant while an operation has weights to come.
    read_slot, read_token, read_query : In
        Which weight to read.
    weight : Out(params.factor_format.bits)
        That weight, one cycle later.
    alpha : Out(ArrayLayout(params.weight_format.bits, 2 * queries))
        Rescaling factors of the tile in each slot, those of a slot side by side.
    scored, score, score_beat : Out
        A scaled score, of any operation, and the use of its token's last beat.
    weight_written : Out(1)
        The weights of one more token can be read from the next cycle on.
    tile_weight : Out(1)
        And it is the first of its tile.
    final : Out(1)
        Those were the operation's last: from the next cycle on ``m`` and ``l`` are final.
    m, l : Out(ArrayLayout(32, queries))
        Running maximum and sum of every query.
    """

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        bits, weight_bits = params.state_format.bits, params.weight_format.bits
        every_query = data.ArrayLayout(bits, params.queries)
        super().__init__(
            {
                "sum_valid": In(1),
                "sum": In(bits),
                "sum_beat": In(beat_layout(params)),
                "scale": In(bits),
                "last_query": In(params.query_range),
                "read_slot": In(1),
                "read_token": In(token_shape(params)),
                "read_query": In(params.query_range),
                "weight": Out(params.factor_format.bits),
                "alpha": Out(data.ArrayLayout(weight_bits, 2 * params.queries)),
                "scored": Out(1),
                "score": Out(bits),
                "score_beat": Out(beat_layout(params)),
                "weight_written": Out(1),
                "tile_weight": Out(1),
                "final": Out(1),
                "m": Out(every_query),
                "l": Out(every_query),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the score path, the buffer, and the weights and their sum."""
        m = Module()
        params = self.params
        fmt = params.state_format
        m.submodules.exponentials = exponentials = Exponentials(params)

        # Scale, then maximum and buffer: a cycle each.
        score = Signal(fmt.bits, reset_less=True)
        scored = Signal()
        score_valid = Signal()
        score_beat = Signal(beat_layout(params))
        m.submodules.scaler = scaling = FloatMul(fmt, fmt, fmt)
        m.d.comb += [
            scaling.a.eq(self.sum),
            scaling.b.eq(self.scale),
            score_valid.eq(scored & ~score_beat.scored),
            self.scored.eq(scored),
            self.score.eq(score),
            self.score_beat.eq(score_beat),
        ]
        m.d.sync += scored.eq(self.sum_valid)
        with m.If(self.sum_valid):
            m.d.sync += [score.eq(scaling.o), score_beat.eq(self.sum_beat)]

        score_token = Signal(token_shape(params))
        score_query = score_beat.query[: params.query_bits]
        maximum_before = Signal.like(self.m, reset_less=True)
        unscored = Signal(init=1)
        tile_valid = Signal()
        tile = Signal(tile_layout(params))
        m.submodules.comparator = maximum = FloatMax(fmt)
        m.d.comb += [maximum.a.eq(score), maximum.b.eq(self.m[score_query])]
        with m.If(exponentials.tile_start):
            m.d.sync += tile_valid.eq(0)
        with m.If(score_valid):
            with m.If(~score_beat.skip):
                store(m, self.m, score_query, Mux(unscored, score, maximum.o))
                with m.If(~score_beat.again):
                    m.d.sync += unscored.eq(score_beat.final)
            with m.If(score_beat.token_first):
                store(m, maximum_before, score_query, self.m[score_query])
            with m.If(~score_beat.again):
                m.d.sync += score_token.eq(Mux(score_beat.token_last, 0, score_token + 1))
            with m.If(score_beat.token_last & ~score_beat.again):
                m.d.sync += [
                    tile_valid.eq(1),
                    tile.slot.eq(score_beat.slot),
                    tile.first.eq(score_beat.tile_first),
                    tile.final.eq(score_beat.final),
                    tile.end.eq(score_token),
                ]
        m.d.comb += [
            exponentials.tile_valid.eq(tile_valid),
            exponentials.tile.eq(tile),
            exponentials.last_query.eq(self.last_query),
            exponentials.maximum.eq(self.m),
            exponentials.maximum_before.eq(maximum_before),
        ]

        # Weights come back in the order of tiles, tokens and queries; alphas first where there are any.
        value, query = exponentials.value, exponentials.query[: params.query_bits]
        weight_slot = Signal()
        weight_token = Signal(token_shape(params))
        fresh = Signal(init=1)
        m.submodules.rescaler = rescale = FloatMul(fmt, params.weight_format, fmt)
        m.submodules.widener = widen = FloatRound(params.weight_format, fmt)
        m.submodules.adder = accumulate = FloatAdd(fmt)
        m.d.comb += [
            rescale.a.eq(self.l[query]),
            rescale.b.eq(value),
            widen.i.eq(value),
            accumulate.a.eq(self.l[query]),
            accumulate.b.eq(widen.o),
            self.weight_written.eq(exponentials.valid & exponentials.token_last),
            self.tile_weight.eq(self.weight_written & (weight_token == 0)),
            self.final.eq(exponentials.valid & exponentials.final),
        ]
        with m.If(exponentials.valid):
            with m.If(exponentials.is_alpha):
                store(m, self.alpha, Cat(query, weight_slot), value)
                store(m, self.l, query, rescale.o)
            with m.Elif(~exponentials.skipped):
                store(m, self.l, query, Mux(fresh, widen.o, accumulate.o))
            with m.If(exponentials.token_last):
                with m.If(~exponentials.skipped):
                    m.d.sync += fresh.eq(exponentials.final)
                m.d.sync += [
                    weight_token.eq(Mux(exponentials.tile_last, 0, weight_token + 1)),
                    weight_slot.eq(weight_slot ^ exponentials.tile_last),
                ]

        score_slot = Signal()
        read_slot = Signal()
        m.d.sync += [score_slot.eq(exponentials.read_slot), read_slot.eq(self.read_slot)]
        # As the multipliers take it: where they want another format than the exponential's, the addend of l serves.
        stored = value if params.factor_format == params.weight_format else widen.o
        scores, skips, weights = [], [], []
        word = data.StructLayout({"score": fmt.bits, "skip": 1})
        for number in range(2):
            slot = memory.Memory(shape=word, depth=max(params.tile_tokens * params.queries, 2), init=[])
            m.submodules[f"slot_{number}"] = slot
            write, score_read, weight_read = slot.write_port(), slot.read_port(), slot.read_port()
            # A half is written by the scores of its tile, later by their weights, never by both in one cycle.
            weight_here = exponentials.valid & ~exponentials.is_alpha & (weight_slot == number)
            m.d.comb += [
                write.en.eq(weight_here | (score_valid & (score_beat.slot == number))),
                write.addr.eq(Mux(weight_here, Cat(query, weight_token), Cat(score_query, score_token))),
                write.data.score.eq(Mux(weight_here, stored, score)),
                write.data.skip.eq(score_beat.skip),
                score_read.addr.eq(Cat(exponentials.read_query[: params.query_bits], exponentials.read_token)),
                weight_read.addr.eq(Cat(self.read_query[: params.query_bits], self.read_token)),
            ]
            scores.append(score_read.data.score)
            skips.append(score_read.data.skip)
            weights.append(weight_read.data.score)
        m.d.comb += [
            exponentials.score.eq(Mux(score_slot, scores[1], scores[0])),
            exponentials.skip.eq(Mux(score_slot, skips[1], skips[0])),
            self.weight.eq(Mux(read_slot, weights[1], weights[0])),
        ]
        return m
