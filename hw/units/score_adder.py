"""The score adder in Amaranth: sums the partial scores of the processing units that share a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hw.float import FloatAdd
from hw.float_steps import require_format
from hw.timing.score_adder import latency_cycles

if TYPE_CHECKING:
    from golden.formats import FloatFormat

__all__ = ["ScoreAdder", "sum_signature"]


def sum_signature(fmt: FloatFormat) -> wiring.Signature:
    """Describe a score, or a part of one, that is not held up: ``sum`` counts in the cycles in which ``valid`` is high.

    Directions are those of the sender.
    """
    return wiring.Signature({"valid": Out(1), "sum": Out(fmt.bits)})


class ScoreAdder(wiring.Component):
    """Sum of one partial score of each of ``slices`` units, by a pairwise tree.

    Overview
    --------
    Where the elements of a token lie in several banks, each bank's processing unit computes q.k over its own slice.
    This adds the slices' sums up: level 1 adds inputs 2i and 2i + 1, level 2 adds those sums in the same way, and so
    on. The score is the q.k of the token, not scaled, and goes back to all units.

    Protocol
    --------
    No stream: nothing can be held up, for the units run in lock step and wait for the score a fixed number of cycles.
    All ``i[n].valid`` are high in the same cycles, and the sums in such a cycle belong to one token. If only some are
    high, ``fault`` rises in the next cycle and stays high until reset, and there is no score of that cycle: the units
    have lost step.

    Timing
    ------
    Four slices (each letter a token)::

        cycle    0  1  2  3  4  5
        i        A  B  .  C  .  .
        o        .  .  A  B  .  C

    Latency and throughput
    ----------------------
    ``log2(slices)`` cycles (:func:`hw.timing.score_adder.latency_cycles`), one score a cycle.

    Numerics
    --------
    Every sum is IEEE 754 round to nearest even in ``fmt``, subnormals kept, every NaN the canonical one: bit for bit
    the sum over slices in :meth:`golden.numerics.Numerics.dot` (``tests/rtl/test_score_adder.py``).

    Parameters
    ----------
    slices : int
        Units; a power of two from 2 to 16.
    fmt : FloatFormat
        Format of parts and score.

    Members
    -------
    i : ``In(sum_signature(fmt)).array(slices)``
        Partial scores.
    o : ``Out(sum_signature(fmt))``
        Scores, registered.
    fault : Out(1)
        The inputs disagreed in an earlier cycle.

    Raises
    ------
    TypeError, ValueError
        If ``slices`` is not an integer or out of range, or ``fmt`` no :class:`FloatFormat` with an infinity.
    """

    i: list[wiring.PureInterface]
    o: wiring.PureInterface
    fault: Signal

    def __init__(self, slices: int, fmt: FloatFormat = FP32) -> None:
        self.levels = latency_cycles(slices)
        require_format("fmt", fmt)
        self.slices = slices
        self.fmt = fmt
        super().__init__({"i": In(sum_signature(fmt)).array(slices), "o": Out(sum_signature(fmt)), "fault": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the tree, one register a level."""
        m = Module()
        valids = Cat(port.valid for port in self.i)
        with m.If(valids.any() & ~valids.all()):
            m.d.sync += self.fault.eq(1)

        valid = valids.all()
        terms = [port.sum for port in self.i]
        for level in range(1, self.levels + 1):
            next_valid = Signal(name=f"valid_{level}")
            sums = [Signal(self.fmt.bits, name=f"sum_{level}_{number}") for number in range(self.slices >> level)]
            m.d.sync += next_valid.eq(valid)
            for number, total in enumerate(sums):
                m.submodules[f"add_{level}_{number}"] = adder = FloatAdd(self.fmt)
                m.d.comb += [adder.a.eq(terms[2 * number]), adder.b.eq(terms[2 * number + 1])]
                with m.If(valid):
                    m.d.sync += total.eq(adder.o)
            valid, terms = next_valid, sums
        m.d.comb += [self.o.valid.eq(valid), self.o.sum.eq(terms[0])]
        return m
