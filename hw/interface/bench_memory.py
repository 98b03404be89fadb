"""A memory behind an end of the DMA, for simulation: at once, or with open rows, and with what is written kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hw.dma_bench_params import UNITS, DmaBenchParams, OpenRowParams
from hw.interface.bench_channel import BenchChannel
from hw.interface.bench_rows import TIME_BITS
from hw.interface.dma_layouts import fetch_address_layout, fetch_layout

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams

__all__ = ["BenchMemory"]

_CHECKS_UNDER_WAY = 1024


class BenchMemory(wiring.Component):
    """Give what is asked of a memory its time. Simulation only.

    Overview
    --------
    Every channel has a bus of its own (:class:`hw.interface.bench_channel.BenchChannel`). A stream waits for the
    channel of its first item. Reads come back as channels have them, one a cycle; reads back in the order in which they
    were asked for. ``at_once`` leaves all that out.

    Protocol
    --------
    Plain ready/valid streams. ``at_once`` does not change while anything is under way.

    Parameters
    ----------
    bench : DmaBenchParams
        Gives the clock.
    end : DmaParams
        The end whose memory this is.
    params : OpenRowParams
        The memory.

    Members
    -------
    fetch, check, write, fetched, checked
        Those of :class:`hw.interface.bench_channel.BenchChannel`.
    at_once : In(1)
        The memory takes no time.
    opened : Out(32)
        Rows opened until now.
    """

    simulation_only = True

    def __init__(self, bench: DmaBenchParams, end: DmaParams, params: OpenRowParams) -> None:
        self.bench, self.end, self.params = bench, end, params
        address, fetch = fetch_address_layout(end), fetch_layout(end)
        super().__init__(
            {
                "fetch": In(stream.Signature(fetch)),
                "check": In(stream.Signature(address)),
                "write": In(stream.Signature(address)),
                "fetched": Out(stream.Signature(fetch)),
                "checked": Out(stream.Signature(address)),
                "at_once": In(1),
                "opened": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the channels, part what comes among them, and bring together what they give."""
        m = Module()
        now = Signal(TIME_BITS)
        m.d.sync += now.eq(now + UNITS)
        count = 1 << self.end.coordinates[self.params.channel]
        channels = [BenchChannel(self.bench, self.end, self.params) for _ in range(count)]
        for number, channel in enumerate(channels):
            m.submodules[f"channel_{number}"] = channel
            m.d.comb += channel.now.eq(now)
        m.d.sync += self.opened.eq(self.opened + sum(channel.opened for channel in channels))

        # The order in which reads back were asked for, as numbers of channels.
        width = max(1, (count - 1).bit_length())
        m.submodules.order = order = SyncFIFOBuffered(width=width, depth=_CHECKS_UNDER_WAY)
        for name in ("fetch", "check", "write"):
            port = getattr(self, name)
            where = port.payload.address if name == "fetch" else port.payload
            free = order.w_rdy if name == "check" else 1
            ready = self.at_once & self._straight(m, name)
            for number, channel in enumerate(channels):
                target, mine = getattr(channel, name), Signal(name=f"{name}_of_{number}")
                m.d.comb += [
                    mine.eq(~self.at_once & (where[self.params.channel] == number) & free),
                    Value.cast(target.payload).eq(Value.cast(port.payload)),
                    target.valid.eq(port.valid & mine),
                ]
                ready |= mine & target.ready
            m.d.comb += port.ready.eq(ready)
        m.d.comb += [
            order.w_data.eq(self.check.payload[self.params.channel]),
            order.w_en.eq(self.check.valid & self.check.ready & ~self.at_once),
        ]

        # The channel whose turn it is goes first; then the others in their order.
        turn = Signal(range(max(2, count)))
        with m.If(self.fetched.valid & self.fetched.ready):
            m.d.sync += turn.eq(Mux(turn == count - 1, 0, turn + 1))
        with m.If(self.at_once):
            m.d.comb += [
                self.fetched.valid.eq(self.fetch.valid),
                Value.cast(self.fetched.payload).eq(Value.cast(self.fetch.payload)),
                self.checked.valid.eq(self.check.valid),
                Value.cast(self.checked.payload).eq(Value.cast(self.check.payload)),
            ]
        with m.Else():
            there = Cat(channel.fetched.valid for channel in channels)
            m.d.comb += self.fetched.valid.eq(there.any())
            with m.Switch(turn):
                for first in range(count):
                    with m.Case(first):
                        self._first_of(m, [channels[(first + step) % count] for step in range(count)])
            for number, channel in enumerate(channels):
                with m.If(order.r_rdy & (order.r_data == number)):
                    m.d.comb += [
                        self.checked.valid.eq(channel.checked.valid),
                        Value.cast(self.checked.payload).eq(Value.cast(channel.checked.payload)),
                        channel.checked.ready.eq(self.checked.ready),
                        order.r_en.eq(channel.checked.valid & self.checked.ready),
                    ]
        return m

    def _straight(self, m: Module, name: str) -> Value:
        """Return whether whoever takes what memories at once give is ready."""
        ready = Signal(name=f"{name}_straight")
        back = {"fetch": self.fetched, "check": self.checked}
        m.d.comb += ready.eq(back[name].ready if name in back else 1)
        return ready

    def _first_of(self, m: Module, channels: list[BenchChannel]) -> None:
        """Give the first of the channels that have something the way back."""
        before: Value | int = 0
        for channel in channels:
            with m.If(channel.fetched.valid & ~Value.cast(before)):
                m.d.comb += [
                    Value.cast(self.fetched.payload).eq(Value.cast(channel.fetched.payload)),
                    channel.fetched.ready.eq(self.fetched.ready),
                ]
            before = before | channel.fetched.valid
