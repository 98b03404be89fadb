"""The state join: heads leave in order, and so do the beats of bodies, source by source within each operation."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal

from hw.params import ProcessingParams
from hw.timing.state_join import PLAN_DEPTH
from hw.units.state_join import StateJoin
from tests.formal.bench import Bench
from tests.formal.proofs import Proof
from tests.formal.scoreboard import in_order

__all__ = ["PROOF"]

_PARAMS = ProcessingParams(head_dim=4, lanes=2, op_id_bits=2, slices=2)


def bench(unit: type = StateJoin) -> Bench:
    """Give states of two sources that agree on which are empty, their bodies of any length."""
    join = unit(_PARAMS)
    result = Bench(join)
    m = result.m
    heads = [result.source(f"head_{number}", port) for number, port in enumerate(join.head_i)]
    bodies = [result.source(f"body_{number}", port) for number, port in enumerate(join.body_i)]
    head_o, body_o = result.sink("head_o", join.head_o), result.sink("body_o", join.body_o)
    first, second = heads
    agree = first.payload.empty == second.payload.empty
    result.assume(~(first.valid & second.valid) | agree)
    result.claim("heads together", first.go == second.go)
    names = ("op_id", "empty", "m", "l")
    item_in, item_out = (Cat(getattr(flow.payload, name) for name in names) for flow in (first, head_o))
    in_order(result, "heads", capacity=1, pushed=[item_in], push=first.go, popped=[item_out], pop=head_o.go)

    # Operations with a body whose heads were taken, and the source whose turn it is in the first of them.
    waiting, turn = Signal(range(PLAN_DEPTH + 2)), Signal()
    taken = [body.go for body in bodies]
    ends = [body.go & body.payload.last for body in bodies]
    m.d.sync += waiting.eq(waiting + (first.go & ~first.payload.empty) - ends[1])
    with m.If(Cat(ends).any()):
        m.d.sync += turn.eq(~turn)
    result.claim("turns", (waiting <= PLAN_DEPTH) & ~(taken[0] & (turn | (waiting == 0))) & ~(taken[1] & ~turn))
    beat = Mux(taken[1], bodies[1].payload.o.as_value(), bodies[0].payload.o.as_value())
    in_order(
        result,
        "bodies",
        capacity=1,
        pushed=[Cat(beat, ends[1])],
        push=Cat(taken).any(),
        popped=[Cat(body_o.payload.o.as_value(), body_o.payload.last)],
        pop=body_o.go,
    )
    offered = Mux(turn, bodies[1].valid, bodies[0].valid)
    result.moves("progress", (waiting != 0) & offered & ~body_o.valid, body_o.valid, 3)
    return result


PROOF = Proof(block="state join", parameters="2 slices, 2 lanes, 2-bit ids", bench=bench, cycles=16)
