"""Payloads that a channel's sequencer takes and gives, each a function of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.lib import data

from hw.layouts import command_layout, vector_layout

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["bus_command_layout", "bus_query_layout", "operation_layout", "permission_layout", "rows_layout"]


def rows_layout(params: ChannelParams) -> data.StructLayout:
    """Rows that an operation reads: ``tiles`` rows of keys from ``key_row``, as many of values from ``value_row`` on.

    Every row is read from column 0 on, ``tile_columns`` columns of it, ``last_columns`` of the last.
    """
    rows, columns = params.organisation.rows, params.organisation.columns
    return data.StructLayout(
        {
            "key_row": range(rows),
            "value_row": range(rows),
            "tiles": range(rows + 1),
            "tile_columns": range(columns + 1),
            "last_columns": range(columns + 1),
        }
    )


def operation_layout(params: ChannelParams) -> data.StructLayout:
    """One operation of a channel: one query over the tokens that its parts hold.

    ``unit`` is what all processing units are told, ``num_tokens`` left out; ``tokens`` is that number for each part.
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


def permission_layout(params: ChannelParams) -> data.StructLayout:
    """Permissions of a part: operations whose keys, and tiles whose values, it may be sent; modulo 4 each."""
    return data.StructLayout({"key_operations": 2, "value_tiles": 2})
