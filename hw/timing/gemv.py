"""What a run of a matrix times a vector (GEMV) gave, and the cycles that its commands account for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.timing.channel import row_cycles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hw.device_params import ChannelParams
    from hw.timing.operation import OperationKind

__all__ = ["GemvCycles", "GemvPoint", "gemv_cycles"]


@dataclass(frozen=True, kw_only=True)
class GemvPoint:
    """One run; all channels do the same, so that one stands for all.

    Parameters
    ----------
    device : str
        Name of the device's preset.
    kind : OperationKind
        What ran: scores, which are the product, or attention, which reads as many columns.
    outputs, inputs : int
        Rows and columns of the matrix.
    last_column, last_result : int
        Cycles of the memory clock from the start to the last column read, and to the last score, or the last beat of
        the last state.
    counts : mapping of str to int
        Commands of one channel by kind.
    """

    device: str
    kind: OperationKind
    outputs: int
    inputs: int
    last_column: int
    last_result: int
    counts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class GemvCycles:
    """Cycles of a channel's commands, one kind after the other.

    Parameters
    ----------
    columns : int
        Column reads of all banks, n_ccdab each.
    rows : int
        What opening and closing adds to a row's columns, all rows together.
    refreshes : int
        Refreshes, n_rfc each.
    """

    columns: int
    rows: int
    refreshes: int

    @property
    def total(self) -> int:
        """All of them. Broadcasts go out between the columns and add nothing."""
        return self.columns + self.rows + self.refreshes


def gemv_cycles(params: ChannelParams, counts: Mapping[str, int]) -> GemvCycles:
    """Return the cycles that the commands of a channel account for.

    A row of c columns takes :func:`hw.timing.channel.row_cycles`, of which ``c * n_ccdab`` are its columns. A run
    lasts longer by the command and query before its first column, and by what units wait for their weights; it ends
    with a column and not with the closing of its row (``tests/rtl/test_gemv.py``).

    Parameters
    ----------
    params : ChannelParams
        The channel.
    counts : mapping of str to int
        ``MAC``, ``ACT`` and, if there was one, ``REF``; all rows hold equal numbers of columns.

    Raises
    ------
    ValueError
        If the columns do not fill the rows evenly.
    """
    columns, rows = counts["MAC"], counts["ACT"]
    if columns % rows:
        raise ValueError(f"MAC must be a multiple of the {rows} rows opened, not {columns!r}")
    each = columns // rows
    return GemvCycles(
        columns=columns * params.timing.n_ccdab,
        rows=rows * (row_cycles(params, each) - each * params.timing.n_ccdab),
        refreshes=counts.get("REF", 0) * params.timing.n_rfc,
    )
