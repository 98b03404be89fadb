"""The exponential unit in Amaranth, built from the same :class:`golden.exp.ExpSpec` as its golden model."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.exp import ExpSpec
from hw.units.exp.datapath import datapath, serial_layout
from hw.units.exp.layouts import combinational, pipelined

__all__ = ["ExpUnit"]


class ExpUnit(wiring.Component):
    """Exponential of one floating-point code.

    Overview
    --------
    ``o = exp(i)``, computed as the family of ``spec`` does it: ``golden.exp`` says how, :func:`hw.units.exp.datapath`
    gives the steps. One operation is one operand in and one result out, in order.

    Protocol
    --------
    Plain ready/valid streams. Nothing is configured at run time. ``i.ready`` follows ``o.ready`` combinationally and
    does not depend on ``i.valid``. ``o`` is registered, with no combinational path from ``i``, except in a
    combinational unit: there ``o`` follows ``i``, ``i.ready`` is ``o.ready``, and the unit has no clock.

    Timing
    ------
    Combinational: the result is there in the cycle of the operand.

    Pipelined, ``spec.steps`` stages, or ``spec.registers`` behind one block, under one enable
    (``~o.valid | o.ready``): while a result waits, every stage waits, and bubbles between operands stay. A polynomial
    of degree 6 has 10 steps::

        cycle     0  1  2  3  4  5  6  7  8  9 10 11
        i.valid   A  B  C  .  .  .  .  .  .  .  .  .
        i.ready   1  1  1  1  1  1  1  1  1  1  1  1
        o.valid   .  .  .  .  .  .  .  .  .  .  A  B

    Serial, a polynomial on one multiplier: cycle 0 multiplies by log2(e), cycle 1 shifts, then one cycle a Horner
    step; the last sum moves to the two rounding stages in the cycle in which the next operand may enter. A stalled
    output fills those two stages before it holds the multiplier::

        cycle     0  1  2  3  4  5  6  7  8  9 10 11
        i.valid   A  B  B  B  B  B  B  B  B  .  .  .
        i.ready   1  0  0  0  0  0  0  0  1  0  0  0
        o.valid   .  .  .  .  .  .  .  .  .  .  A  .

    No step of a polynomial holds more than one multiplier with one adder before or behind it, or one shifter.

    Latency and throughput
    ----------------------
    ``spec.latency_cycles`` from the transfer of an operand to the first cycle of its result and
    ``spec.interval_cycles`` between operands: 10 and 1 pipelined, 10 and 8 serial, at degree 6.
    :func:`hw.timing.exp.predict` gives every cycle of a stalled run.

    Numerics
    --------
    Bit for bit :meth:`golden.exp.ExpSpec.evaluate_codes`: overflow to +infinity, -infinity to +0, NaN to the
    canonical NaN, exp(+0) = exp(-0) = 1, monotone over the codes of the domain. With ``POLY6`` the largest relative
    error over all fp16 codes with a normal result is 0.0502 %, and 99.3 % of those results are correctly rounded;
    ``tests/rtl/test_exp.py`` runs all 65,536 codes through the RTL against both the golden model and a correctly
    rounded oracle.

    Parameters
    ----------
    spec : ExpSpec
        Family, constants, word lengths and layout in time.

    Members
    -------
    i : ``In(stream.Signature(spec.fmt.bits))``
        Operands, codes of ``spec.fmt``.
    o : ``Out(stream.Signature(spec.result_fmt.bits))``
        Results, codes of ``spec.result_fmt``.

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
        operands, results = stream.Signature(spec.fmt.bits), stream.Signature(spec.result_fmt.bits)
        super().__init__({"i": In(operands), "o": Out(results)})

    def elaborate(self, platform: object) -> Module:
        """Lay out the steps of :func:`hw.units.exp.datapath` in time, as ``spec.evaluation`` says."""
        m = Module()
        spec = self.spec
        if spec.evaluation == "serial":
            serial_layout(spec, m, self.i, self.o)
            return m
        steps = datapath(spec)
        assert len(steps) == spec.steps
        if spec.evaluation == "combinational":
            combinational(m, steps, self.i, self.o)
        else:
            pipelined(m, steps, self.i, self.o, registers=spec.registers)
        return m
