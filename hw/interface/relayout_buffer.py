"""The re-layout buffer: columns arrive in any order, slots leave whole and in the order of their bytes."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from hw.dma_params import RelayoutParams
from hw.interface.layouts import gathered_layout, placed_column_layout, region_bits

__all__ = ["RelayoutBuffer"]


class RelayoutBuffer(wiring.Component):
    """Gather the columns of slots in a memory with a port for writing and one for reading.

    Overview
    --------
    A region holds one slot. Whoever reads the source takes a region's number from ``free`` and lets each column be
    written to the place that its bytes have in the slot. When the last column of a region is in, the region joins the
    queue of complete ones; its columns are read in order, and the region is free again.

    Protocol
    --------
    Plain ready/valid streams. Each of a region's columns is written exactly once between its leaving ``free`` and its
    coming back; which one, and when, is up to the source. A second write of a column, one to a region that was not
    taken, and one to a place that is none raise ``fault`` for good and are not carried out.

    Timing
    ------
    Regions of two columns, the second column of A first::

        cycle   0   1   2   3   4   5
        i       A1  A0  .   .   .   .
        o       .   .   .   .   A0  A1

    Latency and throughput
    ----------------------
    3 cycles from the column that completes a region to its first column, if no other is being read; then a column a
    cycle, regions behind one another without a pause. A column a cycle is taken at all times.

    Parameters
    ----------
    params : RelayoutParams
        Sizes.

    Members
    -------
    free : Out(stream of unsigned)
        Regions that may be written; all of them after a reset, the lowest first.
    i : In(stream of placed_column_layout)
        Columns, with region and place.
    o : Out(stream of gathered_layout)
        Columns of whole regions, ``last`` with each region's last.
    fault : Out(1)
        A column came that was not due.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: RelayoutParams) -> None:
        if not isinstance(params, RelayoutParams):
            raise TypeError(f"params must be a RelayoutParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "free": Out(stream.Signature(region_bits(params))),
                "i": In(stream.Signature(placed_column_layout(params))),
                "o": Out(stream.Signature(gathered_layout(params))),
                "fault": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the memory, the marks of columns that are in, and the queue of complete regions."""
        m = Module()
        params = self.params
        regions, columns = params.regions, params.columns
        m.submodules.memory = store = memory.Memory(shape=8 * params.column_bytes, depth=regions * columns, init=[])
        write, read = store.write_port(), store.read_port()
        m.submodules.complete = complete = SyncFIFO(width=region_bits(params), depth=regions)

        # A region is free, or given out and gathering, or complete.
        is_free, gathering = Signal(regions, init=(1 << regions) - 1), Signal(regions)
        marks = [Signal(columns, name=f"marks_{region}") for region in range(regions)]
        lowest = Signal(regions)
        number = Signal(region_bits(params))
        given, returned = Signal(regions), Signal(regions)
        m.d.comb += lowest.eq(is_free & (~is_free + 1)[:regions])
        for region in range(regions):
            with m.If(lowest[region]):
                m.d.comb += number.eq(region)
        # The offer must hold until it is taken, whatever comes back meanwhile: it is registered.
        with m.If(~self.free.valid | self.free.ready):
            m.d.sync += [self.free.valid.eq(is_free.any()), self.free.payload.eq(number)]
            m.d.comb += given.eq(lowest)

        came, due, full = Signal(), Signal(), Signal()
        region = self.i.payload.region
        old = Signal(columns)
        new = Signal(columns)
        m.d.comb += [
            self.i.ready.eq(1),
            came.eq(self.i.valid),
            old.eq(Array(marks)[region]),
            due.eq(
                gathering.bit_select(region, 1)
                & (self.i.payload.place < columns)
                & ~old.bit_select(self.i.payload.place, 1)
            ),
            new.eq(old | (1 << self.i.payload.place)[:columns]),
            full.eq(came & due & new.all()),
            write.addr.eq(region * columns + self.i.payload.place),
            write.data.eq(self.i.payload.column.as_value()),
            write.en.eq(came & due),
            complete.w_en.eq(full),
            complete.w_data.eq(region),
        ]
        for number_of, mark in enumerate(marks):
            with m.If(came & due & (region == number_of)):
                m.d.sync += mark.eq(Mux(full, 0, new))
            with m.If(self.free.valid & self.free.ready & (self.free.payload == number_of)):
                m.d.sync += gathering[number_of].eq(1)
            with m.Elif(full & (region == number_of)):
                m.d.sync += gathering[number_of].eq(0)
        with m.If(came & ~due):
            m.d.sync += self.fault.eq(1)

        place = Signal(range(columns))
        fetched, fetched_last, fetched_region = Signal(), Signal(), Signal(region_bits(params))
        fetch, final, move = Signal(), Signal(), Signal()
        m.d.comb += [
            move.eq(fetched & (~self.o.valid | self.o.ready)),
            fetch.eq(complete.r_rdy & (~fetched | move)),
            final.eq(place == columns - 1),
            read.addr.eq(complete.r_data * columns + place),
            read.en.eq(fetch),
            complete.r_en.eq(fetch & final),
        ]
        with m.If(fetch):
            m.d.sync += [
                fetched_last.eq(final),
                fetched_region.eq(complete.r_data),
                place.eq(Mux(final, 0, place + 1)),
            ]
            m.d.comb += returned.eq(Mux(final, (1 << complete.r_data)[:regions], 0))
        m.d.sync += [fetched.eq(fetch | (fetched & ~move)), is_free.eq((is_free & ~given) | returned)]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(move):
            m.d.sync += [
                self.o.valid.eq(1),
                Cat(self.o.payload.column).eq(read.data),
                self.o.payload.last.eq(fetched_last),
                self.o.payload.region.eq(fetched_region),
            ]
        return m
