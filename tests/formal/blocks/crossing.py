"""The crossing between two clocks, whose edges come in any order: each clock is an enable of one that is faster."""

from __future__ import annotations

from amaranth.hdl import DomainRenamer, EnableInserter, Signal

from hw.interface.crossing import Crossing
from tests.formal.bench import Bench
from tests.formal.proofs import Proof
from tests.formal.scoreboard import in_order

__all__ = ["PROOF"]

_DEPTH = 4
_EDGES = 4


def bench(unit: type = Crossing) -> Bench:
    """Claim order, and that an item moves on within a few edges of both clocks."""
    crossing = unit(2, depth=_DEPTH, source="near", target="far")
    result = Bench()
    near, far = result.free("near_edge"), result.free("far_edge")
    clocked = EnableInserter({"near": near, "far": far})(crossing)
    result.m.submodules += DomainRenamer({"near": "sync", "far": "sync"})(clocked)
    # Resets last until the registers between the sides have seen them, which one of a cycle does not.
    result.never_reset()
    i = result.source("i", crossing.i, enable=near)
    o = result.sink("o", crossing.o, enable=far)
    level = in_order(result, "order", capacity=_DEPTH, pushed=[i.payload], push=i.go, popped=[o.payload], pop=o.go)
    # Two stages, the register of the pointer on either side, and that of the memory.
    waits = Signal(range(_EDGES + 1))
    with result.m.If((level == 0) | o.valid):
        result.m.d.sync += waits.eq(0)
    with result.m.Elif(far):
        result.m.d.sync += waits.eq(waits + (waits != _EDGES))
    result.claim("progress", waits != _EDGES)
    return result


PROOF = Proof(block="crossing", parameters="2 bits, depth 4", bench=bench, cycles=16)
