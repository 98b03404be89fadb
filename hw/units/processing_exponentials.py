"""Exponentials of the processing unit: when each is issued, and the path from a score to its weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.float import FloatAdd, FloatRound
from hw.units.exp import ExpUnit
from hw.units.processing_beat import token_shape

if TYPE_CHECKING:
    from hw.params import ProcessingParams

__all__ = ["Exponentials", "tile_layout"]


def tile_layout(params: ProcessingParams) -> data.StructLayout:
    """Return the layout of a tile that waits for its exponentials.

    ``slot`` is its half of the buffer, ``first`` and ``final`` its place in the operation and ``end`` its
    last token's number.
    """
    return data.StructLayout({"slot": 1, "first": 1, "final": 1, "end": token_shape(params)})


class Exponentials(wiring.Component):
    """Issue the exponentials of each tile, one a cycle: alphas (not in the first tile), then the tokens in order.

    ``exp(score - maximum)``, the difference rounded to the format of the weights, with one subtractor, one rounder and
    one exponential unit; alpha is the exponential of ``maximum_before - maximum``. Each is one for every query, query
    after query. Results come out in the same order a fixed time later.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    tile_valid, tile : In(1), In(tile_layout)
        A tile waits; it, ``maximum`` and ``maximum_before`` hold until ``tile_start``.
    last_query : In
        Number of the operation's last query, until its last result is out.
    tile_start : Out(1)
        The waiting tile's first exponential is issued in this cycle.
    maximum, maximum_before : In(ArrayLayout(32, queries))
        Running maximum of every query with and without that tile.
    read_slot, read_token, read_query : Out
        Which score to read.
    score, skip : In(32), In(1)
        That score, and whether its token is passed over, one cycle later.
    valid, value : Out(1), Out(params.weight_format.bits)
        A result.
    query : Out
        Its query.
    is_alpha, token_last, tile_last, final : Out(1)
        What it is: a rescaling factor, a token's last weight, the last of its tile, the last of its operation.
    skipped : Out(1)
        It is a weight of a token that is passed over.
    """

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        maxima = data.ArrayLayout(params.state_format.bits, params.queries)
        super().__init__(
            {
                "tile_valid": In(1),
                "tile": In(tile_layout(params)),
                "last_query": In(params.query_range),
                "tile_start": Out(1),
                "maximum": In(maxima),
                "maximum_before": In(maxima),
                "read_slot": Out(1),
                "read_token": Out(token_shape(params)),
                "read_query": Out(params.query_range),
                "score": In(params.state_format.bits),
                "skip": In(1),
                "valid": Out(1),
                "value": Out(params.weight_format.bits),
                "query": Out(params.query_range),
                "is_alpha": Out(1),
                "token_last": Out(1),
                "tile_last": Out(1),
                "final": Out(1),
                "skipped": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the issue, the subtractor, the rounder and the exponential unit."""
        m = Module()
        params = self.params
        fmt = params.state_format
        tag_layout = data.StructLayout({"query": params.query_range, "is_alpha": 1, "tile_last": 1, "final": 1})

        busy = Signal()
        current = Signal(tile_layout(params))
        now = Signal(tile_layout(params))
        next_token = Signal(token_shape(params))
        next_query = Signal(params.query_range)
        next_alpha = Signal()
        issue = Signal()
        is_alpha = Signal()
        query_last = Signal()
        tile_last = Signal()
        tag = Signal(tag_layout)
        m.d.comb += [
            self.tile_start.eq(self.tile_valid & ~busy),
            issue.eq(self.tile_start | busy),
            now.eq(Mux(busy, current.as_value(), self.tile.as_value())),
            self.read_slot.eq(now.slot),
            self.read_token.eq(Mux(busy, next_token, 0)),
            self.read_query.eq(Mux(busy, next_query, 0)),
            is_alpha.eq(Mux(busy, next_alpha, ~self.tile.first)),
            query_last.eq(self.read_query == self.last_query),
            tile_last.eq(~is_alpha & query_last & (self.read_token == now.end)),
            tag.query.eq(self.read_query),
            tag.is_alpha.eq(is_alpha),
            tag.tile_last.eq(tile_last),
            tag.final.eq(tile_last & now.final),
        ]
        with m.If(issue):
            m.d.sync += [
                busy.eq(~tile_last),
                current.eq(now),
                next_token.eq(Mux(is_alpha, 0, self.read_token + query_last)),
                next_query.eq(Mux(query_last, 0, self.read_query + 1)),
                next_alpha.eq(is_alpha & ~query_last),
            ]
        maximum = Signal.like(self.maximum, reset_less=True)
        maximum_before = Signal.like(self.maximum, reset_less=True)
        with m.If(self.tile_start):
            m.d.sync += [maximum.eq(self.maximum), maximum_before.eq(self.maximum_before)]

        # The stages behind the issue: read, subtract, round, exponential unit.
        stages = 3
        valids = [issue]
        tags = [tag]
        skipped = self.skip
        for stage in range(1, stages + 1 + params.exp.latency_cycles):
            tags.append(Signal(tag_layout, name=f"tag_{stage}"))
            m.d.sync += tags[stage].eq(tags[stage - 1])
            if stage > 1:
                skipped_before, skipped = skipped, Signal(name=f"skipped_{stage}")
                m.d.sync += skipped.eq(skipped_before)
            if stage <= stages:
                valids.append(Signal(name=f"valid_{stage}"))
                m.d.sync += valids[stage].eq(valids[stage - 1])

        m.submodules.subtractor = subtract = FloatAdd(fmt)
        m.submodules.rounder = rounder = FloatRound(fmt, params.weight_format)
        m.submodules.exp = exp = ExpUnit(params.exp)
        difference = Signal(fmt.bits, reset_less=True)
        operand = Signal(params.weight_format.bits, reset_less=True)
        m.d.comb += [
            subtract.a.eq(Mux(tags[1].is_alpha, maximum_before[tags[1].query], self.score)),
            subtract.b.eq(maximum[tags[1].query] ^ fmt.sign_mask),
            rounder.i.eq(difference),
        ]
        with m.If(valids[1]):
            m.d.sync += difference.eq(subtract.o)
        with m.If(valids[2]):
            m.d.sync += operand.eq(rounder.o)
        m.d.comb += [
            exp.i.valid.eq(valids[3]),
            exp.i.payload.eq(operand),
            exp.o.ready.eq(1),
            self.valid.eq(exp.o.valid),
            self.value.eq(exp.o.payload),
            self.query.eq(tags[-1].query),
            self.is_alpha.eq(tags[-1].is_alpha),
            self.token_last.eq(~tags[-1].is_alpha & (tags[-1].query == self.last_query)),
            self.tile_last.eq(tags[-1].tile_last),
            self.final.eq(tags[-1].final),
            self.skipped.eq(skipped),
        ]
        return m
