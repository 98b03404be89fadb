"""The exponential unit in Amaranth, built from the same :class:`golden.exp.ExpSpec` as its golden model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.exp import ExpSpec
from hw.units.exp_steps import ExpSteps, Kind, Scaled, assign

if TYPE_CHECKING:
    from amaranth.hdl import Value

__all__ = ["ExpUnit"]


class ExpUnit(wiring.Component):
    """Exponential of one floating-point code.

    Overview
    --------
    ``o = exp(i) = 2^n * p(f)`` with ``n + f = i * log2(e)``, n an integer, ``0 <= f < 1`` and p the polynomial of
    ``spec`` in Horner form. One operation is one operand in and one result out, in order.

    Protocol
    --------
    Plain ready/valid streams. Nothing is configured at run time. ``o`` is registered; ``i.ready`` follows ``o.ready``
    combinationally and does not depend on ``i.valid``; there is no combinational path from ``i`` to ``o``.

    Timing
    ------
    Pipelined, ``degree + 4`` stages under one enable (``~o.valid | o.ready``): while a result waits, every stage
    waits, and bubbles between operands stay. At degree 6::

        cycle     0  1  2  3  4  5  6  7  8  9 10 11
        i.valid   A  B  C  .  .  .  .  .  .  .  .  .
        i.ready   1  1  1  1  1  1  1  1  1  1  1  1
        o.valid   .  .  .  .  .  .  .  .  .  .  A  B

    Serial, on one multiplier: cycle 0 multiplies by log2(e), cycle 1 shifts, then one cycle a Horner step; the last
    sum moves to the two rounding stages in the cycle in which the next operand may enter. A stalled output fills
    those two stages before it holds the multiplier::

        cycle     0  1  2  3  4  5  6  7  8  9 10 11
        i.valid   A  B  B  B  B  B  B  B  B  .  .  .
        i.ready   1  0  0  0  0  0  0  0  1  0  0  0
        o.valid   .  .  .  .  .  .  .  .  .  .  A  .

    No stage holds more than one multiplier with one adder before or behind it, or one shifter.

    Latency and throughput
    ----------------------
    ``spec.latency_cycles`` from the transfer of an operand to the first cycle of its result and
    ``spec.interval_cycles`` between operands: 10 and 1 pipelined, 10 and 8 serial, at degree 6.
    :func:`hw.timing.exp.predict` gives every cycle of a stalled run.

    Numerics
    --------
    Bit for bit :meth:`golden.exp.ExpSpec.evaluate_codes`: subnormal operands and results kept, round to nearest even
    after a truncated fixed-point polynomial, overflow to +infinity, -infinity to +0, NaN to the canonical NaN,
    exp(+0) = exp(-0) = 1, monotone over all codes. With ``POLY6`` the largest relative error over all fp16 codes with
    a normal result is 0.0502 %, and 99.3 % of those results are correctly rounded; ``tests/rtl/test_exp.py`` runs all
    65,536 codes through the RTL against both the golden model and a correctly rounded oracle.

    Parameters
    ----------
    spec : ExpSpec
        Constants, word lengths and evaluation.

    Members
    -------
    i : ``In(stream.Signature(spec.fmt.bits))``
        Operands, codes of ``spec.fmt``.
    o : ``Out(stream.Signature(spec.fmt.bits))``
        Results, codes of ``spec.fmt``.

    Raises
    ------
    TypeError
        If ``spec`` is not an ExpSpec.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, spec: ExpSpec) -> None:
        if not isinstance(spec, ExpSpec):
            raise TypeError(f"spec must be an ExpSpec, not {spec!r}")
        self.spec = spec
        codes = stream.Signature(spec.fmt.bits)
        super().__init__({"i": In(codes), "o": Out(codes)})

    def elaborate(self, platform: object) -> Module:
        """Lay out the steps of :class:`hw.units.exp_steps.ExpSteps` in time, as ``spec.evaluation`` says."""
        m = Module()
        layout = {"pipelined": _pipelined, "serial": _serial}[self.spec.evaluation]
        layout(m, self, ExpSteps(self.spec))
        return m


