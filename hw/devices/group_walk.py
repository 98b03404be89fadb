"""The rows that an operation reads from the banks of a group in turn, in the order of its keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.devices.layouts import append_layout, rows_layout
from hw.timing.operation import OperationKind

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["GroupWalk", "visit_layout"]


def visit_layout(params: ChannelParams) -> data.StructLayout:
    """Return the layout of one opening of a row, of which ``columns`` columns are read from column 0 on.

    ``first`` marks the first row of an operation; ``tile`` counts the rows of its kind from 0; ``operation`` and
    ``value_tile`` count operations, and tiles of values, from reset, modulo 4; ``append``, ``token_columns``
    and ``last_query`` are those of the operation, and ``scored`` says that it is one of scores.
    """
    organisation = params.organisation
    return data.StructLayout(
        {
            "first": 1,
            "is_value": 1,
            "tile": range(params.part_rows),
            "bank": range(organisation.banks),
            "row": range(organisation.rows),
            "columns": range(organisation.columns + 1),
            "operation": 2,
            "value_tile": 2,
            "append": append_layout(params),
            "token_columns": range(organisation.columns + 1),
            "last_query": params.processing.query_range,
            "scored": 1,
        }
    )


class GroupWalk(wiring.Component):
    """Name the rows of each operation by tiles: K0, K1, V0, K2, V1, ..., K_last, V_(last-1), V_last.

    Overview
    --------
    This is :func:`hw.timing.kv_order.kv_order` of the processing unit; a row holds a tile. Row r of a part is row
    ``r // banks`` of bank ``r % banks``. Where values begin in the same bank as keys, rows that follow each other lie
    in different banks, but for K0 and V0 of an operation of one tile. An operation of scores has the tiles of keys
    alone. Operations of no tile are passed over, one a cycle.

    Protocol
    --------
    ``visits`` gives a row in every cycle of an operation; it runs as far ahead of what is read as it is taken.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    rows : In(stream of rows_layout)
        One item an operation.
    visits : Out(stream of visit_layout)
        Rows in the order in which they are read.
    """

    rows: stream.Interface
    visits: stream.Interface

    def __init__(self, params: ChannelParams) -> None:
        self.params = params
        super().__init__(
            {
                "rows": In(stream.Signature(rows_layout(params))),
                "visits": Out(stream.Signature(visit_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the walk over tiles."""
        m = Module()
        banks = self.params.organisation.banks
        current = Signal(rows_layout(self.params))
        active, first, is_value = Signal(), Signal(), Signal()
        operation, value_tile = Signal(2), Signal(2)
        tiles = current.tiles
        keys, values, number = (Signal.like(tiles, name=name) for name in ("keys", "values", "number"))
        row = Signal(range(self.params.part_rows))
        visit = self.visits.payload
        m.d.comb += [
            self.rows.ready.eq(~active),
            self.visits.valid.eq(active),
            number.eq(Mux(is_value, values, keys)),
            row.eq(Mux(is_value, current.value_row, current.key_row) + number),
            visit.first.eq(first),
            visit.is_value.eq(is_value),
            visit.tile.eq(number),
            visit.bank.eq(row % banks),
            visit.row.eq(row // banks),
            visit.columns.eq(Mux(number == tiles - 1, current.last_columns, current.tile_columns)),
            visit.operation.eq(operation),
            visit.value_tile.eq(value_tile),
            visit.append.eq(current.append),
            visit.token_columns.eq(current.token_columns),
            visit.last_query.eq(current.last_query),
            visit.scored.eq(current.kind == OperationKind.SCORE.value),
        ]
        with m.If(self.rows.valid & self.rows.ready):
            m.d.sync += [current.eq(self.rows.payload), keys.eq(0), values.eq(0), is_value.eq(0), first.eq(1)]
            with m.If(self.rows.payload.tiles != 0):
                m.d.sync += active.eq(1)
            with m.Else():
                m.d.sync += operation.eq(operation + 1)
        with m.If(self.visits.valid & self.visits.ready):
            m.d.sync += first.eq(0)
            with m.If(is_value):
                m.d.sync += [values.eq(values + 1), value_tile.eq(value_tile + 1), is_value.eq(keys == tiles)]
                with m.If(values == tiles - 1):
                    m.d.sync += [active.eq(0), operation.eq(operation + 1)]
            with m.Else():
                # The keys of the second tile follow those of the first at once.
                m.d.sync += [keys.eq(keys + 1), is_value.eq(~visit.scored & ((keys != 0) | (tiles == 1)))]
                with m.If(visit.scored & (keys == tiles - 1)):
                    m.d.sync += [active.eq(0), operation.eq(operation + 1)]
        return m
