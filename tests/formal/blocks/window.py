"""The window: units leave in the order in which they came, whatever numbers of them come and go at once."""

from __future__ import annotations

from amaranth.hdl import Mux, Value

from hw.interface.window import Window
from tests.formal.bench import Bench
from tests.formal.proofs import Proof
from tests.formal.scoreboard import in_order

__all__ = ["PROOF"]

_BITS, _BEAT, _CAPACITY = 4, 2, 4


def bench(unit: type = Window) -> Bench:
    """Add while there is room and take no more than there is, else freely."""
    window = unit(unit_bits=_BITS, beat=_BEAT, capacity=_CAPACITY)
    result = Bench(window)
    result.m.d.comb += [
        window.add.eq(result.free("add") & window.room),
        window.put.eq(result.free("put", range(_BEAT + 1))),
        window.new.as_value().eq(result.free("new", _BITS * _BEAT)),
        window.take.eq(result.free("take", range(_CAPACITY + 1))),
    ]
    result.assume((window.put <= _BEAT) & (window.take <= window.level))
    for place in range(_BEAT):
        result.assume((place < window.put) | (Value.cast(window.new[place]) == 0))
    result.leaves["units"] = window.take != 0
    level = in_order(
        result,
        "order",
        capacity=_CAPACITY,
        pushed=[window.new[place] for place in range(_BEAT)],
        push=Mux(window.add, window.put, 0),
        popped=[window.units[place] for place in range(_CAPACITY)],
        pop=window.take,
    )
    result.claim("level", window.level == level)
    result.claim("room", window.room == (level - window.take <= _CAPACITY - _BEAT))
    for place in range(_CAPACITY):
        result.claim("zeros beyond the level", (place < window.level) | (Value.cast(window.units[place]) == 0))
    return result


PROOF = Proof(block="window", parameters="4-bit units, beat 2, capacity 4", bench=bench, cycles=16)
