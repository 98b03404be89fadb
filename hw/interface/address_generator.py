"""The address generation unit: a slot's number becomes the addresses of its columns."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma_params import AddressParams
from hw.interface.layouts import column_address_layout

__all__ = ["AddressGenerator"]


class AddressGenerator(wiring.Component):
    """Give the addresses of a slot's columns, in the order of the slot's bytes.

    Overview
    --------
    What :func:`golden.dma.relayout.column_addresses` says. A counter of columns below and the slot's number above are
    the digits of the byte's index; each coordinate takes the bits of its own digits, so that there is no arithmetic but
    the counter and the comparison with the end of the memory.

    Protocol
    --------
    Plain ready/valid streams. A slot that does not exist gives one address with ``unmapped`` and ``last``, its
    coordinates zero and not to be used.

    Timing
    ------
    Slots of three columns::

        cycle   0   1   2   3   4
        i       A   B   .   .   .
        o       .   A0  A1  A2  B0

    Latency and throughput
    ----------------------
    1 cycle; an address a cycle, ``columns`` cycles a slot, one for a slot that does not exist.

    Parameters
    ----------
    params : AddressParams
        Order of the slots.

    Members
    -------
    i : In(stream of unsigned)
        Slots' numbers.
    o : Out(stream of column_address_layout)
        Addresses.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: AddressParams) -> None:
        if not isinstance(params, AddressParams):
            raise TypeError(f"params must be an AddressParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(params.slot_bits)),
                "o": Out(stream.Signature(column_address_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the register of the slot, the counter, and the wires to the coordinates."""
        m = Module()
        params = self.params
        slot = Signal(params.slot_bits)
        column = Signal(range(params.columns))
        unmapped, last = Signal(), Signal()
        m.d.comb += [
            unmapped.eq(slot >= params.space.slots),
            last.eq(unmapped | (column == params.columns - 1)),
            self.i.ready.eq(~self.o.valid | (self.o.ready & last)),
            self.o.payload.unmapped.eq(unmapped),
            self.o.payload.last.eq(last),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += column.eq(Mux(last, 0, column + 1))
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += slot.eq(self.i.payload)
        column_bits = (params.columns - 1).bit_length()
        digits: Value = Cat(column[:column_bits], slot)
        coordinates = column_address_layout(params)["coordinates"].shape
        parts: dict[str, list[Value]] = {name: [] for name in coordinates.members}
        position = 0
        for level in params.space.levels[1:]:
            bits = (level.size - 1).bit_length()
            parts[level.name].append(digits[position : position + bits])
            position += bits
        for name, bits in parts.items():
            m.d.comb += self.o.payload.coordinates[name].eq(Mux(unmapped, 0, Cat(*bits, Const(0, 1))))
        return m
