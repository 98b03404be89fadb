"""Cycles of a channel: rows, the rate at which it can stream, and refresh.

All cycles are those of the memory clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from hw.memory.rules import same_bank_activation_cycles

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = [
    "StreamLimit",
    "mean_refreshes",
    "refresh_cycles",
    "refreshes_before",
    "row_cycles",
    "stream_limit",
    "streamed_row_cycles",
    "with_refresh",
]


@dataclass(frozen=True, kw_only=True)
class StreamLimit:
    """The least cycles that a column of all units can take, sustained.

    Parameters
    ----------
    memory_cycles : Fraction
        By the rules of the memory: a row's columns, its opening and closing, and the share of refresh.
    cap_cycles : Fraction or None
        By the power cap; None where there is none.
    """

    memory_cycles: Fraction
    cap_cycles: Fraction | None

    @property
    def column_cycles(self) -> Fraction:
        """The larger of the two."""
        return max(self.memory_cycles, self.cap_cycles or Fraction(0))


def row_cycles(params: ChannelParams, columns: int, written_columns: int = 0, *, queries: int = 1) -> int:
    """Return the cycles from the activation of a row of which ``columns`` are read to that of its bank's next one.

    With the first read n_rcdrd after the activation, ``max(max(n_rcdrd + (columns - 1) * c + n_rtpl, n_ras) + n_rp,
    n_rc, columns * c)`` where c is :meth:`hw.device_params.ChannelParams.column_cycles` of ``queries``, n_ccdab for
    one; refresh, power cap and waiting units left out. Columns of a new token are written before that: the last
    n_rcdwr + (written_columns - 1) * n_ccdl after the activation, the first read n_cwl + n_bl + n_wtrl and the
    precharge not before n_cwl + n_bl + n_wr after it.
    """
    timing = params.timing
    first_read, written = timing.n_rcdrd, 0
    if written_columns:
        last_write_end = timing.n_rcdwr + (written_columns - 1) * timing.n_ccdl + timing.n_cwl + timing.n_bl
        first_read = max(first_read, last_write_end + timing.n_wtrl)
        written = last_write_end + timing.n_wr
    column_cycles = params.column_cycles(queries)
    reading = first_read + (columns - 1) * column_cycles + timing.n_rtpl
    return max(max(reading, written, timing.n_ras) + timing.n_rp, timing.n_rc, columns * column_cycles)


def streamed_row_cycles(params: ChannelParams, columns: int, *, queries: int = 1) -> int:
    """Return the cycles that a row of ``columns`` columns adds to a run of many, all of which are read.

    Banks in lock step: a row cycle. Banks in turn: its columns, as far apart as :meth:`ChannelParams.column_cycles` of
    ``queries`` says, if they hide the opening of the next row; not less than two ACTSB are apart, nor than the share of
    one bank's row cycle.
    """
    cycles = row_cycles(params, columns, queries=queries)
    if params.turn_banks == 1:
        return cycles
    apart = same_bank_activation_cycles(params.organisation, params.timing)
    return max(columns * params.column_cycles(queries), apart, -(-cycles // params.turn_banks))


def refresh_cycles(params: ChannelParams, *, queries: int = 1) -> int:
    """Return the cycles by which a refresh makes a run longer.

    Banks in lock step: n_rfc, as it comes between rows, and the precharge before it is the row's own. Banks in turn,
    whose rows hide the opening of the next ones otherwise: ``n_rtpl + n_rp + n_rfc + n_rcdrd`` from the last column
    before it to the first one behind it, less the distance of two columns that are used for ``queries`` queries.
    """
    timing = params.timing
    if params.turn_banks == 1:
        return timing.n_rfc
    return timing.n_rtpl + timing.n_rp + timing.n_rfc + timing.n_rcdrd - params.column_cycles(queries)


def stream_limit(params: ChannelParams, columns: int, *, queries: int = 1) -> StreamLimit:
    """Return the limit for rows of ``columns`` columns, each used for ``queries`` queries.

    Of every ``n_refi`` cycles :func:`refresh_cycles` are lost.
    """
    interval = params.timing.n_refi
    share = Fraction(interval - refresh_cycles(params, queries=queries), interval)
    return StreamLimit(
        memory_cycles=Fraction(streamed_row_cycles(params, columns, queries=queries), columns) / share,
        cap_cycles=params.column_period,
    )


def refreshes_before(params: ChannelParams, free_cycles: int, first_refresh_cycles: int) -> int:
    """Return the refreshes given within a run that takes ``free_cycles`` without any.

    The k-th falls due ``first_refresh_cycles + (k - 1) * n_refi`` cycles after the start and makes everything behind
    it :func:`refresh_cycles` later: it is within the run if that is before the end of what the ones before it have
    made of the run.
    """
    count = 0
    if first_refresh_cycles == 0:
        return 0
    interval, added = params.timing.n_refi, refresh_cycles(params)
    while first_refresh_cycles + count * interval < free_cycles + count * added:
        count += 1
    return count


def with_refresh(params: ChannelParams, free_cycles: int, first_refresh_cycles: int) -> int:
    """Return the cycles of a run that takes ``free_cycles`` without refresh.

    Each costs :func:`refresh_cycles`, and waits for the end of the rows that are open. Where it falls beside the end of
    the run it may or may not be in it, which moves the result by as much.
    """
    return free_cycles + refreshes_before(params, free_cycles, first_refresh_cycles) * refresh_cycles(params)


def mean_refreshes(params: ChannelParams, free_cycles: int) -> Fraction:
    """Return :func:`refreshes_before`, the mean over first refreshes due after 1 to ``n_refi`` cycles.

    For work that begins at any time of a refresh interval. With s = n_refi - :func:`refresh_cycles`, a run whose first
    refresh is due after f cycles has ``ceil((free_cycles - f) / s)`` of them.
    """
    interval = params.timing.n_refi
    step = interval - refresh_cycles(params)

    def rounded_up(last: int) -> int:
        """Return the sum of ``ceil(y / step)`` over y from 0 to ``last``."""
        if last < 0:
            return 0
        whole, rest = divmod(last, step)
        return step * whole * (whole + 1) // 2 + rest * (whole + 1)

    return Fraction(rounded_up(free_cycles - 1) - rounded_up(free_cycles - interval - 1), interval)
