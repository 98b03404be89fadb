"""What the proofs of a link share: its sizes, the rules of flits that come in, and the check sum as an oracle."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

from amaranth.hdl import Elaboratable, Fragment, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.dma.flits import FlitFormat
from hw.dma_params import FlitParams, LinkParams

if TYPE_CHECKING:
    from tests.formal.bench import Bench, Flow

__all__ = ["LINK", "Oracle", "WithOracle", "distance", "flits_in", "flits_out"]


class SmallLink(LinkParams):
    """A link whose numbers of flits repeat after 8 instead of 65,536, so that short runs go round."""

    @property
    def number_bits(self) -> int:
        return 3


LINK = SmallLink(flit=FlitParams(flits=FlitFormat(16), beat_bytes=8), window=2, timeout_cycles=3, attempts=2)
"""Flits of two beats, the last with the trailer alone; two of them in the window, a quarter of all numbers as most."""


class Oracle(wiring.Component):
    """A check sum of which nothing is known: the bench says what it is in each cycle."""

    def __init__(self, flit: FlitParams) -> None:
        super().__init__({"start": In(1), "data": In(8 * flit.beat_bytes), "valid": In(1), "crc": Out(32)})

    def elaborate(self, platform: object) -> Module:
        return Module()


class WithOracle(Elaboratable):
    """A block that is made with an oracle in the place of its check sum."""

    def __init__(self, block: Elaboratable, oracle: Oracle) -> None:
        self.block, self.oracle = block, oracle

    def elaborate(self, platform: object) -> Fragment:
        names = type(self.block).elaborate.__globals__
        with mock.patch.dict(names, {"CheckSum": lambda _: self.oracle}):
            return Fragment.get(self.block, platform)


def distance(start: Value, end: Value) -> Value:
    """Return how far ``end`` is behind ``start``, around the end of the numbers."""
    return (end - start)[: LINK.number_bits]


def flits_in(bench: Bench, flow: Flow) -> tuple[Signal, Signal]:
    """Assume that flits are whole and numbered from 0 on; return the number that is due and the place in the flit."""
    number, beat = Signal(LINK.number_bits, name="number_in"), Signal(name="beat_in")
    words = flow.payload.words
    bench.assume(~flow.valid | (flow.payload.last == beat))
    bench.assume(~flow.valid | ~beat | (words[LINK.flit.last_words] == number))
    with bench.m.If(flow.go):
        bench.m.d.sync += [beat.eq(~beat), number.eq(number + beat)]
    return number, beat


def flits_out(bench: Bench, flow: Flow) -> tuple[Value, Value, Value]:
    """Claim that flits are whole; return the number of the one that ends, whether it does, and its place."""
    beat = Signal(name="beat_out")
    bench.claim("whole flits", ~flow.valid | (flow.payload.last == beat))
    with bench.m.If(flow.go):
        bench.m.d.sync += beat.eq(~beat)
    return flow.payload.words[LINK.flit.last_words][: LINK.number_bits], flow.go & flow.payload.last, beat
