"""One lane of the processing unit's array: an adder, and the words of o that it owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.float import FloatAdd, FloatMul
from hw.units.processing_beat import beat_layout
from hw.units.processing_queries import store

if TYPE_CHECKING:
    from hw.params import ProcessingParams

__all__ = ["Lane"]


class Lane(wiring.Component):
    """One fp32 adder, with the words of o that it owns and the multiplier that rescales them.

    A beat loads the operand registers in one cycle and is added in the next. K: ``left + right``, a node
    of the adder tree; or, in the one lane that accumulates, the sum so far + ``right``. V: the word of o
    that the beat's index names (times alpha at the first token of a later tile) + ``product``, written
    back at the end of the cycle unless its token is passed over. Two V beats with the same index are two
    cycles apart at least, so a word is never read before it has been written.

    With several queries the sums of a token so far are several: a beat finds the one of its query in the operand
    register, if its predecessor left it there, or in a word of its own.

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
    alpha : In(ArrayLayout(params.weight_format.bits, 2 * queries))
        Rescaling factors of the tiles in both slots, those of a slot side by side.
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
                "alpha": In(data.ArrayLayout(params.weight_format.bits, 2 * params.queries)),
                "drain": In(1),
                "drain_index": In(range(params.held_beats)),
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

        m.submodules.words = words = memory.Memory(shape=fmt.bits, depth=params.held_beats, init=[])
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
        m.d.comb += [
            rescale.a.eq(read.data),
            rescale.b.eq(self.alpha[Cat(load_beat.query[: params.query_bits], load_beat.slot)]),
        ]
        carried = Mux(load_beat.token_first, rescale.o, read.data)

        augend = Signal(fmt.bits, reset_less=True)
        addend = Signal(fmt.bits, reset_less=True)
        m.submodules.adder = adder = FloatAdd(fmt)
        fresh = run_beat.is_value & run_beat.tile_first & run_beat.token_first
        if self.accumulates:
            # The uses of a token's first beat have the numbers of their queries.
            fresh = fresh | (~run_beat.is_value & (run_beat.index == run_beat.query))
            # The running sum lives in the operand register; a V beat may take it once the token's sum is out.
            with m.If(self.run & ~run_beat.is_value):
                m.d.sync += augend.eq(self.result)
            if params.queries > 1:
                self._keep_sums(m, augend)
            with m.If(self.load & load_beat.is_value):
                m.d.sync += augend.eq(carried)
        else:
            with m.If(self.load):
                m.d.sync += augend.eq(Mux(load_beat.is_value, carried, self.left))
        with m.If(self.load):
            m.d.sync += addend.eq(Mux(load_beat.is_value, self.product, self.right))
        m.d.comb += [adder.a.eq(augend), adder.b.eq(addend), self.result.eq(Mux(fresh, addend, adder.o))]
        return m

    def _keep_sums(self, m: Module, augend: Signal) -> None:
        """Keep the running sum of every query, and load that of another query than the running one's."""
        load_beat, run_beat = self.load_beat, self.run_beat
        sums = Signal(data.ArrayLayout(self.params.state_format.bits, self.params.queries), reset_less=True)
        running = self.run & ~run_beat.is_value
        with m.If(running):
            store(m, sums, run_beat.query, self.result)
        with m.If(self.load & ~(running & (run_beat.query == load_beat.query))):
            m.d.sync += augend.eq(sums[load_beat.query])
