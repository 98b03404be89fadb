"""Bursts that read the rows of selected ids from memory, adjacent rows in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.checks import require_int

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Burst", "Rows", "bursts"]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Where rows lie: that of id n begins at ``base_bytes + n * stride_bytes``.

    Parameters
    ----------
    base_bytes : int
        Address of the row of id 0.
    stride_bytes : int
        From a row to the next.
    row_bytes : int
        Bytes of a row that are read; at least 1.
    burst_rows : int
        Most rows of a burst; at least 1.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or out of range.
    """

    base_bytes: int
    stride_bytes: int
    row_bytes: int
    burst_rows: int

    def __post_init__(self) -> None:
        require_int("base_bytes", self.base_bytes, 0)
        require_int("stride_bytes", self.stride_bytes, 0)
        require_int("row_bytes", self.row_bytes, 1)
        require_int("burst_rows", self.burst_rows, 1)


@dataclass(frozen=True)
class Burst:
    """Bytes read in one go.

    Parameters
    ----------
    address_bytes, length_bytes : int
        Where they begin, and how many.
    rows : int
        Rows among them.
    """

    address_bytes: int
    length_bytes: int
    rows: int


def bursts(ids: Iterable[int], rows: Rows) -> list[Burst]:
    """Return the bursts that read the rows of ``ids``, in their order.

    An id that follows its predecessor's extends its burst where rows touch (stride and bytes of a row are equal) and
    the burst has fewer than ``burst_rows`` rows; any other id begins a burst. The bytes read are those of the ids,
    ``row_bytes`` each.

    Parameters
    ----------
    ids : iterable of int
        At least 0; ascending ids give the fewest bursts.
    rows : Rows
    """
    touch = rows.stride_bytes == rows.row_bytes
    found: list[Burst] = []
    before = -2
    for number in ids:
        if found and touch and number == before + 1 and found[-1].rows < rows.burst_rows:
            last = found[-1]
            found[-1] = Burst(last.address_bytes, last.length_bytes + rows.row_bytes, last.rows + 1)
        else:
            found.append(Burst(rows.base_bytes + number * rows.stride_bytes, rows.row_bytes, 1))
        before = number
    return found