def _pipelined(m: Module, unit: ExpUnit, steps: ExpSteps) -> None:
    """Give every step its own stage; all stages advance together."""
    spec = steps.spec
    advance = Signal()
    m.d.comb += [advance.eq(~unit.o.valid | unit.o.ready), unit.i.ready.eq(advance)]
    valid: list[Value] = [unit.i.valid]

    def stage(**values: Value) -> list[Signal]:
        """Register ``values``; the valid bit goes with them."""
        number = len(valid)
        registers = [Signal(value.shape(), name=f"{name}_{number}", reset_less=True) for name, value in values.items()]
        flag = Signal(name=f"valid_{number}")
        with m.If(advance):
            m.d.sync += flag.eq(valid[-1])
            m.d.sync += [assign(register, value) for register, value in zip(registers, values.values(), strict=True)]
        valid.append(flag)
        return registers

    def horner(k: int) -> Value:
        return steps.horner(h * f, steps.coefficient(k), steps.horner_widths[k])

    operand = steps.decode(unit.i.payload)
    kind, shift, product = stage(kind=operand.kind, shift=operand.shift, product=operand.significand * spec.log2e)
    n, f = steps.split(product, shift)
    kind, n, f = stage(kind=kind, n=n, f=f)
    h: Value = steps.coefficient(spec.degree)
    for k in reversed(range(1, spec.degree)):
        kind, n, f, h = stage(kind=kind, n=n, f=f, h=horner(k))
    kind, n, h = stage(kind=kind, n=n, h=horner(0))
    scaled = Scaled(*stage(**steps.scale(kind, n, h)._asdict()))
    (code,) = stage(code=steps.round(scaled))
    assert len(valid) - 1 == spec.latency_cycles
    m.d.comb += [unit.o.valid.eq(valid[-1]), assign(unit.o.payload, code)]


def _serial(m: Module, unit: ExpUnit, steps: ExpSteps) -> None:
    """Do every multiplication on one multiplier; scale and round in two stages behind it."""
    spec = steps.spec
    last = spec.interval_cycles
    # 0: idle. 1: the shift. 2 .. last - 1: Horner steps down to c[0]. last: the finished sum waits to be scaled.
    step = Signal(range(last + 1))
    kind = Signal(Kind, reset_less=True)
    shift = Signal(steps.shift_bits, reset_less=True)
    n = Signal(steps.n_shape, reset_less=True)
    f = Signal(spec.frac_bits, reset_less=True)
    product_bits = steps.product_shape.width
    result = Signal(max(product_bits, *steps.horner_widths), reset_less=True)

    scaled_valid = Signal()
    output_free = Signal()
    scaled_free = Signal()
    done = Signal()
    accept = Signal()
    m.d.comb += [
        output_free.eq(~unit.o.valid | unit.o.ready),
        scaled_free.eq(~scaled_valid | output_free),
        done.eq((step == last) & scaled_free),
        accept.eq((step == 0) | done),
        unit.i.ready.eq(accept),
    ]

    operand = steps.decode(unit.i.payload)
    factor = result[: max(steps.horner_widths[1:])]
    left = Signal(signed(max(steps.significand_shape.width, len(factor) + 1)))
    right = Signal(max(spec.log2e.bit_length(), spec.frac_bits))
    product = Signal(signed(len(left) + len(right)))
    with m.If(accept):
        m.d.comb += [assign(left, operand.significand), assign(right, Const(spec.log2e))]
    with m.Else():
        m.d.comb += [assign(left, factor), assign(right, f)]
    m.d.comb += assign(product, left * right)
    addend = Signal(max(steps.horner_widths))
    with m.Switch(step):
        for k in range(1, spec.degree):
            with m.Case(last - 1 - k):
                m.d.comb += assign(addend, steps.coefficient(k))
        with m.Default():
            m.d.comb += assign(addend, steps.coefficient(0))

    with m.If(accept):
        # The factors of this cycle are no wider than ``product_bits`` together.
        m.d.sync += [
            step.eq(unit.i.valid),
            assign(kind, operand.kind),
            assign(shift, operand.shift),
            assign(result, product[:product_bits]),
        ]
    with m.Elif(step == 1):
        next_n, next_f = steps.split(result[:product_bits].as_signed(), shift)
        m.d.sync += [
            step.eq(2),
            assign(n, next_n),
            assign(f, next_f),
            assign(result, steps.coefficient(spec.degree)),
        ]
    with m.Elif(step != last):
        # Both factors are positive here.
        m.d.sync += [
            step.eq(step + 1),
            assign(result, steps.horner(product.as_unsigned(), addend, len(addend))),
        ]

    scaled = steps.scale(kind, n, result[: steps.horner_widths[0]])
    held = [Signal(value.shape(), name=f"scaled_{name}", reset_less=True) for name, value in scaled._asdict().items()]
    with m.If(scaled_free):
        m.d.sync += scaled_valid.eq(done)
    with m.If(done):
        m.d.sync += [assign(register, value) for register, value in zip(held, scaled, strict=True)]
    with m.If(output_free):
        m.d.sync += [unit.o.valid.eq(scaled_valid), assign(unit.o.payload, steps.round(Scaled(*held)))]
