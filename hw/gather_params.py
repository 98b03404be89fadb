"""Parameters of the gather unit, which turns selected ids into bursts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from golden.checks import require_int

__all__ = ["GatherParams"]


@dataclass(frozen=True, kw_only=True)
class GatherParams:
    """Parameters of :class:`hw.units.gather.Gather`.

    Parameters
    ----------
    id_bits : int
        Width of an id; 1 to 32.
    address_bits : int
        Width of an address, of bytes; 8 to 64.
    row_bits : int
        Width of the bytes of a row and of the stride between rows; 1 to 32.
    max_burst_rows : int
        Most rows of a burst; a run-time number up to this; 1 to 4096.
    lanes : int
        Ids that a transfer may have, those of a row of the shard that gives them; 2 to 128.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not an integer or out of range.
    """

    id_bits: int = 20
    address_bits: int = 40
    row_bits: int = 20
    max_burst_rows: int = 64
    lanes: int = 32

    def __post_init__(self) -> None:
        require_int("id_bits", self.id_bits, 1, 32)
        require_int("address_bits", self.address_bits, 8, 64)
        require_int("row_bits", self.row_bits, 1, 32)
        require_int("max_burst_rows", self.max_burst_rows, 1, 4096)
        require_int("lanes", self.lanes, 2, 128)

    @property
    def rows_bits(self) -> int:
        """Width of a number of rows."""
        return self.max_burst_rows.bit_length()

    @property
    def length_bits(self) -> int:
        """Width of the bytes of a burst."""
        return self.rows_bits + self.row_bits

    def replace(self, **changes: Any) -> Self:
        """Return these parameters with ``changes`` applied, validated anew."""
        return replace(self, **changes)
