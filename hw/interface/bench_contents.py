"""What a memory of the bench holds, for simulation: sources are known beforehand, copies are kept and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.devices.cells import Cells
from hw.interface.dma_layouts import (
    SLOT_BITS,
    fetch_address_layout,
    fetch_layout,
    fetched_layout,
    readback_layout,
    write_layout,
)

if TYPE_CHECKING:
    from amaranth.lib import data

    from hw.dma_bench_params import DmaBenchParams
    from hw.dma_engine_params import DmaParams

__all__ = ["BenchContents", "column_number", "column_pattern"]

_FACTOR = 0x9E3779B97F4A7C15
"""Mixes the number of a column: 2^64 over the golden ratio, odd."""


def column_number(end: DmaParams, address: data.View) -> Value:
    """Return the number of a column in the order of slots: the bits of its coordinates in other places."""
    taken = dict.fromkeys(end.coordinates, 0)
    parts: list[Value] = []
    for level in end.space.space.levels[1:]:
        low = taken[level.name]
        taken[level.name] += (level.size - 1).bit_length()
        parts.append(Value.cast(address[level.name])[low : taken[level.name]])
    return Cat(*parts)


def column_pattern(m: Module, name: str, memory_number: int, column: Value, numbers: int) -> Value:
    """Return what a column holds as a source: as many numbers of fp16, whole, from 64 to 127, of either sign.

    A block of such numbers keeps them in 8 bits as they are, so that both ways of sending them can be compared alike.
    """
    mixed = Signal(64, name=name)
    m.d.comb += mixed.eq((column + (memory_number << 40) + 1) * Const(_FACTOR, 64))
    parts: list[Value] = []
    for number in range(numbers):
        bits = mixed.rotate_right(3 * number)
        parts.append(Cat(Const(0, 4), bits[24:30], Const(21, 5), bits[40]))
    return Cat(*parts)


class BenchContents(wiring.Component):
    """Give data to what is read, and compare what is written with its source. Simulation only.

    Overview
    --------
    What an end reads of its own are slots that nothing ever writes: they hold :func:`column_pattern`. What is written
    is kept, and read back from where it was kept. ``reserve`` says beforehand whose copy comes into a slot.

    Protocol
    --------
    Plain ready/valid streams. Data come in the cycle behind the address.

    Parameters
    ----------
    bench : DmaBenchParams
        The bench.
    end, peer : DmaParams
        The end whose memory this is, and the one that copies come from.

    Members
    -------
    read, fetched : In(stream of fetch_layout), Out(stream of fetched_layout)
        Reads of sources.
    look, checked : In(stream of fetch_address_layout), Out(stream of readback_layout)
        Reads of copies.
    write : In(write_layout); written : In(1)
        A column that is being written.
    reserve : In(1); slot, source : In(32)
        Slot of this memory and the one of the other memory whose copy it is to take.
    landed : Out(1)
        The last column of a slot was written, two cycles before.
    wrong : Out(16)
        Columns written until then that differed from their source.
    """

    simulation_only = True

    def __init__(self, bench: DmaBenchParams, end: DmaParams, peer: DmaParams) -> None:
        self.bench, self.end, self.peer = bench, end, peer
        super().__init__(
            {
                "read": In(stream.Signature(fetch_layout(end))),
                "fetched": Out(stream.Signature(fetched_layout(end))),
                "look": In(stream.Signature(fetch_address_layout(end))),
                "checked": Out(stream.Signature(readback_layout(end))),
                "write": In(write_layout(end)),
                "written": In(1),
                "reserve": In(1),
                "slot": In(SLOT_BITS),
                "source": In(SLOT_BITS),
                "landed": Out(1),
                "wrong": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the cells, the table of sources, and the comparison."""
        m = Module()
        end = self.end
        numbers = self.bench.near.path.compression.lanes
        column_bits = 16 * numbers
        place_bits = (end.columns - 1).bit_length()
        space = end.space.space
        m.submodules.cells = cells = Cells(column_bits, space.slots * end.columns)
        m.submodules.sources = sources = Cells(self.peer.source_bits, space.slots)

        asked = self.read.payload
        pattern = column_pattern(m, "mixed_read", end.memory, column_number(end, asked.address), numbers)
        free = ~self.fetched.valid | self.fetched.ready
        m.d.comb += self.read.ready.eq(free)
        with m.If(free):
            m.d.sync += [
                self.fetched.valid.eq(self.read.valid),
                Value.cast(self.fetched.payload.column).eq(pattern),
                self.fetched.payload.region.eq(asked.region),
                self.fetched.payload.place.eq(asked.place),
            ]

        written = self.written
        number = Signal(range(space.slots * end.columns))
        m.d.comb += [
            number.eq(column_number(end, self.write.address)),
            cells.write.eq(written),
            cells.write_address.eq(number),
            cells.write_data.eq(Value.cast(self.write.column)),
            sources.write.eq(self.reserve),
            sources.write_address.eq(self.slot),
            sources.write_data.eq(self.source),
            sources.read.eq(written),
            sources.read_address.eq(number >> place_bits),
            cells.read_address.eq(column_number(end, self.look.payload)),
            cells.read.eq(self.look.valid & self.look.ready),
            self.look.ready.eq(~self.checked.valid | self.checked.ready),
            Value.cast(self.checked.payload.column).eq(cells.read_data),
        ]
        with m.If(self.look.ready):
            m.d.sync += self.checked.valid.eq(self.look.valid)

        came, place, compare = Signal(column_bits), Signal(place_bits), Signal()
        source = Cat(place, sources.read_data)
        wanted = column_pattern(m, "mixed_source", self.peer.memory, source, numbers)
        m.d.sync += [
            came.eq(Value.cast(self.write.column)),
            place.eq(number),
            compare.eq(written),
            self.landed.eq(compare & place.all()),
        ]
        with m.If(compare & (came != wanted)):
            m.d.sync += self.wrong.eq(self.wrong + 1)
        return m
