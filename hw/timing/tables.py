"""Cycles of a channel between the points at which its RTL was run: the law that the points follow.

A channel works off ``operations`` alike operations of ``queries`` queries over ``walk_tokens`` tokens of each part;
each number of queries has points of its own. Without refresh, cycles of
the memory clock::

    cycle            0 ... first_column ................. last_column ..... last_state
                     |     |                              |                 |
                     start first column of all banks      last one          last beat of the last state of a group

A row holds ``tile_tokens`` tokens, so that ``walk_tokens = (tiles - 1) * tile_tokens + rest`` with a rest of 1 to
``tile_tokens``. With the rest fixed, each further tile adds a row of keys and a row of values, whose cycles are those
of :func:`hw.timing.channel.streamed_row_cycles`: ``last_column`` is affine in ``tiles`` from the third on, where the
softmax of a tile hides behind its neighbours. It is affine in ``operations`` from the second on, for the channel then
only waits for itself; under a power cap, from where the columns saved up before the first are spent.

So a table holds points over a grid of every rest, the tiles up to three and one far number of them, and some numbers
of operations. Between points the last column is linear, beyond the last it goes on as between the last two; from there
to the last state it takes as long as at the point before. No run is faster than its power cap: column number c, counted
from 1, is not read before ``first_column + (c - cap_burst_columns) * column_period``.

The law holds exactly without a cap, and to the rounding of a few columns' periods with one; between two numbers of
operations where the cap sets in, to less than one row cycle. :func:`hw.timing.channel.with_refresh` adds refresh. What
it takes from a run that waits for its power cap anyhow is made good, for columns are saved up meanwhile: such a run is
no longer than its rows with refresh would be, but for a refresh before the first column, when nothing more can be
saved, and one within the last row, which moves the result by one refresh at the most. ``tests/rtl/test_tables.py``
compares all this with runs at other points, and ``nearkv measure`` all but refresh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.memory.kv_rows import kv_rows
from hw.timing.channel import mean_refreshes, refresh_cycles, streamed_row_cycles, with_refresh

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hw.device_params import ChannelParams

__all__ = ["ChannelCycles", "TableCycles", "TableError", "TablePoint"]


class TableError(ValueError):
    """A table does not say what it was asked, or was measured on other hardware."""


@dataclass(frozen=True, kw_only=True)
class ChannelCycles:
    """When the columns of a run were read and its states were out, in cycles of the memory clock from its start.

    Parameters
    ----------
    first_column, last_column : int
        Cycles in which the first and the last column command were given.
    last_state : int
        Cycle in which the last beat of the last state left a bank group.
    """

    first_column: int
    last_column: int
    last_state: int


@dataclass(frozen=True, kw_only=True)
class TablePoint(ChannelCycles):
    """One measured run without refresh.

    Parameters
    ----------
    head_dim : int
        Elements of a key.
    walk_tokens : int
        Tokens of each part.
    operations : int
        Alike operations, one after another.
    queries : int
        Queries of each operation.
    """

    head_dim: int
    walk_tokens: int
    operations: int
    queries: int = 1


@dataclass(frozen=True)
class TableCycles:
    """The law laid through measured points of one channel.

    Parameters
    ----------
    params : ChannelParams
        The channel.
    points : sequence of TablePoint
        A grid of tiles and operations for every rest of every head dimension and number of queries.

    Raises
    ------
    TableError
        If there are no points, or those of a head dimension are no whole grid.
    """

    params: ChannelParams
    points: Sequence[TablePoint]
    _grids: Mapping[tuple[int, int], _Grid] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[tuple[int, int], list[TablePoint]] = {}
        for point in self.points:
            beats = kv_rows(self.params, point.head_dim, 0).beats
            found.setdefault((beats, point.queries), []).append(point)
        if not found:
            raise TableError("points must be at least one, not none")
        grids = {key: _Grid(self.params, key[0], points) for key, points in found.items()}
        object.__setattr__(self, "_grids", grids)

    def holds(self, head_dim: int, *, queries: int = 1) -> bool:
        """Return whether so many queries on keys that fill as many columns as those of ``head_dim`` were measured."""
        return queries in self.measured_queries(head_dim)

    def measured_queries(self, head_dim: int) -> tuple[int, ...]:
        """Return the numbers of queries measured on keys that fill as many columns as those of ``head_dim``."""
        if not 1 <= head_dim <= self.params.head_dim:
            return ()
        lanes = self.params.processing.lanes * self.params.processing.slices
        return tuple(number for beats, number in sorted(self._grids) if beats == -(-head_dim // lanes))

    def cycles(self, head_dim: int, walk_tokens: int, operations: int, *, queries: int = 1) -> ChannelCycles:
        """Return the cycles of a run without refresh.

        Parameters
        ----------
        head_dim : int
            Elements of a key; all that fill the same columns take the same cycles.
        walk_tokens, operations : int
            At least 1.
        queries : int
            Queries of each operation.

        Raises
        ------
        TableError
            If nothing was measured at this head dimension, or none with so many queries.
        TypeError, ValueError
            If a number is out of range.
        """
        require_int("walk_tokens", walk_tokens, 1)
        require_int("operations", operations, 1)
        measured = self.measured_queries(head_dim)
        if not measured:
            known = ", ".join(str(found) for found in sorted({point.head_dim for point in self.points}))
            raise TableError(f"head_dim must fill the columns of one that was measured, {known}; not {head_dim!r}")
        rows = kv_rows(self.params, head_dim, 0)
        if queries not in measured:
            known = ", ".join(str(number) for number in measured)
            raise TableError(
                f"queries must be as many as were measured at head_dim {head_dim}, {known}; not {queries!r}"
            )
        grid = self._grids[rows.beats, queries]
        first, column, tail = grid.at(walk_tokens, operations)
        if self.params.column_period is not None:
            columns = 2 * walk_tokens * rows.beats * operations
            column = max(column, first + (columns - self.params.cap_burst_columns) * self.params.column_period)
        last_column = math.ceil(column)
        return ChannelCycles(first_column=math.ceil(first), last_column=last_column, last_state=last_column + tail)

    def with_refresh(
        self, head_dim: int, walk_tokens: int, operations: int, first_refresh_cycles: int, *, queries: int = 1
    ) -> ChannelCycles:
        """Return the cycles of a run whose first refresh falls due after so many cycles; 0 is no refresh at all.

        Other parameters and errors as of :meth:`cycles`.
        """
        timing = self.params.timing
        free = self.cycles(head_dim, walk_tokens, operations, queries=queries)
        busy = self._busy_cycles(free, head_dim, walk_tokens, operations, queries)
        added = with_refresh(self.params, busy, first_refresh_cycles) - free.last_column
        if 0 < first_refresh_cycles < free.first_column - timing.n_rcdrd:
            added = max(added, first_refresh_cycles + timing.n_rfc + timing.n_rcdrd - free.first_column)
        return _later(free, added)

    def mean_refresh_cycles(self, head_dim: int, walk_tokens: int, operations: int, *, queries: int = 1) -> Fraction:
        """Return what refresh adds to a run that begins at any time of a refresh interval, on the mean.

        Parameters and errors as of :meth:`cycles`.
        """
        free = self.cycles(head_dim, walk_tokens, operations, queries=queries)
        busy = self._busy_cycles(free, head_dim, walk_tokens, operations, queries)
        added = mean_refreshes(self.params, busy) * refresh_cycles(self.params)
        return max(Fraction(0), busy + added - free.last_column)

    def _busy_cycles(self, free: ChannelCycles, head_dim: int, walk_tokens: int, operations: int, queries: int) -> int:
        """Return the cycles of a run that the power cap adds nothing to."""
        if self.params.column_period is None:
            return free.last_column
        row = kv_rows(self.params, head_dim, 0)
        full, rest = divmod(walk_tokens - 1, row.tile_tokens)
        rows = full * streamed_row_cycles(self.params, row.tile_tokens * row.beats, queries=queries)
        rows += streamed_row_cycles(self.params, (rest + 1) * row.beats, queries=queries)
        return min(free.last_column, free.first_column + 2 * operations * rows)


def _later(cycles: ChannelCycles, added: int) -> ChannelCycles:
    """Return the cycles of a run whose last columns come ``added`` later, if that is above 0."""
    return replace(
        cycles,
        last_column=cycles.last_column + max(0, added),
        last_state=cycles.last_state + max(0, added),
    )


class _Grid:
    """Points of one number of columns a token, by rest, tiles and operations."""

    def __init__(self, params: ChannelParams, beats: int, points: Iterable[TablePoint]) -> None:
        self.tile_tokens = params.organisation.columns // beats
        found: dict[int, dict[int, dict[int, TablePoint]]] = {}
        for point in points:
            tiles, rest = self._split(point.walk_tokens)
            found.setdefault(rest, {}).setdefault(tiles, {})[point.operations] = point
        axes = {(tuple(sorted(tiles)), tuple(sorted(runs))) for tiles in found.values() for runs in tiles.values()}
        if len(axes) != 1 or len(found) != self.tile_tokens:
            raise TableError(
                f"points of {beats} columns a token must be a whole grid with each rest from 1 to {self.tile_tokens}"
            )
        ((self.tiles, self.operations),) = axes
        self.points = found

    def _split(self, walk_tokens: int) -> tuple[int, int]:
        """Return tiles and rest."""
        full, rest = divmod(walk_tokens - 1, self.tile_tokens)
        return full + 1, rest + 1

    def at(self, walk_tokens: int, operations: int) -> tuple[Fraction, Fraction, int]:
        """Return first column, last column, and the cycles from there to the last state."""
        tiles, rest = self._split(walk_tokens)
        points = self.points[rest]
        runs = [
            _line(tiles, self.tiles, [_columns(points[known][number]) for known in self.tiles])
            for number in self.operations
        ]
        first, column = _line(operations, self.operations, runs)
        near = points[_at_most(tiles, self.tiles)][_at_most(operations, self.operations)]
        return first, column, near.last_state - near.last_column


def _columns(point: TablePoint) -> tuple[Fraction, ...]:
    return Fraction(point.first_column), Fraction(point.last_column)


def _at_most(x: int, places: Sequence[int]) -> int:
    """Return the largest of ``places`` that is at most ``x``, else the first."""
    return max((place for place in places if place <= x), default=places[0])


def _line(x: int, places: Sequence[int], values: Sequence[tuple[Fraction, ...]]) -> tuple[Fraction, ...]:
    """Return the values at ``x`` on the lines between neighbours, the last one going on beyond the last place."""
    if len(places) == 1 or x <= places[0]:
        return values[0]
    after = next((i for i, place in enumerate(places) if place >= x), len(places) - 1)
    low, high = places[after - 1], places[after]
    part = Fraction(x - low, high - low)
    return tuple(a + (b - a) * part for a, b in zip(values[after - 1], values[after], strict=True))
