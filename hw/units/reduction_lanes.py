"""Bodies of the reduction unit: the lanes that multiply and add, and the scratch that holds the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.float import FloatAdd, FloatMul
from hw.layouts import body_layout
from hw.units.reduction_weights import plan_layout

if TYPE_CHECKING:
    from hw.params import ReductionParams

__all__ = ["ReductionLanes"]


class ReductionLanes(wiring.Component):
    """Merge one beat a cycle into the scratch, as the plans say; the beats of a last partial go out instead.

    Three stages, each a register: the fetched beat, product and other operand, output. The scratch is read beside the
    multiplication and written with the sum in the next cycle; a partial has at least two beats, so no word is read
    before it has been written. Its depth is the largest number of beats; operations of fewer use its first words.
    Whatever the scratch holds at first, an operation's first partial overwrites it.

    Parameters
    ----------
    params : ReductionParams
        Sizes of the unit.

    Members
    -------
    plan : In(stream.Signature(plan_layout))
        What to do with each partial; taken with its last beat.
    body_i : In(stream.Signature(body_layout)).array(num_sources)
        Bodies of the sources, each of 2 to ``beats`` beats, the final one marked ``last``.
    body_o : Out(stream.Signature(body_layout))
        Bodies of the merged states.
    """

    plan: stream.Interface
    body_i: list[stream.Interface]
    body_o: stream.Interface

    def __init__(self, params: ReductionParams) -> None:
        self.params = params
        bodies = stream.Signature(body_layout(params))
        super().__init__(
            {
                "plan": In(stream.Signature(plan_layout(params))),
                "body_i": In(bodies).array(params.num_sources),
                "body_o": Out(bodies),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the three stages."""
        m = Module()
        params = self.params
        fmt = params.state_format
        words = data.ArrayLayout(fmt.bits, params.lanes)
        weight = params.weight_format
        control_layout = data.StructLayout(
            {"index": range(params.beats), "copy": 1, "scale_sum": 1, "last": 1, "end": 1, "weight": weight.bits}
        )

        fetched_valid, fetched_ready = Signal(), Signal()
        fetched, fetched_control = Signal(words), Signal(control_layout)
        product_valid, product_ready = Signal(), Signal()
        product, other, product_control = Signal(words), Signal(words), Signal(control_layout)
        output_ready = ~self.body_o.valid | self.body_o.ready
        m.d.comb += [
            product_ready.eq(~product_valid | ~product_control.last | output_ready),
            fetched_ready.eq(~fetched_valid | product_ready),
        ]

        # Fetch.
        plan = self.plan.payload
        index = Signal(range(params.beats))
        beat = Signal(self.body_i[0].payload.shape())
        take = Signal()
        offered = Signal()
        ready = self.plan.valid & fetched_ready
        with m.Switch(plan.source):
            for number, port in enumerate(self.body_i):
                with m.Case(number) if number < params.num_sources - 1 else m.Default():
                    m.d.comb += [beat.eq(port.payload), offered.eq(port.valid)]
        m.d.comb += take.eq(offered & ready)
        m.d.comb += [port.ready.eq(ready & (plan.source == number)) for number, port in enumerate(self.body_i)]
        m.d.comb += self.plan.ready.eq(take & beat.last)
        with m.If(fetched_ready):
            m.d.sync += fetched_valid.eq(take)
        with m.If(take):
            m.d.sync += [
                index.eq(Mux(beat.last, 0, index + 1)),
                fetched.eq(beat.o),
                fetched_control.index.eq(index),
                fetched_control.copy.eq(plan.copy),
                fetched_control.scale_sum.eq(plan.scale_sum),
                fetched_control.last.eq(plan.last),
                fetched_control.end.eq(beat.last),
                fetched_control.weight.eq(plan.weight),
            ]

        # Multiply.
        m.submodules.scratch = scratch = memory.Memory(shape=words, depth=params.beats, init=[])
        read = scratch.read_port(domain="comb")
        write = scratch.write_port()
        m.d.comb += read.addr.eq(fetched_control.index)
        with m.If(product_ready):
            m.d.sync += product_valid.eq(fetched_valid)
            with m.If(fetched_valid):
                m.d.sync += product_control.eq(fetched_control)
        total = Signal(words)
        for lane in range(params.lanes):
            m.submodules[f"multiply_{lane}"] = multiply = FloatMul(fmt, weight, fmt)
            m.submodules[f"add_{lane}"] = add = FloatAdd(fmt)
            # Of a first partial the beat itself is the sum; then the scratch is not looked at.
            keep = fetched_control.scale_sum | fetched_control.copy
            m.d.comb += [
                multiply.a.eq(Mux(fetched_control.scale_sum, read.data[lane], fetched[lane])),
                multiply.b.eq(fetched_control.weight),
                add.a.eq(product[lane]),
                add.b.eq(other[lane]),
                total[lane].eq(Mux(product_control.copy, other[lane], add.o)),
            ]
            with m.If(product_ready & fetched_valid):
                m.d.sync += [
                    product[lane].eq(multiply.o),
                    other[lane].eq(Mux(keep, fetched[lane], read.data[lane])),
                ]

        # Add.
        leave = product_valid & product_ready
        m.d.comb += [
            write.addr.eq(product_control.index),
            write.data.eq(total),
            write.en.eq(leave & ~product_control.last),
        ]
        with m.If(self.body_o.ready):
            m.d.sync += self.body_o.valid.eq(0)
        with m.If(leave & product_control.last):
            m.d.sync += [
                self.body_o.valid.eq(1),
                self.body_o.payload.o.eq(total),
                self.body_o.payload.last.eq(product_control.end),
            ]
        return m
