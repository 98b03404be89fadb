"""The command reorder unit: commands leave once each, and none waits for more than its patience."""

from __future__ import annotations

from amaranth.hdl import Mux, Signal, Value

from hw.dma_params import ReorderParams
from hw.interface.reorder import CommandReorder
from tests.formal.bench import Bench
from tests.formal.proofs import Proof

__all__ = ["PROOF"]

_PARAMS = ReorderParams(depth=4, groups=2, row_bits=1, tag_bits=1, patience=2)


def bench(unit: type = CommandReorder) -> Bench:
    """Follow one command, chosen freely and marked by its tag, which plays no part in the choice.

    It leaves once and whole. Were it lost, the count of commands would never come down to zero again.
    """
    reorder = unit(_PARAMS)
    result = Bench(reorder)
    m = result.m
    i, o = result.source("i", reorder.i), result.sink("o", reorder.o)
    # The output register holds one more.
    capacity = _PARAMS.depth + 1
    level, inside, was_marked = Signal(range(capacity + 2)), Signal(), Signal()
    kept = Signal.like(Value.cast(i.payload))
    comes, leaves = i.go & (i.payload.tag == 1), o.go & (o.payload.tag == 1)
    m.d.sync += level.eq(level + i.go - o.go)
    with m.If(comes):
        m.d.sync += [was_marked.eq(1), inside.eq(1), kept.eq(Value.cast(i.payload))]
    with m.Elif(leaves):
        m.d.sync += inside.eq(0)
    result.assume(~(was_marked & comes))
    result.claim("each once", (level >= o.go) & (level <= capacity) & (inside <= level))
    result.claim("each once", ~leaves | (inside & (Value.cast(o.payload) == kept)))
    result.moves("progress", (level != 0) & ~o.valid, o.valid, 2)
    # Each of those before it, and itself, lets no more than patience others by; one more is in the output register.
    most = _PARAMS.depth * (_PARAMS.patience + 1)
    others = Signal(range(most + 2))
    m.d.sync += others.eq(Mux(~inside | leaves, 0, others + (o.go & (others != most + 1))))
    result.claim("patience", others <= most)
    return result


PROOF = Proof(
    block="reorder unit", parameters="depth 4, 2 groups, 1-bit rows, 1-bit tags, patience 2", bench=bench, cycles=24
)
