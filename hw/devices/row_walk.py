"""The columns that an operation reads, row by row, in the order in which the processing units take them."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.device_params import ChannelParams
from hw.devices.layouts import append_layout, rows_layout, selected_layout
from hw.timing.operation import OperationKind

__all__ = ["RowWalk"]


class RowWalk(wiring.Component):
    """Name the columns of each operation by tiles: K0, K1, V0, K2, V1, ..., K_last, V_(last-1), V_last.

    Overview
    --------
    This is :func:`hw.timing.kv_order.kv_order` of the processing units. All tokens: a row holds a tile, so that every
    row is opened once. Selected tokens: a tile is as many tokens as a row holds, wherever they lie; their places come
    as a list, one a token in the order of the walk, and are kept until the values of their tile have been read. A row
    is opened once for all tokens of a tile that lie in it and follow each other. An operation of scores has the tiles
    of keys alone, and no place is kept. Operations of no tile are passed over,
    one a cycle.

    Protocol
    --------
    ``valid`` is low when the columns of a row are through: the sequencer closes it, and then the next tile of all
    tokens comes. A tile of selected tokens comes at once, as it may go on in the row that is open.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    rows : In(stream of rows_layout)
        One item an operation.
    places : In(stream of selected_layout)
        Selected tokens: one item a token of the walk; only of operations that say so.
    begin : Out(1)
        An item of ``rows`` is taken.
    valid : Out(1)
        There is a column to read; ``is_value``, ``row`` and ``column`` say which.
    is_value : Out(1)
        It holds values.
    tile : Out
        Rows between the first of its kind and its own.
    row, column : Out
        Its address.
    wanted : Out
        Parts that it is for: all, or, where tokens are selected, those that want this one.
    append : Out(append_layout)
        New token of the operation.
    token_columns : Out
        Columns of a token.
    last_query : Out
        Number of the last query that uses the column, counted from 0.
    scored : Out(1)
        The column belongs to an operation of scores.
    operation, value_tile : Out(2)
        Number of the column's operation, and of the next tile of values, counted from reset, modulo 4.
    read : In(1)
        The column is being read; only while ``valid``.
    closed : In(1)
        The row is being closed.
    """

    rows: stream.Interface
    places: stream.Interface
    begin: Signal
    valid: Signal
    is_value: Signal
    tile: Signal
    row: Signal
    column: Signal
    wanted: Signal
    append: data.View
    token_columns: Signal
    last_query: Signal
    scored: Signal
    operation: Signal
    value_tile: Signal
    read: Signal
    closed: Signal

    def __init__(self, params: ChannelParams) -> None:
        require_type("params", params, ChannelParams)
        self.params = params
        organisation = params.organisation
        super().__init__(
            {
                "rows": In(stream.Signature(rows_layout(params))),
                "places": In(stream.Signature(selected_layout(params))),
                "begin": Out(1),
                "valid": Out(1),
                "is_value": Out(1),
                "tile": Out(range(organisation.rows)),
                "row": Out(range(organisation.rows)),
                "column": Out(range(organisation.columns)),
                "wanted": Out(params.parts),
                "append": Out(append_layout(params)),
                "token_columns": Out(range(organisation.columns + 1)),
                "last_query": Out(params.processing.query_range),
                "scored": Out(1),
                "operation": Out(2),
                "value_tile": Out(2),
                "read": In(1),
                "closed": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the walk over tiles, the columns of a tile, and the places of selected tokens."""
        m = Module()
        current = Signal(rows_layout(self.params))
        active = Signal()
        tiles = current.tiles
        keys = Signal.like(tiles)
        values = Signal.like(tiles)
        number = Signal.like(tiles)
        count = Signal.like(current.tile_columns)
        whole = Signal()
        advance = Signal()
        selected, place_valid, index = self._places(m, current)
        place = selected.place
        m.d.comb += [
            self.begin.eq(self.rows.valid & self.rows.ready),
            self.rows.ready.eq(~active),
            number.eq(Mux(self.is_value, values, keys)),
            whole.eq(count == Mux(number == tiles - 1, current.last_columns, current.tile_columns)),
            self.valid.eq(active & ~whole & place_valid),
            self.tile.eq(Mux(current.selected, place.tile, number)),
            self.row.eq(Mux(self.is_value, current.value_row, current.key_row) + self.tile),
            self.column.eq(Mux(current.selected, place.column + index, count)),
            self.wanted.eq(Mux(current.selected, selected.wanted, -1)),
            self.append.eq(current.append),
            self.token_columns.eq(current.token_columns),
            self.last_query.eq(current.last_query),
            self.scored.eq(current.kind == OperationKind.SCORE.value),
            advance.eq(active & whole & (current.selected | self.closed)),
        ]
        with m.If(self.begin):
            m.d.sync += [current.eq(self.rows.payload), keys.eq(0), values.eq(0), self.is_value.eq(0)]
            with m.If(self.rows.payload.tiles != 0):
                m.d.sync += active.eq(1)
            with m.Else():
                m.d.sync += self.operation.eq(self.operation + 1)
        with m.If(self.read):
            m.d.sync += count.eq(count + 1)
        with m.If(advance):
            m.d.sync += count.eq(0)
        with m.If(advance & ~self.is_value):
            # The keys of the second tile follow those of the first at once.
            m.d.sync += [keys.eq(keys + 1), self.is_value.eq(~self.scored & ((keys != 0) | (tiles == 1)))]
            with m.If(self.scored & (keys == tiles - 1)):
                m.d.sync += [active.eq(0), self.operation.eq(self.operation + 1)]
        with m.If(advance & self.is_value):
            m.d.sync += [
                values.eq(values + 1),
                self.value_tile.eq(self.value_tile + 1),
                self.is_value.eq(keys == tiles),
            ]
            with m.If(values == tiles - 1):
                m.d.sync += [active.eq(0), self.operation.eq(self.operation + 1)]
        return m

    def _places(self, m: Module, current: data.View) -> tuple[data.View, Value, Signal]:
        """Return the next selected token, whether it is known, and the columns of it read so far."""
        layout = selected_layout(self.params)
        # Values run up to two tiles behind the keys whose places they share.
        depth = 2 * self.params.processing.tile_tokens
        m.submodules.kept = kept = SyncFIFOBuffered(width=layout.size, depth=depth)
        selected = Signal(layout)
        index = Signal(range(self.params.organisation.columns))
        token_read = Signal()
        m.d.comb += [
            selected.eq(Mux(self.is_value, kept.r_data, Value.cast(self.places.payload))),
            token_read.eq(current.selected & self.read & (index == current.token_columns - 1)),
            self.places.ready.eq(token_read & ~self.is_value),
            kept.w_data.eq(Value.cast(self.places.payload)),
            kept.w_en.eq(self.places.ready & ~self.scored),
            kept.r_en.eq(token_read & self.is_value),
        ]
        with m.If(self.read):
            m.d.sync += index.eq(Mux(token_read | ~current.selected, 0, index + 1))
        return selected, ~current.selected | Mux(self.is_value, kept.r_rdy, self.places.valid), index
