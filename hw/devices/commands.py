"""Commands of one channel on its two buses, row and column, each a function of the organisation.

A bus takes one command a cycle and never stalls. The first field sits at bit 0; a field of a level that has one unit is
0 bits wide. Which kinds go with which scopes, and the distances, are :mod:`hw.memory.rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import Out

if TYPE_CHECKING:
    from hw.memory.organisation import Organisation

__all__ = [
    "ColumnKind",
    "RowKind",
    "Scope",
    "address_fields",
    "column_command_layout",
    "row_command_layout",
    "strobe_signature",
]


class Scope(enum.Enum, shape=2):
    """Banks that a command reaches: one, the bank of one number in every bank group of the channel, or all."""

    BANK = 0
    SAME_BANK = 1
    ALL_BANK = 2


class RowKind(enum.Enum, shape=2):
    """Commands of the row bus: activate, precharge, refresh."""

    ACT = 0
    PRE = 1
    REF = 2


class ColumnKind(enum.Enum, shape=2):
    """Commands of the column bus.

    RD reads to the pins, MAC to the units at the banks, WR writes from the pins. BROADCAST takes a column's worth of
    bytes from the pins to every unit, and reaches no bank.
    """

    RD = 0
    WR = 1
    MAC = 2
    BROADCAST = 3


def address_fields(organisation: Organisation) -> dict[str, Any]:
    """Return the fields that name one bank of a channel, and their shapes.

    A field has a bit also where there is one of its kind alone: Verilog has no vector of none.
    """
    counts = {
        "pseudochannel": organisation.pseudochannels,
        "rank": organisation.ranks,
        "bankgroup": organisation.bankgroups,
        "bank": organisation.banks,
    }
    return {name: range(max(2, count)) for name, count in counts.items()}


def row_command_layout(organisation: Organisation) -> data.StructLayout:
    """Return the row command's layout.

    SAME_BANK looks at ``bank`` alone of the address, ALL_BANK at none, only ACT at ``row``.
    """
    return data.StructLayout(
        {"kind": RowKind, "scope": Scope, **address_fields(organisation), "row": range(organisation.rows)}
    )


def column_command_layout(organisation: Organisation) -> data.StructLayout:
    """Return the column command's layout; its row is the one that is open.

    BROADCAST looks at neither scope nor address nor column.
    """
    return data.StructLayout(
        {"kind": ColumnKind, "scope": Scope, **address_fields(organisation), "column": range(organisation.columns)}
    )


def strobe_signature(shape: Any) -> wiring.Signature:
    """Return the signature of what is taken whenever it is valid: members ``valid`` and ``payload``, no ready."""
    return wiring.Signature({"valid": Out(1), "payload": Out(shape)})
