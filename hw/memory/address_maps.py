"""Address maps of the memories: which digits of a slot's number choose channel, bank, row or page."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from golden.checks import require_int
from golden.kv.address_map import AddressMap, Level
from hw.memory.complete import Complete

if TYPE_CHECKING:
    from hw.memory.organisation import Organisation

__all__ = [
    "DimmOrganisation",
    "DriveOrganisation",
    "dimm_interleaved",
    "dimm_token_major",
    "drive_page_packed",
    "drive_token_major",
    "stack_interleaved",
    "stack_token_major",
]


@dataclass(frozen=True, kw_only=True)
class _Counts(Complete):
    """Base of organisations that are nothing but counts."""

    def __post_init__(self) -> None:
        for item in fields(self):
            require_int(item.name, getattr(self, item.name), 1)


@dataclass(frozen=True, kw_only=True)
class DimmOrganisation(_Counts):
    """Division of a DIMM whose chips are addressed one by one; every count is per unit of the level above.

    Parameters
    ----------
    ranks, chips, bankgroups, banks, rows, columns : int
        Ranks of the DIMM, chips of a rank, bank groups of a chip, banks of a group, rows of a bank, columns of a row.
    column_bytes : int
        What a column command moves in one chip.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or less than 1.
    """

    ranks: int
    chips: int
    bankgroups: int
    banks: int
    rows: int
    columns: int
    column_bytes: int


@dataclass(frozen=True, kw_only=True)
class DriveOrganisation(_Counts):
    """Division of a drive; every count is per unit of the level above.

    Parameters
    ----------
    channels, dies, planes, blocks, pages : int
        Channels of the drive, dies of a channel, planes of a die, blocks of a plane, pages of a block.
    page_bytes : int
        Bytes of a page.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or less than 1.
    """

    channels: int
    dies: int
    planes: int
    blocks: int
    pages: int
    page_bytes: int


def stack_token_major(stacks: int, organisation: Organisation, *, slot_bytes: int) -> AddressMap:
    """Return the order in which a slot lies in one row of one bank of HBM, and slot after slot fills bank after bank.

    Parameters
    ----------
    stacks : int
        Stacks of the memory.
    organisation : Organisation
        Of one stack.
    slot_bytes : int
        Bytes of a slot; whole columns that divide a row.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer, or the slot does not divide a row into whole columns.
    """
    columns = _split("slot_bytes", slot_bytes, organisation.column_bytes, organisation.columns)
    return AddressMap(
        "stack, token-major",
        (
            Level("byte", organisation.column_bytes),
            Level("column", columns),
            Level("column", organisation.columns // columns),
            Level("row", organisation.rows),
            *_above_row(organisation),
            Level("stack", stacks),
        ),
        2,
    )


def stack_interleaved(stacks: int, organisation: Organisation, *, slot_bytes: int) -> AddressMap:
    """Return the order in which the banks of a group of HBM read a slot in lock step.

    A slot's columns go to the banks of a group in equal runs. Slots go to one group after another, of all ranks and
    pseudo-channels of a channel, as tokens are dealt; then to the next columns of the same rows, to the channels,
    to the stacks, to the rows.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer, or a bank's share of the slot does not divide a row into whole columns.
    """
    share = organisation.banks * organisation.column_bytes
    columns = _split("slot_bytes", slot_bytes, share, organisation.columns)
    return AddressMap(
        "stack, bank-interleaved",
        (
            Level("byte", organisation.column_bytes),
            Level("column", columns),
            Level("bank", organisation.banks),
            Level("bankgroup", organisation.bankgroups),
            Level("rank", organisation.ranks),
            Level("pseudochannel", organisation.pseudochannels),
            Level("column", organisation.columns // columns),
            Level("channel", organisation.channels),
            Level("stack", stacks),
            Level("row", organisation.rows),
        ),
        3,
    )


def _above_row(organisation: Organisation) -> tuple[Level, ...]:
    return (
        Level("bank", organisation.banks),
        Level("bankgroup", organisation.bankgroups),
        Level("rank", organisation.ranks),
        Level("pseudochannel", organisation.pseudochannels),
        Level("channel", organisation.channels),
    )


def dimm_token_major(dimms: int, organisation: DimmOrganisation, *, slot_bytes: int) -> AddressMap:
    """Return the order in which a slot lies in one row of one bank of one chip.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer, or the slot does not divide a row into whole columns.
    """
    columns = _split("slot_bytes", slot_bytes, organisation.column_bytes, organisation.columns)
    return AddressMap(
        "DIMM, token-major",
        (
            Level("byte", organisation.column_bytes),
            Level("column", columns),
            Level("column", organisation.columns // columns),
            Level("row", organisation.rows),
            Level("bank", organisation.banks),
            Level("bankgroup", organisation.bankgroups),
            Level("chip", organisation.chips),
            Level("rank", organisation.ranks),
            Level("dimm", dimms),
        ),
        2,
    )


def dimm_interleaved(dimms: int, organisation: DimmOrganisation, *, slot_bytes: int) -> AddressMap:
    """Return the order in which the banks of a group of one chip read a slot in lock step.

    Slots go to one group after another, of all chips and ranks; then to the next columns of the same rows, to the
    DIMMs, to the rows.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer, or a bank's share of the slot does not divide a row into whole columns.
    """
    share = organisation.banks * organisation.column_bytes
    columns = _split("slot_bytes", slot_bytes, share, organisation.columns)
    return AddressMap(
        "DIMM, bank-interleaved",
        (
            Level("byte", organisation.column_bytes),
            Level("column", columns),
            Level("bank", organisation.banks),
            Level("bankgroup", organisation.bankgroups),
            Level("chip", organisation.chips),
            Level("rank", organisation.ranks),
            Level("column", organisation.columns // columns),
            Level("dimm", dimms),
            Level("row", organisation.rows),
        ),
        3,
    )


def drive_token_major(drives: int, organisation: DriveOrganisation, *, slot_bytes: int) -> AddressMap:
    """Return the order in which slot after slot fills page after page of one plane.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer, or the slot does not divide a page.
    """
    _split("slot_bytes", slot_bytes, 1, organisation.page_bytes)
    return AddressMap(
        "drive, token-major",
        (
            Level("offset", slot_bytes),
            Level("offset", organisation.page_bytes // slot_bytes),
            Level("page", organisation.pages),
            Level("block", organisation.blocks),
            Level("plane", organisation.planes),
            Level("die", organisation.dies),
            Level("channel", organisation.channels),
            Level("drive", drives),
        ),
        1,
    )


def drive_page_packed(drives: int, organisation: DriveOrganisation, *, slot_bytes: int) -> AddressMap:
    """Return the order in which slots fill a page, and page after page goes to another channel, die and plane.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer, or the slot does not divide a page.
    """
    _split("slot_bytes", slot_bytes, 1, organisation.page_bytes)
    return AddressMap(
        "drive, page-packed",
        (
            Level("offset", slot_bytes),
            Level("offset", organisation.page_bytes // slot_bytes),
            Level("channel", organisation.channels),
            Level("die", organisation.dies),
            Level("plane", organisation.planes),
            Level("drive", drives),
            Level("page", organisation.pages),
            Level("block", organisation.blocks),
        ),
        1,
    )


def _split(name: str, whole: int, unit: int, most: int) -> int:
    """Return how many units of bytes ``whole`` has, if they are whole and divide ``most``."""
    require_int(name, whole, unit, unit * most)
    if whole % unit or most % (whole // unit):
        raise ValueError(f"{name} must be {unit} bytes times a divisor of {most}, not {whole!r}")
    return whole // unit
