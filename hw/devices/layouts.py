"""Payloads that a channel's sequencer takes and gives, each a function of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.lib import data

from hw.devices.commands import address_fields
from hw.layouts import command_layout, vector_layout

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = [
    "append_layout",
    "bus_command_layout",
    "bus_query_layout",
    "operation_layout",
    "permission_layout",
    "place_layout",
    "rows_layout",
    "score_layout",
    "selected_layout",
]


def place_layout(params: ChannelParams) -> data.StructLayout:
    """Where a token lies in its banks: ``tile`` rows behind the first of keys, and of values, from ``column`` on."""
    return data.StructLayout({"tile": range(params.part_rows), "column": range(params.organisation.columns)})


def selected_layout(params: ChannelParams) -> data.StructLayout:
    """One selected position: where its tokens lie in their banks, and the parts that have ``wanted`` theirs."""
    return data.StructLayout({"place": place_layout(params), "wanted": params.parts})


def append_layout(params: ChannelParams) -> data.StructLayout:
    """Where the new token of an operation is to be written, if it is ``valid``.

    Its slices lie in as many banks of one bank group, the first of which is addressed.
    """
    return data.StructLayout({"valid": 1, "place": place_layout(params), **address_fields(params.organisation)})


def rows_layout(params: ChannelParams) -> data.StructLayout:
    """Rows that an operation reads: keys from ``key_row`` on, values from ``value_row`` on.

    There are ``tiles`` tiles of keys, as many of values, of ``tile_columns`` columns, the last of ``last_columns``; a
    token has ``token_columns`` of them, and the units use each for ``last_query + 1`` queries. Where ``kind`` is that
    of scores, the keys alone are read. A tile is a row from
    column 0 on, or, where tokens are ``selected``, the next places of a list. ``append`` is written before it is read.
    """
    rows, columns = params.part_rows, params.organisation.columns
    return data.StructLayout(
        {
            "key_row": range(rows),
            "value_row": range(rows),
            "tiles": range(rows + 1),
            "tile_columns": range(columns + 1),
            "last_columns": range(columns + 1),
            "token_columns": range(columns + 1),
            "last_query": params.processing.query_range,
            "kind": 1,
            "selected": 1,
            "append": append_layout(params),
        }
    )


def operation_layout(params: ChannelParams) -> data.StructLayout:
    """One operation of a channel: one query, or those that share a KV head, over the tokens that its parts hold.

    ``unit`` is what all processing units are told, ``num_tokens`` left out; ``tokens`` is that number for each part: of
    the walk, the tokens up to the last one that it attends to.
    """
    unit = {key: field.shape for key, field in command_layout(params.processing) if key != "num_tokens"}
    return data.StructLayout(
        {
            "unit": data.StructLayout(unit),
            "rows": rows_layout(params),
            "tokens": data.ArrayLayout(params.processing.token_bits, params.parts),
        }
    )


def bus_command_layout(params: ChannelParams) -> data.StructLayout:
    """Command of an operation as it reaches one bank group: ``tokens`` of its own parts alone."""
    unit = operation_layout(params)["unit"].shape
    return data.StructLayout(
        {"unit": unit, "tokens": data.ArrayLayout(params.processing.token_bits, params.parts_per_group)}
    )


def bus_query_layout(params: ChannelParams) -> data.StructLayout:
    """One beat of a query on its way to the banks of every group whose bit in ``banks`` is set."""
    return data.StructLayout({"banks": params.organisation.banks, "beat": vector_layout(params.processing)})


def score_layout(params: ChannelParams) -> data.StructLayout:
    """Scores that the parts of a bank group have of one position and one query, fp32 codes.

    ``op_id`` is that of the query, ``position`` the token's in the walk, and a part's bit in ``parts`` says that it has
    a score; without it the code means nothing.
    """
    unit = params.processing
    return data.StructLayout(
        {
            "op_id": unit.op_id_bits,
            "position": unit.token_bits,
            "parts": params.parts_per_group,
            "scores": data.ArrayLayout(unit.state_format.bits, params.parts_per_group),
        }
    )


def permission_layout(params: ChannelParams) -> data.StructLayout:
    """Permissions of a part: operations whose keys, and tiles whose values, it may be sent; modulo 4 each."""
    return data.StructLayout({"key_operations": 2, "value_tiles": 2})
