"""The sender's way from an order to read a token to the payload that is sent."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from golden.dma.descriptors import Status
from golden.dma.frames import Kind
from hw.dma_engine_params import DmaParams
from hw.interface.address_generator import AddressGenerator
from hw.interface.dma_layouts import (
    SLOT_BITS,
    fetch_layout,
    fetched_layout,
    outcome_layout,
    outgoing_layout,
    read_layout,
)
from hw.interface.relayout_buffer import RelayoutBuffer
from hw.interface.reorder import CommandReorder

__all__ = ["SourceReader"]


class SourceReader(wiring.Component):
    """Read tokens, column by column in the order that suits the memory, and send each when it is whole.

    Overview
    --------
    A token gets a region of the re-layout buffer; the addresses of its columns pass the command reorder unit, and each
    column comes back with the region and the place that it is for. A whole region is a frame, raw or to be compressed,
    whose tag is the slot at the far end. A token one of whose columns could not be read is not sent: READ_ERROR.

    Protocol
    --------
    Plain ready/valid streams. Columns come back in any order, each once. ``sent`` is offered with the first beat of its
    frame.

    Latency and throughput
    ----------------------
    3 cycles from an order to its first read; 3 from the last column of a token to its first beat; a column a cycle.

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    i : In(stream of read_layout)
        Orders.
    fetch, fetched : Out(stream of fetch_layout), In(stream of fetched_layout)
        Reads of the memory, and their columns.
    o : Out(stream of outgoing_layout)
        Frames.
    flush : In(1)
        A frame that begins now ends its flit.
    sent : Out(stream of unsigned)
        Copies whose frame has begun, in the order of frames.
    failed : Out(stream of outcome_layout)
        Copies that are not sent.
    done : Out(1)
        An order is over: the last beat of its frame, sent or not, has gone.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: DmaParams) -> None:
        require_type("params", params, DmaParams)
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(read_layout(params))),
                "fetch": Out(stream.Signature(fetch_layout(params))),
                "fetched": In(stream.Signature(fetched_layout(params))),
                "o": Out(stream.Signature(outgoing_layout(params))),
                "flush": In(1),
                "sent": Out(stream.Signature(params.copy_bits)),
                "failed": Out(stream.Signature(outcome_layout(params))),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the units, and build what is known of each region."""
        m = Module()
        params = self.params
        m.submodules.buffer = buffer = RelayoutBuffer(params.relayout)
        m.submodules.addresses = addresses = AddressGenerator(params.space)
        m.submodules.reorder = reorder = CommandReorder(params.reorder)
        region_layout = data.StructLayout({"copy": params.copy_bits, "slot": SLOT_BITS, "compressed": 1})
        regions = [Signal(region_layout, name=f"region_{number}") for number in range(params.regions)]
        lost = Signal(params.regions)

        # An order and a region meet; the region stays beside the address generator until the last address is out.
        start = Signal()
        filling = Signal.like(buffer.free.payload)
        place = Signal.like(self.fetch.payload.place)
        m.d.comb += [
            start.eq(self.i.valid & buffer.free.valid & addresses.i.ready),
            addresses.i.payload.eq(self.i.payload.source),
            addresses.i.valid.eq(self.i.valid & buffer.free.valid),
            self.i.ready.eq(buffer.free.valid & addresses.i.ready),
            buffer.free.ready.eq(self.i.valid & addresses.i.ready),
        ]
        with m.If(start):
            m.d.sync += filling.eq(buffer.free.payload)
        for number, region in enumerate(regions):
            with m.If(start & (buffer.free.payload == number)):
                m.d.sync += [region[name].eq(self.i.payload[name]) for name in region_layout.members]
                m.d.sync += lost[number].eq(0)
            with m.Elif(self.fetched.valid & self.fetched.payload.error & (self.fetched.payload.region == number)):
                m.d.sync += lost[number].eq(1)

        where = addresses.o.payload.coordinates
        ticket = Cat(where.as_value(), filling, place)
        m.d.comb += [
            reorder.i.payload.group.eq(Cat(where[name] for name in params.groups)),
            reorder.i.payload.row.eq(Cat(where[name] for name in params.rows)),
            reorder.i.payload.tag.eq(ticket),
            reorder.i.valid.eq(addresses.o.valid),
            addresses.o.ready.eq(reorder.i.ready),
            self.fetch.payload.as_value().eq(reorder.o.payload.tag),
            self.fetch.valid.eq(reorder.o.valid),
            reorder.o.ready.eq(self.fetch.ready),
        ]
        with m.If(addresses.o.valid & addresses.o.ready):
            m.d.sync += place.eq(Mux(addresses.o.payload.last, 0, place + 1))

        came = self.fetched.payload
        m.d.comb += [
            buffer.i.payload.column.eq(came.column),
            buffer.i.payload.region.eq(came.region),
            buffer.i.payload.place.eq(came.place),
            buffer.i.valid.eq(self.fetched.valid),
            self.fetched.ready.eq(buffer.i.ready),
        ]

        # The first beat of a region waits until whoever must know of it does, which is in the same cycle as a rule.
        begun, flush = Signal(), Signal()
        known = data.View(region_layout, Array(region.as_value() for region in regions)[buffer.o.payload.region])
        bad = lost.bit_select(buffer.o.payload.region, 1)
        first = buffer.o.valid & ~begun
        told = Signal()
        m.d.comb += told.eq(begun | Mux(bad, self.failed.ready, self.sent.ready))
        with m.If(first & told):
            m.d.sync += [begun.eq(1), flush.eq(self.flush)]
        with m.If(self.done):
            m.d.sync += begun.eq(0)
        m.d.comb += [
            self.done.eq(buffer.o.valid & buffer.o.ready & buffer.o.payload.last),
            self.sent.valid.eq(first & ~bad),
            self.sent.payload.eq(known.copy),
            self.failed.valid.eq(first & bad),
            self.failed.payload.copy.eq(known.copy),
            self.failed.payload.status.eq(Status.READ_ERROR),
            self.o.valid.eq(buffer.o.valid & told & ~bad),
            buffer.o.ready.eq(told & (bad | self.o.ready)),
            self.o.payload.codes.as_value().eq(buffer.o.payload.column.as_value()),
            self.o.payload.last.eq(buffer.o.payload.last),
            self.o.payload.kind.eq(Mux(known.compressed, Kind.COMPRESSED, Kind.RAW)),
            self.o.payload.tag.eq(known.slot),
            self.o.payload.flush.eq(Mux(begun, flush, self.flush)),
        ]
        return m
