"""Horner's rule on one multiplier, one step a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Signal, Value, signed

from golden.exp.polynomial import PolynomialSpec
from hw.units.exp.datapath import assign, serial_layout
from hw.units.exp.frame import Frame, Kind, Scaled

if TYPE_CHECKING:
    from amaranth.lib import stream

__all__: list[str] = []


@serial_layout.register(PolynomialSpec)
def _(spec: PolynomialSpec, m: Module, i: stream.Interface, o: stream.Interface) -> None:
    """Do every multiplication on one multiplier; scale and round in two stages behind it."""
    frame = Frame(spec)
    last = spec.interval_cycles
    ranges = spec.plan.ranges()
    # Width of every sum, index k after adding ``c[k]``: none is negative.
    limits = [*(ranges[f"h{k}"][1] for k in range(spec.degree)), spec.coefficients[-1]]
    widths = [max(1, limit.bit_length()) for limit in limits]

    # 0: idle. 1: the shift. 2 .. last - 1: Horner steps down to c[0]. last: the finished sum waits to be scaled.
    step = Signal(range(last + 1))
    kind = Signal(Kind, reset_less=True)
    shift = Signal(frame.shift_bits, reset_less=True)
    n = Signal(frame.n_shape, reset_less=True)
    f = Signal(spec.frac_bits, reset_less=True)
    product_bits = frame.product_shape.width
    result = Signal(max(product_bits, *widths), reset_less=True)

    scaled_valid = Signal()
    output_free = Signal()
    scaled_free = Signal()
    done = Signal()
    accept = Signal()
    m.d.comb += [
        output_free.eq(~o.valid | o.ready),
        scaled_free.eq(~scaled_valid | output_free),
        done.eq((step == last) & scaled_free),
        accept.eq((step == 0) | done),
        i.ready.eq(accept),
    ]

    operand = frame.decode(i.payload)
    factor = result[: max(widths[1:])]
    left = Signal(signed(max(frame.significand_shape.width, len(factor) + 1)))
    right = Signal(max(spec.log2e.bit_length(), spec.frac_bits))
    product = Signal(signed(len(left) + len(right)))
    with m.If(accept):
        m.d.comb += [assign(left, operand.significand), assign(right, Const(spec.log2e))]
    with m.Else():
        m.d.comb += [assign(left, factor), assign(right, f)]
    m.d.comb += assign(product, left * right)
    addend = Signal(max(widths))
    with m.Switch(step):
        for k in range(1, spec.degree):
            with m.Case(last - 1 - k):
                m.d.comb += assign(addend, Const(spec.coefficients[k], widths[k]))
        with m.Default():
            m.d.comb += assign(addend, Const(spec.coefficients[0], widths[0]))

    # Both factors of a Horner step are positive.
    rounded: Value = product.as_unsigned()
    if spec.products == "rounded":
        rounded = rounded + (1 << spec.frac_bits - 1)
    with m.If(accept):
        # The factors of this cycle are no wider than ``product_bits`` together.
        m.d.sync += [
            step.eq(i.valid),
            assign(kind, operand.kind),
            assign(shift, operand.shift),
            assign(result, product[:product_bits]),
        ]
    with m.Elif(step == 1):
        next_n, next_f = frame.split(result[:product_bits].as_signed(), shift)
        m.d.sync += [
            step.eq(2),
            assign(n, next_n),
            assign(f, next_f),
            assign(result, Const(spec.coefficients[-1], widths[-1])),
        ]
    with m.Elif(step != last):
        m.d.sync += [
            step.eq(step + 1),
            assign(result, (rounded[spec.frac_bits :] + addend)[: len(addend)]),
        ]

    scaled = frame.scale(kind, n, result[: widths[0]])
    held = [Signal(value.shape(), name=f"scaled_{name}", reset_less=True) for name, value in scaled._asdict().items()]
    with m.If(scaled_free):
        m.d.sync += scaled_valid.eq(done)
    with m.If(done):
        m.d.sync += [assign(register, value) for register, value in zip(held, scaled, strict=True)]
    with m.If(output_free):
        m.d.sync += [o.valid.eq(scaled_valid), assign(o.payload, frame.round(Scaled(*held)))]
