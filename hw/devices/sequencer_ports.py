"""What the sequencers of a channel have in common: members, when a column is taken and used, a command's payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.devices.commands import column_command_layout, row_command_layout
from hw.devices.layouts import operation_layout, permission_layout, selected_layout
from hw.devices.spacing import Pace
from hw.layouts import vector_layout

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["drive_command", "permitted", "sequencer_members", "used_up"]


def sequencer_members(params: ChannelParams, parts: int) -> dict[str, wiring.Member]:
    """Return the members of a sequencer that hears the units of ``parts`` parts.

    They are described at :class:`hw.devices.sequencer.ChannelSequencer`.
    """
    return {
        "start": In(1),
        "first_refresh_cycles": In(range(params.timing.n_refi + 1)),
        "operation": In(stream.Signature(operation_layout(params))),
        "query": In(stream.Signature(vector_layout(params.processing))),
        "append": In(stream.Signature(vector_layout(params.processing))),
        "places": In(stream.Signature(selected_layout(params))),
        "permissions": In(data.ArrayLayout(permission_layout(params), parts)),
        "command_free": In(1),
        "query_free": In(1),
        "scores_free": In(1),
        "command_valid": Out(1),
        "query_valid": Out(1),
        "banks": Out(params.organisation.banks),
        "wanted": Out(parts),
        "row_command": Out(
            wiring.Signature({"valid": Out(1), "payload": Out(row_command_layout(params.organisation))})
        ),
        "column_command": Out(
            wiring.Signature({"valid": Out(1), "payload": Out(column_command_layout(params.organisation))})
        ),
        "write_data": Out(vector_layout(params.processing)),
    }


def permitted(
    permissions: Any, *, parts: int, is_value: Value, operation: Value, value_tile: Value, room: Value
) -> Value:
    """Return whether every part takes the column that is to be read.

    Parameters
    ----------
    permissions : View
        What each of ``parts`` parts may be sent.
    is_value, operation, value_tile : Value
        Kind of the column, number of its operation and of its tile of values, modulo 4.
    room : Value
        Its score, if it is to leave, finds room.
    """
    counts = [permissions[part] for part in range(parts)]
    keys = Cat(*((count.key_operations != operation) for count in counts)).all()
    values = Cat(*((count.value_tiles != value_tile) for count in counts)).all()
    return (is_value & values) | (~is_value & keys & room)


def used_up(m: Module, params: ChannelParams, *, read: Value, last_query: Value) -> list[Value]:
    """Return whether units are through with the column before the next one comes, if that has to be waited for.

    Parameters
    ----------
    read : Value
        A column is read.
    last_query : Value
        Number of the last query that uses it.

    Returns
    -------
    list of Value
        One bit, or none where the memory's own distance of two columns is as long for the most queries.
    """
    use_cycles = params.use_cycles
    if use_cycles[-1] <= params.timing.n_ccdab:
        return []
    m.submodules.use = use = Pace(use_cycles[-1])
    m.d.comb += [use.event.eq(read), use.cycles.eq(Array(use_cycles)[last_query])]
    return [use.ready]


def drive_command(m: Module, payload: data.View, fields: dict[str, Any]) -> None:
    """Drive a payload whose other fields are 0, in one assignment: Verilator refuses blocks that read no variable."""
    parts = []
    for name, field in payload.shape():
        part = Signal(field.width, name=f"{name}_field")
        m.d.comb += part.eq(Value.cast(fields.get(name, 0)))
        parts.append(part)
    m.d.comb += Value.cast(payload).eq(Cat(*parts))
