"""Times of columns of one memory channel with open rows, for simulation."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.dma_bench_params import UNITS, DmaBenchParams, OpenRowParams
from hw.interface.dma_layouts import fetch_address_layout

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams

__all__ = ["TIME_BITS", "RowTimer"]

TIME_BITS = 48
"""Bits of a time: 2^40 cycles."""

_SOON_CYCLES = 8
"""A bus that has less than this ordered is about to have nothing to do."""


class RowTimer(wiring.Component):
    r"""Say when a column moves, of columns that move in the order in which they are ordered. Simulation only.

    Overview
    --------
    Rows stay open until another of their bank is wanted; it is then closed and opened as early as the bank allows,
    which may be before columns ahead of it have moved. With ``now`` the time of the order, ``c'`` that of the column
    before, all in units of a cycle of the ends::

        allowed  = max(now, allowed' + n_rrds, allowed' + n_rrdl in the group, the fourth last + n_faw)
        activate = max(allowed, closable + n_rp, activate' + n_rc in the bank)
        column   = max(now, activate + n_rcd, c' + n_ccds, c' + n_ccdl in the group,
                       c' + n_rtw from read to write, c' + n_cwl + n_bl + n_wtrl from write to read)
        closable = max(activate + n_ras, read + n_rtpl, write + n_cwl + n_bl + n_wr)

    So activations keep their rate, while one that its bank holds up does not hold up those of other banks. What is not
    there: refresh; gaps between ranks, which count as more groups; conflicts on the command bus; columns of a channel
    that overtake each other once ordered.

    Protocol
    --------
    ``column`` is the answer to ``address`` and ``write`` in the same cycle; ``go`` orders it. None is to be ordered
    while ``free``, that the last column is less than ``queue_cycles`` ahead, is low. ``soon`` says that it is only a
    few cycles ahead. ``ready`` tells of each of ``looks`` when its bank would let a column go.

    Parameters
    ----------
    bench : DmaBenchParams
        Gives the clock.
    end : DmaParams
        Gives the layout of addresses.
    params : OpenRowParams
        The memory.
    looks : int
        Addresses that are looked at beside.

    Members
    -------
    address : In(fetch_address_layout); write, go : In(1); now : In(TIME_BITS)
        A column to order, to be written or read.
    column : Out(TIME_BITS); opens, free, soon : Out(1)
        When it moves, whether a row is opened for it, whether one may be ordered, whether the bus has little to do.
    looks : array of In(fetch_address_layout); ready : array of Out(TIME_BITS)
        Addresses, and when their banks are ready.
    """

    simulation_only = True
    looks: list[data.View]
    ready: list[Signal]

    def __init__(self, bench: DmaBenchParams, end: DmaParams, params: OpenRowParams, looks: int) -> None:
        require_type("bench", bench, DmaBenchParams)
        self.bench, self.end, self.params = bench, end, params
        address = fetch_address_layout(end)
        super().__init__(
            {
                "address": In(address),
                "write": In(1),
                "go": In(1),
                "now": In(TIME_BITS),
                "column": Out(TIME_BITS),
                "opens": Out(1),
                "free": Out(1),
                "soon": Out(1),
                "looks": In(address).array(looks),
                "ready": Out(TIME_BITS).array(looks),
            }
        )
        bits = end.coordinates
        self._bank_layout = data.StructLayout(
            {
                "open": 1,
                "row": bits[params.row],
                "columns": TIME_BITS,
                "closable": TIME_BITS,
                "activated": TIME_BITS,
            }
        )

    def _units(self, cycles: int) -> int:
        return self.bench.units(self.params, cycles)

    def _group(self, address: data.View) -> Value:
        return Cat(address[name] for name in self.params.groups)

    def _bank(self, address: data.View) -> Value:
        return Cat(self._group(address), *(address[name] for name in self.params.banks))

    def _hit(self, bank: data.View, address: data.View) -> Value:
        return bank.open & (bank.row == address[self.params.row])

    def _reopened(self, bank: data.View) -> Value:
        """Return when another row of a bank may be opened."""
        timing = self.params.timing
        later = _largest(bank.closable + self._units(timing.n_rp), bank.activated + self._units(timing.n_rc))
        return Mux(bank.open, later, 0)

    def elaborate(self, platform: object) -> Module:
        """Build what is remembered of banks, groups and the channel, and the maxima."""
        m = Module()
        timing, address, now = self.params.timing, self.address, self.now
        group_layout = data.StructLayout({"column": TIME_BITS, "allowed": TIME_BITS})
        bank_bits, group_bits = len(self._bank(address)), len(self._group(address))
        m.submodules.banks = banks = memory.Memory(shape=self._bank_layout, depth=1 << bank_bits, init=[])
        m.submodules.groups = groups = memory.Memory(shape=group_layout, depth=1 << group_bits, init=[])
        bank_in, bank_out = banks.write_port(), banks.read_port(domain="comb")
        group_in, group_out = groups.write_port(), groups.read_port(domain="comb")
        m.d.comb += [port.addr.eq(self._bank(address)) for port in (bank_in, bank_out)]
        m.d.comb += [port.addr.eq(self._group(address)) for port in (group_in, group_out)]
        bank, group = bank_out.data, group_out.data
        opening = self._units(max(timing.n_rcdrd, timing.n_rcdwr))
        for look, ready in zip(self.looks, self.ready, strict=True):
            port = banks.read_port(domain="comb")
            opened = Mux(self._hit(port.data, look), port.data.columns, self._reopened(port.data) + opening)
            m.d.comb += [port.addr.eq(self._bank(look)), ready.eq(_largest(now, opened))]

        # The next column of either direction, the next activation, and the last four of them, as the channel has it.
        read_next, write_next, allowed_next, last_column = (
            Signal(TIME_BITS, name=name) for name in ("read_next", "write_next", "allowed_next", "last_column")
        )
        window = [Signal(TIME_BITS, name=f"window_{number}") for number in range(4)]
        hit = self._hit(bank, address)
        allowed, activate, columns, column = (
            Signal(TIME_BITS, name=name) for name in ("allowed", "activate", "columns", "moves")
        )
        data_cycles = timing.n_cwl + timing.n_bl
        held = Mux(self.write, self._units(data_cycles + timing.n_wr), self._units(timing.n_rtpl))
        m.d.comb += [
            allowed.eq(_largest(now, allowed_next, group.allowed, window[-1])),
            activate.eq(_largest(allowed, self._reopened(bank))),
            columns.eq(Mux(hit, bank.columns, activate + opening)),
            column.eq(_largest(now, columns, group.column, Mux(self.write, write_next, read_next))),
            self.column.eq(column),
            self.opens.eq(~hit),
            self.free.eq(last_column < now + self.params.queue_cycles * UNITS),
            self.soon.eq(last_column < now + _SOON_CYCLES * UNITS),
            bank_in.en.eq(self.go),
            bank_in.data.open.eq(1),
            bank_in.data.row.eq(address[self.params.row]),
            bank_in.data.columns.eq(columns),
            bank_in.data.activated.eq(Mux(hit, bank.activated, activate)),
            bank_in.data.closable.eq(
                _largest(Mux(hit, bank.closable, activate + self._units(timing.n_ras)), column + held)
            ),
            group_in.en.eq(self.go),
            group_in.data.column.eq(column + self._units(timing.n_ccdl)),
            group_in.data.allowed.eq(Mux(hit, group.allowed, allowed + self._units(timing.n_rrdl))),
        ]
        after_write = self._units(data_cycles + timing.n_wtrl)
        with m.If(self.go):
            m.d.sync += [
                last_column.eq(column),
                read_next.eq(column + Mux(self.write, after_write, self._units(timing.n_ccds))),
                write_next.eq(column + Mux(self.write, self._units(timing.n_ccds), self._units(timing.n_rtw))),
            ]
            with m.If(~hit):
                m.d.sync += [
                    allowed_next.eq(allowed + self._units(timing.n_rrds)),
                    window[0].eq(allowed + self._units(timing.n_faw)),
                    *(later.eq(earlier) for earlier, later in pairwise(window)),
                ]
        return m


def _largest(*terms: Value | Signal) -> Value:
    """Return the largest of times."""
    found, *rest = terms
    for term in rest:
        found = Mux(found > term, found, term)
    return found
