"""The re-layout buffer: slots leave whole and in order, no region of its memory is lost or given twice."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Mux, Signal

from hw.dma_params import RelayoutParams
from hw.interface.relayout_buffer import RelayoutBuffer
from tests.formal.bench import Bench
from tests.formal.proofs import Proof

__all__ = ["PROOF"]

_PARAMS = RelayoutParams(regions=2, columns=3, column_bytes=1)


def bench(unit: type = RelayoutBuffer) -> Bench:
    """Write any column at any time, due or not; keep a book of the regions and follow one column, chosen freely."""
    buffer = unit(_PARAMS)
    result = Bench(buffer)
    m = result.m
    regions, columns = _PARAMS.regions, _PARAMS.columns
    free, o = result.sink("free", buffer.free), result.sink("o", buffer.o)
    i = result.source("i", buffer.i)

    # The book: what each region that was given out still waits for, and whole ones that have not left whole.
    owed = [Signal(columns, name=f"owed_{region}") for region in range(regions)]
    # A region may be given out once more while its last two columns are on their way.
    capacity = regions + 1
    level, place = Signal(range(capacity + 2)), Signal(range(columns))
    due, whole, gone = Signal(), Signal(), Signal()
    owes = Signal(columns)
    m.d.comb += [
        owes.eq(Array(owed)[i.payload.region]),
        due.eq(i.go & (i.payload.place < columns) & owes.bit_select(i.payload.place, 1)),
        whole.eq(due & (owes == (1 << i.payload.place)[:columns])),
        gone.eq(o.go & (place == columns - 1)),
    ]
    m.d.sync += level.eq(level + whole - gone)
    with m.If(o.go):
        m.d.sync += place.eq(Mux(gone, 0, place + 1))
    for region, waits in enumerate(owed):
        with m.If(free.go & (free.payload == region)):
            m.d.sync += waits.eq((1 << columns) - 1)
        with m.Elif(due & (i.payload.region == region)):
            m.d.sync += waits.eq(waits & ~(1 << i.payload.place))
    result.claim("slots kept", ~free.go | (~Array(owed)[free.payload].any() & (free.payload < regions)))
    owned = sum((waits.any() for waits in owed[1:]), owed[0].any())
    result.moves("slots come back", (owned + level < regions) & ~free.valid, free.valid, 3)
    result.claim("whole", (level <= capacity) & (~o.go | ((level != 0) & (o.payload.last == (place == columns - 1)))))
    result.moves("progress", (level != 0) & ~o.valid, o.valid, 4)
    expected_fault = Signal()
    m.d.sync += expected_fault.eq(expected_fault | (i.go & ~due))
    result.claim("fault", buffer.fault == expected_fault)

    # One column of one region from its writing on; ahead are the whole regions before it once its own is whole.
    region, wanted = result.constant("region", range(regions)), result.constant("column", range(columns))
    pick = result.free("pick")
    written, counted, begins = Signal(), Signal(), Signal()
    kept, ahead = Signal(8 * _PARAMS.column_bytes), Signal(range(capacity + 2))
    hit = due & (i.payload.region == region)
    m.d.comb += begins.eq(hit & (i.payload.place == wanted) & pick & ~written)
    leaves = counted & (ahead == 0) & o.go & (place == wanted)
    with m.If(begins):
        m.d.sync += [written.eq(1), kept.eq(Cat(i.payload.column))]
    with m.Elif(leaves):
        m.d.sync += written.eq(0)
    with m.If(hit & whole & (written | begins) & ~counted):
        m.d.sync += [counted.eq(1), ahead.eq(level - gone)]
    with m.Elif(leaves):
        m.d.sync += counted.eq(0)
    with m.Elif(counted):
        m.d.sync += ahead.eq(ahead - gone)
    result.claim("order", ~leaves | (Cat(o.payload.column) == kept))
    return result


PROOF = Proof(
    block="re-layout buffer",
    parameters="2 regions of 3 columns of 1 byte",
    bench=bench,
    cycles=14,
    bounded=frozenset({"order"}),
)
