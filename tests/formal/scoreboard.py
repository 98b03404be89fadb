"""Scoreboards: any one item is followed through a block, so that what is claimed of it is claimed of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Array, Const, Mux, Signal, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amaranth.hdl import ValueLike

    from tests.formal.bench import Bench

__all__ = ["in_order"]


def in_order(
    bench: Bench,
    name: str,
    *,
    capacity: int,
    pushed: Sequence[ValueLike],
    push: ValueLike,
    popped: Sequence[ValueLike],
    pop: ValueLike,
) -> Signal:
    """Claim that the i-th item that leaves is the i-th that came, and that no more leave than came.

    One bit, chosen freely, of one item that comes in, chosen too, is kept with the number of those before it; when as
    many have left, it must be in the next. A lost or doubled item moves all behind it, so it shows in those.

    Parameters
    ----------
    capacity : int
        Items that the block holds at most, which is claimed too.
    pushed, popped : sequence of Value
        Items of a cycle, of equal widths, the first first.
    push, pop : Value
        How many of them come in and leave.

    Returns
    -------
    Signal
        Items in the block.

    Raises
    ------
    ValueError
        If items differ in width.
    """
    pushed, popped = [Value.cast(item) for item in pushed], [Value.cast(item) for item in popped]
    width = len(pushed[0])
    if any(len(item) != width for item in (*pushed, *popped)):
        raise ValueError(f"items must have one width, not {[len(item) for item in (*pushed, *popped)]!r}")
    if width > 1:
        bit = bench.constant(f"{name}_bit".replace(" ", "_"), range(width))
        bench.assume(bit < width)
        pushed, popped = [item.bit_select(bit, 1) for item in pushed], [item.bit_select(bit, 1) for item in popped]
    m, label = bench.m, name.replace(" ", "_")
    push, pop = Value.cast(push), Value.cast(pop)
    room = capacity + len(pushed)
    level = Signal(range(room + 1), name=f"{label}_level")
    ahead = Signal(range(room + 1), name=f"{label}_ahead")
    kept = Signal(pushed[0].shape(), name=f"{label}_kept")
    following, leaves = Signal(name=f"{label}_following"), Signal(name=f"{label}_leaves")
    pick = bench.free(f"{label}_pick")
    lane: Value = bench.free(f"{label}_lane", range(len(pushed))) if len(pushed) > 1 else Const(0, 1)
    picked = Signal(name=f"{label}_picked")
    m.d.comb += [picked.eq(pick & ~following & (lane < push)), leaves.eq(following & (ahead < pop))]
    # An item that comes may leave in the same cycle, where the block lets it through.
    m.d.sync += level.eq(level + push - pop)
    with m.If(picked):
        m.d.sync += [following.eq(1), ahead.eq(level + lane - pop), kept.eq(Array(pushed)[lane])]
    with m.Elif(leaves):
        m.d.sync += following.eq(0)
    with m.Elif(following):
        m.d.sync += ahead.eq(ahead - pop)
    same = Mux(ahead < len(popped), Array(popped)[ahead] == kept, 0) if len(popped) > 1 else popped[0] == kept
    bench.claim(name, (pop <= level) & (level <= capacity) & (~leaves | same))
    return level
