"""One channel of a memory with open rows, for simulation: what waits for it, what goes next, and when it comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.dma_bench_params import DmaBenchParams, OpenRowParams
from hw.interface.bench_rows import TIME_BITS, RowTimer
from hw.interface.dma_layouts import fetch_address_layout, fetch_layout

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams

__all__ = ["BenchChannel"]

_COUNT_BITS = 16


class BenchChannel(wiring.Component):
    """Order reads, reads back and writes on one data bus. Simulation only.

    Overview
    --------
    A column a cycle is ordered, at a time that :class:`hw.interface.bench_rows.RowTimer` gives. Reads go until
    ``write_batch`` columns wait to be written, or nothing can be read and the bus has little to do; then writes go
    until none waits, or ``write_batch`` have gone while reads wait. Of a read and a read back that wait the one goes
    whose bank is ready sooner, or they take turns. A column is read back after all that were written before it was
    asked for.

    Protocol
    --------
    Plain ready/valid streams; each kind keeps its order.

    Parameters
    ----------
    bench : DmaBenchParams
        Gives the clock.
    end : DmaParams
        The end whose memory this is part of.
    params : OpenRowParams
        The memory.

    Members
    -------
    fetch, check, write : In(stream of fetch_layout), In(stream of fetch_address_layout) twice
        What to read, to read back and to write.
    fetched, checked : Out(stream of fetch_layout), Out(stream of fetch_address_layout)
        The same when its data have come, ``n_cl + n_bl`` behind its column.
    now : In(TIME_BITS)
        Time.
    opened : Out(1)
        A row is being opened.
    """

    simulation_only = True
    fetch: stream.Interface
    check: stream.Interface
    write: stream.Interface
    fetched: stream.Interface
    checked: stream.Interface

    def __init__(self, bench: DmaBenchParams, end: DmaParams, params: OpenRowParams) -> None:
        require_type("bench", bench, DmaBenchParams)
        self.bench, self.end, self.params = bench, end, params
        address, fetch = fetch_address_layout(end), fetch_layout(end)
        super().__init__(
            {
                "fetch": In(stream.Signature(fetch)),
                "check": In(stream.Signature(address)),
                "write": In(stream.Signature(address)),
                "fetched": Out(stream.Signature(fetch)),
                "checked": Out(stream.Signature(address)),
                "now": In(TIME_BITS),
                "opened": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the queues, the choice and the two ways back."""
        m = Module()
        batch, waiting = self.params.write_batch, self.params.reads_waiting
        m.submodules.timer = timer = RowTimer(self.bench, self.end, self.params, looks=2)
        address = fetch_address_layout(self.end)
        checks_layout = data.StructLayout({"address": address, "written": _COUNT_BITS})
        reads = SyncFIFO(width=fetch_layout(self.end).size, depth=waiting)
        checks = SyncFIFO(width=checks_layout.size, depth=waiting)
        writes = SyncFIFO(width=address.size, depth=2 * batch)
        m.submodules.reads, m.submodules.checks, m.submodules.writes = reads, checks, writes

        # A read back knows how many columns were to be written when it was asked for.
        asked, written = Signal(_COUNT_BITS), Signal(_COUNT_BITS)
        asking, checking = Signal(checks_layout), Signal(checks_layout)
        reading = Signal(fetch_layout(self.end))
        for queue, port, content in (
            (reads, self.fetch, self.fetch.payload),
            (checks, self.check, asking),
            (writes, self.write, self.write.payload),
        ):
            m.d.comb += [
                queue.w_data.eq(Value.cast(content)),
                queue.w_en.eq(port.valid),
                port.ready.eq(queue.w_rdy),
            ]
        m.d.comb += [
            asking.address.eq(self.check.payload),
            asking.written.eq(asked),
            checking.eq(checks.r_data),
            reading.eq(reads.r_data),
        ]
        m.d.sync += asked.eq(asked + (self.write.valid & self.write.ready))

        backs = []
        for name, port in (("fetched", self.fetched), ("checked", self.checked)):
            # As many as can be on their way: those ordered ahead, and those whose latency runs.
            back = SyncFIFOBuffered(width=TIME_BITS + Value.cast(port.payload).shape().width, depth=256)
            m.submodules[name] = back
            backs.append(back)
            m.d.comb += [
                Value.cast(port.payload).eq(back.r_data[TIME_BITS:]),
                port.valid.eq(back.r_rdy & (back.r_data[:TIME_BITS] <= self.now)),
                back.r_en.eq(port.valid & port.ready),
            ]
        fetched, checked = backs

        can_read = reads.r_rdy & fetched.w_rdy
        can_check = checks.r_rdy & checked.w_rdy & ((written - checking.written)[:_COUNT_BITS] < 1 << _COUNT_BITS - 1)
        writing, gone, was_check = Signal(), Signal(range(batch + 1)), Signal()
        go_read, go_check, go_write, check_first = Signal(), Signal(), Signal(), Signal()
        read_ready, check_ready = timer.ready
        m.d.comb += [
            timer.looks[0].eq(reading.address),
            timer.looks[1].eq(checking.address),
            check_first.eq((check_ready < read_ready) | ((check_ready == read_ready) & ~was_check)),
            go_check.eq(~writing & timer.free & can_check & (~can_read | check_first)),
            go_read.eq(~writing & timer.free & can_read & ~go_check),
            go_write.eq(writing & timer.free & writes.r_rdy),
            reads.r_en.eq(go_read),
            checks.r_en.eq(go_check),
            writes.r_en.eq(go_write),
        ]
        with m.If(go_read | go_check):
            m.d.sync += was_check.eq(go_check)
        with m.If(go_write):
            m.d.sync += [written.eq(written + 1), gone.eq(gone + 1)]
        with m.If(~writing):
            m.d.sync += gone.eq(0)
            with m.If((writes.level >= batch) | (writes.r_rdy & ~can_read & ~can_check & timer.soon)):
                m.d.sync += writing.eq(1)
        with m.Elif(~writes.r_rdy | ((gone >= batch) & (can_read | can_check))):
            m.d.sync += writing.eq(0)

        where = Signal(address)
        with m.If(writing):
            m.d.comb += where.eq(writes.r_data)
        with m.Elif(go_check):
            m.d.comb += where.eq(checking.address)
        with m.Else():
            m.d.comb += where.eq(reading.address)
        latency = self.bench.units(self.params, self.params.timing.n_cl + self.params.timing.n_bl)
        m.d.comb += [
            timer.address.eq(where),
            timer.write.eq(writing),
            timer.go.eq(go_read | go_check | go_write),
            timer.now.eq(self.now),
            self.opened.eq(timer.go & timer.opens),
            fetched.w_data.eq(Cat((timer.column + latency)[:TIME_BITS], reads.r_data)),
            fetched.w_en.eq(go_read),
            checked.w_data.eq(Cat((timer.column + latency)[:TIME_BITS], checking.address.as_value())),
            checked.w_en.eq(go_check),
        ]
        return m
