"""Datapath of the processing unit: one array of multipliers and adders for q.K and for P.V."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.float import FloatAdd, FloatMul
from hw.layouts import body_layout, vector_layout
from hw.units.processing_sequencer import beat_layout

if TYPE_CHECKING:
    from amaranth.hdl import Value

    from hw.params import ProcessingParams

__all__ = ["Lane", "LaneArray"]


class Lane(wiring.Component):
    """One fp32 adder, with the words of o that it owns and the multiplier that rescales them.

    A beat loads the operand registers in one cycle and is added in the next. K: ``left + right``, a node
    of the adder tree; or, in the one lane that accumulates, the sum so far + ``right``. V: the word of o
    that the beat's index names (times alpha at the first token of a later tile) + ``product``, written
    back at the end of the cycle unless its token is passed over. Two V beats with the same index are two
    cycles apart at least, so a word is never read before it has been written.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.
    accumulates : bool
        This lane sums the beats of a token.

    Members
    -------
    load, load_beat : In(1), In(beat_layout)
        A beat whose operands are there.
    run, run_beat : In(1), In(beat_layout)
        The same one cycle later.
    left, right, product : In(32)
        Operands of the loading beat; ``left`` is unused by the lane that accumulates.
    alpha : In(ArrayLayout(params.weight_format.bits, 2))
        Rescaling factors of the tiles in both slots.
    drain, drain_index : In(1), In
        Show a word of o on ``word``; no V beat may load meanwhile.
    result : Out(32)
        Sum of the running beat.
    word : Out(32)
        The word of o being read.
    """

    def __init__(self, params: ProcessingParams, *, accumulates: bool) -> None:
        self.params = params
        self.accumulates = accumulates
        bits = params.state_format.bits
        super().__init__(
            {
                "load": In(1),
                "load_beat": In(beat_layout(params)),
                "run": In(1),
                "run_beat": In(beat_layout(params)),
                "left": In(bits),
                "right": In(bits),
                "product": In(bits),
                "alpha": In(data.ArrayLayout(params.weight_format.bits, 2)),
                "drain": In(1),
                "drain_index": In(range(params.beats)),
                "result": Out(bits),
                "word": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the lane."""
        m = Module()
        params = self.params
        fmt = params.state_format
        load_beat, run_beat = self.load_beat, self.run_beat

        m.submodules.words = words = memory.Memory(shape=fmt.bits, depth=params.beats, init=[])
        read = words.read_port(domain="comb")
        write = words.write_port()
        m.d.comb += [
            read.addr.eq(Mux(self.drain, self.drain_index, load_beat.index)),
            self.word.eq(read.data),
            write.addr.eq(run_beat.index),
            write.data.eq(self.result),
            write.en.eq(self.run & run_beat.is_value & ~run_beat.skip),
        ]

        m.submodules.rescaler = rescale = FloatMul(fmt, params.weight_format, fmt)
        m.d.comb += [rescale.a.eq(read.data), rescale.b.eq(self.alpha[load_beat.slot])]
        carried = Mux(load_beat.token_first, rescale.o, read.data)

        augend = Signal(fmt.bits, reset_less=True)
        addend = Signal(fmt.bits, reset_less=True)
        m.submodules.adder = adder = FloatAdd(fmt)
        fresh = run_beat.is_value & run_beat.tile_first & run_beat.token_first
        if self.accumulates:
            fresh = fresh | (~run_beat.is_value & (run_beat.index == 0))
            # The running sum lives in the operand register; a V beat may take it once the token's sum is out.
            with m.If(self.run & ~run_beat.is_value):
                m.d.sync += augend.eq(self.result)
            with m.If(self.load & load_beat.is_value):
                m.d.sync += augend.eq(carried)
        else:
            with m.If(self.load):
                m.d.sync += augend.eq(Mux(load_beat.is_value, carried, self.left))
        with m.If(self.load):
            m.d.sync += addend.eq(Mux(load_beat.is_value, self.product, self.right))
        m.d.comb += [adder.a.eq(augend), adder.b.eq(addend), self.result.eq(Mux(fresh, addend, adder.o))]
        return m


class LaneArray(wiring.Component):
    """``lanes`` multipliers and ``lanes`` :class:`Lane` adders, shared by both phases without conflict.

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
    alpha : In(ArrayLayout(params.weight_format.bits, 2))
        Rescaling factors of the tiles in both slots.
    sum_valid, sum, sum_beat : Out
        q.k of a token, unscaled, and its last beat.
    body : Out(stream)
        o of each operation, after its last V beat.
    body_done : Out(1)
        The last beat of o is entering the output register.
    """

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        super().__init__(
            {
                "query": In(vector_layout(params)),
                "query_index": In(range(params.beats)),
                "query_write": In(1),
                "accept": In(1),
                "beat": In(beat_layout(params)),
                "kv": In(vector_layout(params)),
                "weight": In(params.factor_format.bits),
                "alpha": In(data.ArrayLayout(params.weight_format.bits, 2)),
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
        drain_index = Signal(range(params.beats))
        drain_end = Signal(range(params.beats))
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
        complete = last_valid & last_beat.is_value & last_beat.final & last_beat.beat_last
        # The last beat's index outlives its operation: the next one may have other sizes.
        with m.If(complete):
            m.d.sync += [drain.eq(1), drain_end.eq(last_beat.index)]
        self._drain(m, words, drain, drain_index, drain_index == drain_end)
        return m

    def _multiply(self, m: Module, beat: data.View) -> list[Value]:
        """Build the multipliers of stage 1 and return the products: k times q, or v times its weight."""
        params = self.params
        operand = Signal(vector_layout(params), reset_less=True)
        with m.If(self.accept):
            m.d.sync += operand.eq(self.kv)
        m.submodules.query_words = words = memory.Memory(shape=vector_layout(params), depth=params.beats, init=[])
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

    def _drain(self, m: Module, words: list[Value], drain: Signal, index: Signal, last: Value) -> None:
        """Send the words of o, one beat a cycle, from the cycle after the last of them was written."""
        load = Signal()
        m.d.comb += [load.eq(drain & (~self.body.valid | self.body.ready)), self.body_done.eq(load & last)]
        with m.If(self.body.ready):
            m.d.sync += self.body.valid.eq(0)
        with m.If(load):
            m.d.sync += [
                self.body.valid.eq(1),
                *(self.body.payload.o[number].eq(word) for number, word in enumerate(words)),
                self.body.payload.last.eq(last),
                index.eq(Mux(last, 0, index + 1)),
            ]
            with m.If(last):
                m.d.sync += drain.eq(0)
