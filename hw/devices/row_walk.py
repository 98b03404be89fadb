"""The rows that an operation reads, in the order in which the processing units take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.devices.layouts import rows_layout

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["RowWalk"]


class RowWalk(wiring.Component):
    """Name the rows of each operation: K0, K1, V0, K2, V1, ..., K_last, V_(last-1), V_last.

    A row holds a tile of the processing units, so that this is :func:`hw.timing.kv_order.kv_order` by rows and every
    row is opened once. Operations of no tile are passed over, one a cycle.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    rows : In(stream of rows_layout)
        One item an operation.
    valid : Out(1)
        There is a row to read; ``is_value``, ``row`` and ``columns`` say which.
    is_value : Out(1)
        It holds values.
    row : Out
        Its address.
    columns : Out
        Columns to read, from column 0 on; at least 1.
    operation, value_tile : Out(2)
        Number of the row's operation, and of the next row of values, counted from reset, modulo 4.
    advance : In(1)
        The row has been read; only while ``valid``.
    """

    rows: stream.Interface
    valid: Signal
    is_value: Signal
    row: Signal
    columns: Signal
    operation: Signal
    value_tile: Signal
    advance: Signal

    def __init__(self, params: ChannelParams) -> None:
        self.params = params
        super().__init__(
            {
                "rows": In(stream.Signature(rows_layout(params))),
                "valid": Out(1),
                "is_value": Out(1),
                "row": Out(range(params.organisation.rows)),
                "columns": Out(range(params.organisation.columns + 1)),
                "operation": Out(2),
                "value_tile": Out(2),
                "advance": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the walk."""
        m = Module()
        current = Signal(rows_layout(self.params))
        tiles = current.tiles
        keys = Signal.like(tiles)
        values = Signal.like(tiles)
        tile = Signal.like(tiles)
        loading = self.rows.valid & self.rows.ready
        m.d.comb += [
            self.rows.ready.eq(~self.valid),
            tile.eq(Mux(self.is_value, values, keys)),
            self.row.eq(Mux(self.is_value, current.value_row, current.key_row) + tile),
            self.columns.eq(Mux(tile == tiles - 1, current.last_columns, current.tile_columns)),
        ]
        with m.If(loading):
            m.d.sync += [current.eq(self.rows.payload), keys.eq(0), values.eq(0), self.is_value.eq(0)]
            with m.If(self.rows.payload.tiles != 0):
                m.d.sync += self.valid.eq(1)
            with m.Else():
                m.d.sync += self.operation.eq(self.operation + 1)
        with m.If(self.advance & ~self.is_value):
            # The keys of the second tile follow those of the first at once.
            m.d.sync += [keys.eq(keys + 1), self.is_value.eq((keys != 0) | (tiles == 1))]
        with m.If(self.advance & self.is_value):
            m.d.sync += [
                values.eq(values + 1),
                self.value_tile.eq(self.value_tile + 1),
                self.is_value.eq(keys == tiles),
            ]
            with m.If(values == tiles - 1):
                m.d.sync += [self.valid.eq(0), self.operation.eq(self.operation + 1)]
        return m
