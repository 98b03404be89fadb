"""The finish unit in Amaranth: divides the merged state by its running sum, at the root of the merge."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.float import FloatMul, FloatRound
from hw.layouts import body_layout, head_layout, output_layout
from hw.params import FinishParams
from hw.units.reciprocal import Reciprocal

__all__ = ["FinishUnit"]


class FinishUnit(wiring.Component):
    """Attention output of one merged state.

    Overview
    --------
    ``output = o / l``, as ``r = 1 / l`` once an operation and ``o_i * r`` for each element: one reciprocal, then
    ``lanes`` multiplications a beat. An operation that is empty, or whose l is zero of either sign, gives zeros,
    flagged ``empty``.

    Protocol
    --------
    Plain ready/valid streams. In: one transfer on ``head`` and, unless it is ``empty``, transfers on ``body`` up to
    and with one marked ``last``: any number of beats, another one in each operation; heads may run ahead of bodies.
    Out: a beat for each beat of the body, ``last`` on the final one, each with the operation's id and flags. An empty
    operation has no body that could tell its length: it gives one beat, marked ``empty`` and ``last``. ``output`` is
    registered; ``head.ready`` and ``body.ready`` follow ``output.ready`` combinationally, no valid depends on a ready.

    Timing
    ------
    Two operations of two beats (each letter a transfer)::

        cycle    0  1  ... 14 15 16 17 18 ... 29 30 31 32
        head     A  .      B  .  .  .  .      .  .  .  .
        body     .  .      .  a  a  .  .      b  b  .  .
        output   .  .      .  .  .  A  A      .  .  B  B

    Latency and throughput
    ----------------------
    17 cycles from a head to its first output beat. An operation every ``max(beats, 14)`` cycles, with that operation's
    own beats: the reciprocal of the next one is made while this one multiplies. That is 14 at d = 128 and 16 lanes,
    less than the reduction unit before it needs for two partials. :func:`hw.timing.finish.cycles` gives whole runs,
    :func:`hw.timing.finish.predict` every cycle of a stalled one.

    Numerics
    --------
    r is 1 / l correctly rounded to fp32; the product is rounded to fp32, then to fp16 or bf16; to nearest even,
    subnormals kept, every NaN the canonical one. Bit for bit :func:`golden.partial.finish` with
    :func:`golden.numerics.unit_numerics`. For l between 2^-126 and 2^126 (attention's own is at least 1) and a quotient
    in fp16's range the result is within 0.5003 ulp of fp16, or 0.50004 ulp of bf16, of the exact o / l: half an ulp
    from the last rounding, and 2^-22.9 of the value from the two before it (``tests/rtl/test_finish.py`` holds the RTL
    to it).

    Parameters
    ----------
    params : FinishParams
        Sizes of the unit. ``head_dim`` shapes nothing here: no buffer of the unit holds a body.

    Members
    -------
    head : ``In(stream.Signature(head_layout(params)))``
        Heads of the states; m is not used.
    body : ``In(stream.Signature(body_layout(params)))``
        Bodies of the states.
    output : ``Out(stream.Signature(output_layout(params)))``
        Attention output.

    Raises
    ------
    TypeError
        If ``params`` is not a FinishParams.
    """

    head: stream.Interface
    body: stream.Interface
    output: stream.Interface

    def __init__(self, params: FinishParams) -> None:
        if not isinstance(params, FinishParams):
            raise TypeError(f"params must be a FinishParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "head": In(stream.Signature(head_layout(params))),
                "body": In(stream.Signature(body_layout(params))),
                "output": Out(stream.Signature(output_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the reciprocal and the two stages behind it."""
        m = Module()
        params = self.params
        fmt = params.state_format
        tag_layout = data.StructLayout({"op_id": params.op_id_bits, "fault": 1, "bodiless": 1, "zeros": 1})
        control_layout = data.StructLayout({"op_id": params.op_id_bits, "fault": 1, "zeros": 1, "last": 1})

        m.submodules.reciprocal = reciprocal = Reciprocal(fmt, tag_layout)
        head = self.head.payload
        tag = Signal(tag_layout)
        m.d.comb += [
            tag.op_id.eq(head.op_id),
            tag.fault.eq(head.fault),
            tag.bodiless.eq(head.empty),
            tag.zeros.eq(head.empty | ~head.l[:-1].any()),
            reciprocal.i.payload.value.eq(head.l),
            reciprocal.i.payload.tag.eq(tag),
            reciprocal.i.valid.eq(self.head.valid),
            self.head.ready.eq(reciprocal.i.ready),
        ]

        # Multiply: the reciprocal waits in its register until the operation's last beat.
        current = reciprocal.o.payload
        last = Signal()
        take = Signal()
        product_valid, product_ready = Signal(), Signal()
        control = Signal(control_layout)
        m.d.comb += [
            last.eq(current.tag.bodiless | self.body.payload.last),
            product_ready.eq(~product_valid | ~self.output.valid | self.output.ready),
            self.body.ready.eq(reciprocal.o.valid & ~current.tag.bodiless & product_ready),
            take.eq(reciprocal.o.valid & product_ready & (current.tag.bodiless | self.body.valid)),
            reciprocal.o.ready.eq(take & last),
        ]
        with m.If(product_ready):
            m.d.sync += product_valid.eq(take)
        with m.If(take):
            m.d.sync += [
                control.op_id.eq(current.tag.op_id),
                control.fault.eq(current.tag.fault),
                control.zeros.eq(current.tag.zeros),
                control.last.eq(last),
            ]

        # Round.
        leave = product_valid & product_ready
        with m.If(self.output.ready):
            m.d.sync += self.output.valid.eq(0)
        with m.If(leave):
            m.d.sync += [
                self.output.valid.eq(1),
                self.output.payload.op_id.eq(control.op_id),
                self.output.payload.empty.eq(control.zeros),
                self.output.payload.fault.eq(control.fault),
                self.output.payload.last.eq(control.last),
            ]
        for lane in range(params.lanes):
            m.submodules[f"multiply_{lane}"] = multiply = FloatMul(fmt, fmt, fmt)
            m.submodules[f"round_{lane}"] = rounder = FloatRound(fmt, params.output_format)
            product = Signal(fmt.bits, name=f"product_{lane}")
            m.d.comb += [
                multiply.a.eq(self.body.payload.o[lane]),
                multiply.b.eq(current.value),
                rounder.i.eq(product),
            ]
            with m.If(take):
                m.d.sync += product.eq(multiply.o)
            with m.If(leave):
                m.d.sync += self.output.payload.o[lane].eq(Mux(control.zeros, 0, rounder.o))
        return m
