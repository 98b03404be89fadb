"""Datapath of the processing unit: one array of multipliers and adders for q.K and for P.V."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.float import FloatMul
from hw.layouts import body_layout, vector_layout
from hw.units.processing_beat import beat_layout
from hw.units.processing_lane import Lane

if TYPE_CHECKING:
    from amaranth.hdl import Value

    from hw.params import ProcessingParams

__all__ = ["LaneArray"]


class LaneArray(wiring.Component):
    """``lanes`` multipliers and adders (:class:`hw.units.processing_lane.Lane`), shared by both phases at no conflict.

    For K beats the adders are a tree: level 1 adds products 2i and 2i + 1, level 2 those sums, and so on;
    the last adder accumulates the beats of a token. A beat meets level i in stage i + 1. For V beats every
    adder owns one lane of o; the product for an adder of level i is delayed so that it, too, comes in
    stage i + 1. So K and V beats follow each other in any order, one a cycle.

    Lanes 0 to lanes/2 - 1 belong to level 1, the next lanes/4 to level 2, and so on; lane ``lanes - 1`` is
    the one that accumulates.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    query, query_index, query_write : In
        One beat of the query, its place, and its write strobe.
    accept, beat, kv : In
        A kv beat and what it is.
    weight : In(params.factor_format.bits)
        Weight of the V token accepted in the cycle before.
    alpha : In(ArrayLayout(params.weight_format.bits, 2 * queries))
        Rescaling factors of the tiles in both slots, those of a slot side by side.
    sum_valid, sum, sum_beat : Out
        q.k of a token, unscaled, and its last beat.
    body : Out(stream)
        o of each query of an operation, after its last V beat.
    body_done : Out(1)
        The last beat of o is entering the output register.
    """

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        super().__init__(
            {
                "query": In(vector_layout(params)),
                "query_index": In(range(params.held_beats)),
                "query_write": In(1),
                "accept": In(1),
                "beat": In(beat_layout(params)),
                "kv": In(vector_layout(params)),
                "weight": In(params.factor_format.bits),
                "alpha": In(data.ArrayLayout(params.weight_format.bits, 2 * params.queries)),
                "sum_valid": Out(1),
                "sum": Out(params.state_format.bits),
                "sum_beat": Out(beat_layout(params)),
                "body": Out(stream.Signature(body_layout(params))),
                "body_done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the array."""
        m = Module()
        params = self.params
        lanes = params.lanes
        levels = lanes.bit_length() - 1

        # valid[s], beat[s]: the beat in pipeline stage s; stage 0 is the one that accepts.
        valid: list[Value] = [self.accept]
        beat = [self.beat]
        for stage in range(1, levels + 3):
            valid.append(Signal(name=f"valid_{stage}"))
            beat.append(Signal(beat_layout(params), name=f"beat_{stage}"))
            m.d.sync += valid[stage].eq(valid[stage - 1])
            with m.If(valid[stage - 1]):
                m.d.sync += beat[stage].eq(beat[stage - 1])

        drain = Signal()
        drain_index = Signal(range(params.held_beats))
        drain_end = Signal(range(params.held_beats))
        drain_query = Signal(params.query_range)
        drain_last = Signal(params.query_range)
        delayed = self._multiply(m, beat[1])
        sums: list[Value] = list(delayed)
        words: list[Value] = []
        for level in range(1, levels + 2):
            nodes = []
            for node in range(max(lanes >> level, 1)):
                number = len(words)
                lane = Lane(params, accumulates=level > levels)
                m.submodules[f"lane_{number}"] = lane
                m.d.comb += [
                    lane.load.eq(valid[level]),
                    lane.load_beat.eq(beat[level]),
                    lane.run.eq(valid[level + 1]),
                    lane.run_beat.eq(beat[level + 1]),
                    lane.product.eq(delayed[number]),
                    lane.right.eq(sums[2 * node + 1 if level <= levels else 0]),
                    lane.alpha.eq(self.alpha),
                    lane.drain.eq(drain),
                    lane.drain_index.eq(drain_index),
                ]
                if level <= levels:
                    m.d.comb += lane.left.eq(sums[2 * node])
                nodes.append(lane.result)
                words.append(lane.word)
            for number in range(len(words), lanes):
                product = Signal(params.state_format.bits, name=f"product_{number}_{level}", reset_less=True)
                m.d.sync += product.eq(delayed[number])
                delayed[number] = product
            sums = nodes

        last_valid, last_beat = valid[-1], beat[-1]
        m.d.sync += self.sum_valid.eq(last_valid & ~last_beat.is_value & last_beat.beat_last)
        with m.If(last_valid):
            m.d.sync += [self.sum.eq(sums[0]), self.sum_beat.eq(last_beat)]
        complete = last_valid & last_beat.is_value & last_beat.final & last_beat.beat_last & ~last_beat.again
        # The last beat's index outlives its operation: the next one may have other sizes.
        with m.If(complete):
            m.d.sync += [
                drain.eq(1),
                drain_end.eq(last_beat.index - last_beat.query),
                drain_last.eq(last_beat.query),
            ]
        load = Signal()
        query_end = Signal()
        last = query_end & (drain_query == drain_last)
        m.d.comb += [
            load.eq(drain & (~self.body.valid | self.body.ready)),
            query_end.eq(drain_index == drain_end + drain_query),
            self.body_done.eq(load & last),
        ]
        with m.If(load):
            m.d.sync += [
                drain.eq(~last),
                drain_query.eq(Mux(last, 0, drain_query + query_end)),
                drain_index.eq(Mux(last, 0, Mux(query_end, drain_query, drain_index + drain_last) + 1)),
            ]
        self._send(m, words, load, query_end)
        return m

    def _multiply(self, m: Module, beat: data.View) -> list[Value]:
        """Build the multipliers of stage 1 and return the products: k times q, or v times its weight."""
        params = self.params
        operand = Signal(vector_layout(params), reset_less=True)
        with m.If(self.accept & (self.beat.query == 0)):
            m.d.sync += operand.eq(self.kv)
        m.submodules.query_words = words = memory.Memory(shape=vector_layout(params), depth=params.held_beats, init=[])
        write = words.write_port()
        read = words.read_port()
        m.d.comb += [
            write.addr.eq(self.query_index),
            write.data.eq(self.query),
            write.en.eq(self.query_write),
            read.addr.eq(self.beat.index),
        ]
        products = []
        for number in range(params.lanes):
            multiply = FloatMul(params.kv_format, params.factor_format, params.state_format)
            m.submodules[f"multiplier_{number}"] = multiply
            m.d.comb += [
                multiply.a.eq(operand[number]),
                multiply.b.eq(self._factor(beat.is_value, read.data[number])),
            ]
            products.append(multiply.o)
        return products

    def _factor(self, is_value: Value, query: Value) -> Value:
        """Choose between the weight and an element of q, both in ``factor_format``."""
        params = self.params
        factor = params.factor_format
        if factor == params.kv_format:
            return Mux(is_value, self.weight, query)
        # bf16 is the upper half of fp32; and where no weight has bits, constants keep the multiplier small.
        upper = Cat(Const(0, factor.bits - params.kv_format.bits), query)
        unused = factor.significand_bits - params.weight_format.significand_bits
        return Mux(is_value, Cat(Const(0, unused), self.weight[unused:]), upper)

    def _send(self, m: Module, words: list[Value], load: Signal, last: Signal) -> None:
        """Send the words of o, one beat a cycle, from the cycle after the last of them was written."""
        with m.If(self.body.ready):
            m.d.sync += self.body.valid.eq(0)
        with m.If(load):
            m.d.sync += [
                self.body.valid.eq(1),
                *(self.body.payload.o[number].eq(word) for number, word in enumerate(words)),
                self.body.payload.last.eq(last),
            ]
