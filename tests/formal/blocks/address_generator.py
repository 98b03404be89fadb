"""The address generator: a slot gives all its columns, each once, in order, and one that does not exist says so."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal

from golden.kv.address_map import AddressMap, Level
from hw.dma_params import AddressParams
from hw.interface.address_generator import AddressGenerator
from tests.formal.bench import Bench
from tests.formal.proofs import Proof
from tests.formal.scoreboard import in_order

__all__ = ["PROOF"]

_PARAMS = AddressParams(
    space=AddressMap(
        name="two banks",
        levels=(Level("byte", 4), Level("column", 2), Level("bank", 2), Level("column", 2), Level("row", 3)),
        slot_levels=3,
    )
)


def bench(unit: type = AddressGenerator) -> Bench:
    """Put the coordinates together again by the order of the levels: the column's place in the slot, then the slot."""
    generator = unit(_PARAMS)
    result = Bench(generator)
    m = result.m
    i, o = result.source("i", generator.i), result.sink("o", generator.o)
    at, columns, slots = o.payload.coordinates, _PARAMS.columns, _PARAMS.space.slots
    number = Cat(at.column[0], at.bank[0], at.column[1], at.row)
    column_bits = (columns - 1).bit_length()
    slot = number[column_bits:]
    place = Signal(range(columns))
    final = place == columns - 1
    with m.If(o.go):
        m.d.sync += place.eq(Mux(o.payload.last, 0, place + 1))
    result.claim(
        "columns", ~o.valid | o.payload.unmapped | ((number[:column_bits] == place) & (o.payload.last == final))
    )
    result.claim("unmapped", ~o.valid | Mux(o.payload.unmapped, o.payload.last, slot < slots))
    exists = i.payload < slots
    level = in_order(
        result,
        "order",
        capacity=1,
        pushed=[Cat(Mux(exists, i.payload[: len(slot)], 0), exists)],
        push=i.go,
        popped=[Cat(Mux(o.payload.unmapped, 0, slot), ~o.payload.unmapped)],
        pop=o.go & o.payload.last,
    )
    result.claim("progress", o.valid == (level != 0))
    return result


PROOF = Proof(block="address generator", parameters="6 slots of 4 columns, 2 banks, 3 rows", bench=bench, cycles=16)
