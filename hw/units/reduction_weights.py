"""Heads of the reduction unit: running maximum, one exponential a partial, running sum, and the plan for the bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from hw.float import FloatAdd, FloatMax, FloatMul
from hw.layouts import head_layout
from hw.timing.reduction_recurrence import PLAN_DEPTH, weight_queue_depth
from hw.units.reduction_exponentials import ReductionExponentials, places

if TYPE_CHECKING:
    from hw.params import ReductionParams

__all__ = ["ReductionWeights", "plan_layout"]


def plan_layout(params: ReductionParams) -> data.StructLayout:
    """Describe what to do with one partial's body.

    ``source`` is the stream it comes from; ``copy`` says that it is the operation's first and replaces the sum;
    else ``weight`` scales the incoming beats, or the sum if ``scale_sum``; ``last`` sends the sum on.
    """
    weight_bits = params.weight_format.bits
    return data.StructLayout(
        {"source": places(params.num_sources), "copy": 1, "scale_sum": 1, "last": 1, "weight": weight_bits}
    )


class ReductionWeights(wiring.Component):
    """Take the heads of every operation in order and turn them into one merged head and a plan a partial.

    Heads, one a cycle: the maximum is updated, and ``small - large`` of the two maxima goes to an exponential unit,
    in turn. The head waits in a register until it is known whether it is its operation's last contributing one,
    then in the queue until its weight is there. Then, two cycles each: ``l = l_large + w * l_small``, while the
    plan goes to the bodies; the last one also fills the output register.

    The queue holds every head that was taken and has no weight yet, so the exponentials always find room for a result.

    Parameters
    ----------
    params : ReductionParams
        Sizes of the unit.

    Members
    -------
    head_i : In(stream.Signature(head_layout)).array(num_sources)
        Heads of the sources.
    head_o : Out(stream.Signature(head_layout))
        Heads of the merged states.
    plan : Out(stream.Signature(plan_layout))
        What to do with each contributing partial's body.
    """

    head_i: list[stream.Interface]
    head_o: stream.Interface
    plan: stream.Interface

    def __init__(self, params: ReductionParams) -> None:
        self.params = params
        heads = stream.Signature(head_layout(params))
        super().__init__(
            {
                "head_i": In(heads).array(params.num_sources),
                "head_o": Out(heads),
                "plan": Out(stream.Signature(plan_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the path of the heads."""
        m = Module()
        params = self.params
        fmt = params.state_format
        depth = weight_queue_depth(params)
        entry_layout = data.StructLayout(
            {
                "source": places(params.num_sources),
                "copy": 1,
                "scale_sum": 1,
                "last": 1,
                "head": head_layout(params),
            }
        )

        # Take one head a cycle, source by source.
        source = Signal(places(params.num_sources))
        head = Signal(head_layout(params))
        take = Signal()
        ready = Signal()
        offered = Signal()
        with m.Switch(source):
            for number, port in enumerate(self.head_i):
                with m.Case(number) if number < params.num_sources - 1 else m.Default():
                    m.d.comb += [head.eq(port.payload), offered.eq(port.valid)]
        m.d.comb += take.eq(offered & ready)
        m.d.comb += [port.ready.eq(ready & (source == number)) for number, port in enumerate(self.head_i)]
        first = source == 0
        final = source == params.num_sources - 1
        with m.If(take):
            m.d.sync += source.eq(Mux(final, 0, source + 1))

        # What the operation's heads have shown so far.
        op_id = Signal(params.op_id_bits)
        fault = Signal()
        some = Signal()
        maximum = Signal(fmt.bits)
        m.submodules.compare = compare = FloatMax(fmt)
        now = Signal(head_layout(params))
        contributes = Signal()
        m.d.comb += [
            compare.a.eq(head.m),
            compare.b.eq(maximum),
            now.op_id.eq(Mux(first, head.op_id, op_id)),
            now.fault.eq(head.fault | (~first & (fault | (head.op_id != op_id)))),
            now.m.eq(Mux(some, compare.o, head.m)),
            now.l.eq(head.l),
            contributes.eq(~head.empty),
        ]
        with m.If(take):
            m.d.sync += [op_id.eq(now.op_id), fault.eq(now.fault), some.eq(~final & (some | contributes))]
            with m.If(contributes):
                m.d.sync += maximum.eq(now.m)

        # The head in waiting: pushed once it is known whether it is the last.
        waiting = Signal()
        complete = Signal()
        entry = Signal(entry_layout)
        make = Signal()
        push = Signal()
        m.d.comb += [
            make.eq(take & (contributes | (final & ~some))),
            push.eq(waiting & (complete | (take & (contributes | final)))),
        ]
        with m.If(push):
            m.d.sync += waiting.eq(0)
        with m.If(make):
            m.d.sync += [
                waiting.eq(1),
                complete.eq(final),
                entry.source.eq(source),
                entry.copy.eq(~some),
                entry.scale_sum.eq(some & compare.gt),
                entry.head.eq(now),
                entry.head.empty.eq(~contributes),
            ]
        m.submodules.queue = queue = SyncFIFO(width=entry_layout.size, depth=depth)
        pushed = Signal(entry_layout)
        m.d.comb += [
            pushed.eq(entry),
            pushed.last.eq(complete | ~contributes),
            queue.w_data.eq(pushed),
            queue.w_en.eq(push),
        ]
        with m.If(~complete):
            # An empty head at the end of the operation can still bring a fault.
            m.d.comb += [pushed.head.op_id.eq(now.op_id), pushed.head.fault.eq(now.fault)]

        m.submodules.exponentials = exponentials = ReductionExponentials(params)
        ahead = Signal(range(depth + 1))
        m.d.comb += [
            exponentials.i.valid.eq(take & contributes & some),
            exponentials.i.payload.small.eq(Mux(compare.gt, maximum, head.m)),
            exponentials.i.payload.large.eq(Mux(compare.gt, head.m, maximum)),
            ready.eq((ahead != depth) & exponentials.i.ready),
        ]
        m.d.sync += ahead.eq(ahead + make - queue.r_en)

        self._sum(m, queue, data.View(entry_layout, queue.r_data), exponentials.o)
        return m

    def _sum(self, m: Module, queue: SyncFIFO, entry: data.View, weight: stream.Interface) -> None:
        """Build the running sum, the queue of plans and the output register."""
        params = self.params
        fmt = params.state_format
        layout = plan_layout(params)

        m.submodules.plans = plans = SyncFIFO(width=layout.size, depth=PLAN_DEPTH)
        busy = Signal()
        done = Signal()
        step = Signal(data.StructLayout({"copy": 1, "last": 1, "head": head_layout(params)}))
        product = Signal(fmt.bits)
        other = Signal(fmt.bits)
        total = Signal(fmt.bits)
        pop = Signal()
        weighs = Signal()
        plan = Signal(layout)
        m.submodules.multiply = multiply = FloatMul(fmt, params.weight_format, fmt)
        m.submodules.add = add = FloatAdd(fmt)
        m.d.comb += [
            weighs.eq(~(entry.copy | entry.head.empty)),
            pop.eq(queue.r_rdy & (weight.valid | ~weighs) & ~busy & plans.w_rdy),
            queue.r_en.eq(pop),
            weight.ready.eq(pop & weighs),
            multiply.a.eq(Mux(entry.scale_sum, total, entry.head.l)),
            multiply.b.eq(weight.payload),
            add.a.eq(product),
            add.b.eq(other),
            plan.source.eq(entry.source),
            plan.copy.eq(entry.copy),
            plan.scale_sum.eq(entry.scale_sum),
            plan.last.eq(entry.last),
            plan.weight.eq(weight.payload),
            plans.w_data.eq(plan),
            plans.w_en.eq(pop & ~entry.head.empty),
            self.plan.valid.eq(plans.r_rdy),
            self.plan.payload.eq(plans.r_data),
            plans.r_en.eq(self.plan.ready),
        ]
        with m.If(pop):
            m.d.sync += [
                busy.eq(1),
                step.copy.eq(entry.copy),
                step.last.eq(entry.last),
                step.head.eq(entry.head),
                product.eq(multiply.o),
                other.eq(Mux(entry.scale_sum | entry.copy, entry.head.l, total)),
            ]
        result = Signal(fmt.bits)
        m.d.comb += [
            result.eq(Mux(step.copy, other, add.o)),
            done.eq(busy & (~step.last | ~self.head_o.valid | self.head_o.ready)),
        ]
        with m.If(self.head_o.ready):
            m.d.sync += self.head_o.valid.eq(0)
        with m.If(done):
            m.d.sync += [busy.eq(0), total.eq(result)]
            with m.If(step.last):
                minus_infinity = fmt.inf_code | fmt.sign_mask
                m.d.sync += [
                    self.head_o.valid.eq(1),
                    self.head_o.payload.eq(step.head),
                    self.head_o.payload.m.eq(Mux(step.head.empty, minus_infinity, step.head.m)),
                    self.head_o.payload.l.eq(Mux(step.head.empty, 0, result)),
                ]
