"""The receiver's way from a payload to a token that is verified in its slot."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from golden.dma.descriptors import Status
from hw.dma_engine_params import DmaParams
from hw.interface.address_generator import AddressGenerator
from hw.interface.check_sum import CheckSum
from hw.interface.dma_layouts import arrival_layout, fetch_address_layout, readback_layout, write_layout

__all__ = ["DestinationWriter"]

_UNVERIFIED = 16
"""Payloads that may be written and not yet verified."""


class DestinationWriter(wiring.Component):
    """Write payloads into their slots, read them back, and say of each whether the memory holds it.

    Overview
    --------
    The columns of a payload go to the addresses of the slot that its tag names, and a check sum is made of them. What
    was written is read back, and its check sum compared: OK, CRC_MISMATCH, or READ_ERROR where it can't be read. A
    payload that has not the columns of a slot, or is damaged, is CRC_MISMATCH, one for a slot that does not exist
    UNMAPPED and not written.

    Protocol
    --------
    Plain ready/valid streams. The memory carries out a read of ``check`` after all writes that it took before, and
    answers in order. Verdicts come in the order of payloads.

    Latency and throughput
    ----------------------
    1 cycle from the first beat to the first write, a column a cycle, a cycle more a payload. The first read follows 4
    cycles behind the last write, the verdict 1 behind the last column that was read back. Up to 4 payloads are verified
    while another is written.

    Numerics
    --------
    CRC-32 (IEEE 802.3), that of :func:`zlib.crc32`.

    Parameters
    ----------
    params : DmaParams
        Sizes.

    Members
    -------
    i : In(stream of arrival_layout)
        Payloads; their tags are slots.
    write : Out(stream of write_layout)
        Columns to write.
    check, checked : Out(stream of an address), In(stream of readback_layout)
        Reads of what was written, and their columns.
    verdict : Out(stream of unsigned)
        Status of each payload.

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
                "i": In(stream.Signature(arrival_layout(params))),
                "write": Out(stream.Signature(write_layout(params))),
                "check": Out(stream.Signature(fetch_address_layout(params))),
                "checked": In(stream.Signature(readback_layout(params))),
                "verdict": Out(stream.Signature(4)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the writer and the verifier, with a queue between."""
        m = Module()
        params = self.params
        space = params.space
        m.submodules.addresses = addresses = AddressGenerator(space)
        m.submodules.check_addresses = check_addresses = AddressGenerator(space)
        crc = CheckSum(params.relayout.column_bytes)
        check_crc = CheckSum(params.relayout.column_bytes)
        m.submodules.crc, m.submodules.check_crc = crc, check_crc
        written_layout = data.StructLayout({"sum": 32, "status": 4})
        m.submodules.due = due = SyncFIFOBuffered(width=space.slot_bits, depth=_UNVERIFIED)
        m.submodules.written = written = SyncFIFOBuffered(width=written_layout.size, depth=_UNVERIFIED)

        told, where = self.i.payload, addresses.o.payload
        slot = Signal(space.slot_bits)
        status = Signal(4)
        first = Signal()
        # A number beyond those of the address generator's input is one beyond the slots, too.
        clipped = Mux(told.tag >= space.space.slots, space.space.slots, told.tag)
        # A slot is taken, its columns are written, beats or addresses that are left over are dropped, the end is noted.
        begun, spare_addresses, spare_beats, ending = (
            Signal(name=name) for name in ("begun", "spare_addresses", "spare_beats", "ending")
        )
        pair, put = Signal(), Signal()
        passes = where.unmapped | self.write.ready
        m.d.comb += [
            addresses.i.payload.eq(clipped),
            # The end of the payload before may be noted in this cycle.
            addresses.i.valid.eq(self.i.valid & ~begun & (written.level + ending < _UNVERIFIED)),
            pair.eq(self.i.valid & addresses.o.valid & begun & ~(spare_addresses | spare_beats | ending)),
            put.eq(pair & passes),
            self.write.valid.eq(pair & ~where.unmapped),
            self.i.ready.eq(put | spare_beats),
            addresses.o.ready.eq(put | spare_addresses),
            written.w_en.eq(ending),
            due.w_en.eq(ending & (status == Status.OK)),
        ]
        with m.If(addresses.i.valid & addresses.i.ready):
            m.d.sync += [begun.eq(1), slot.eq(clipped), status.eq(Status.OK), first.eq(1)]
        with m.If(put):
            m.d.sync += [
                first.eq(0),
                begun.eq(~(told.last & where.last)),
                ending.eq(told.last & where.last),
                spare_addresses.eq(told.last & ~where.last),
                spare_beats.eq(~told.last & where.last),
            ]
            with m.If(where.unmapped):
                m.d.sync += status.eq(Status.UNMAPPED)
            with m.Elif(told.fault | (told.last != where.last)):
                m.d.sync += status.eq(Status.CRC_MISMATCH)
        with m.If(spare_addresses & addresses.o.valid & where.last):
            m.d.sync += [spare_addresses.eq(0), ending.eq(1), begun.eq(0)]
        with m.If(spare_beats & self.i.valid & told.last):
            m.d.sync += [spare_beats.eq(0), ending.eq(1), begun.eq(0)]
        with m.If(ending):
            m.d.sync += ending.eq(0)
        entry = Signal(written_layout)
        m.d.comb += [
            self.write.payload.address.eq(where.coordinates),
            self.write.payload.column.as_value().eq(told.codes.as_value()),
            crc.data.eq(told.codes.as_value()),
            crc.valid.eq(put),
            crc.start.eq(put & first),
            entry.sum.eq(crc.crc),
            entry.status.eq(status),
            written.w_data.eq(entry),
            due.w_data.eq(slot),
        ]

        m.d.comb += [
            check_addresses.i.payload.eq(due.r_data),
            check_addresses.i.valid.eq(due.r_rdy),
            due.r_en.eq(check_addresses.i.ready),
            self.check.payload.eq(check_addresses.o.payload.coordinates),
            self.check.valid.eq(check_addresses.o.valid),
            check_addresses.o.ready.eq(self.check.ready),
        ]
        column = Signal(range(params.columns + 1))
        unreadable = Signal()
        known = Signal(written_layout)
        whole = column == params.columns
        m.d.comb += [
            known.eq(written.r_data),
            self.checked.ready.eq(~whole),
            check_crc.data.eq(Cat(self.checked.payload.column)),
            check_crc.valid.eq(self.checked.valid & self.checked.ready),
            check_crc.start.eq(column == 0),
            self.verdict.valid.eq(written.r_rdy & (whole | (known.status != Status.OK))),
            written.r_en.eq(self.verdict.valid & self.verdict.ready),
        ]
        with m.If(known.status != Status.OK):
            m.d.comb += self.verdict.payload.eq(known.status)
        with m.Elif(unreadable):
            m.d.comb += self.verdict.payload.eq(Status.READ_ERROR)
        with m.Elif(check_crc.crc != known.sum):
            m.d.comb += self.verdict.payload.eq(Status.CRC_MISMATCH)
        with m.If(self.checked.valid & self.checked.ready):
            m.d.sync += [column.eq(column + 1), unreadable.eq(unreadable | self.checked.payload.error)]
        with m.Elif(written.r_en & (known.status == Status.OK)):
            m.d.sync += [column.eq(0), unreadable.eq(0)]
        return m
