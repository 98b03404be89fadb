"""Parameters of a device: the memory, the units at its banks, and how tokens lie in it; free of Amaranth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Self

from golden.checks import require_int, require_type
from hw.memory.organisation import Organisation
from hw.memory.timing import DramTiming
from hw.params import ProcessingParams, ReductionParams

__all__ = ["ChannelBenchParams", "ChannelParams", "Mapping"]


class Mapping(Enum):
    """Where the elements of a token lie in a bank group, and so where the units sit that read them.

    ``SPLIT``: every bank holds a slice of the head dimension of every token, and a score adder sums the banks' parts
    of a score. ``WHOLE``: every bank holds whole tokens, and a reduction unit merges the banks' states. ``GROUP``: rows
    of whole tokens go to the banks of a group in turn, and one unit at the group reads all of them.
    """

    SPLIT = "split"
    WHOLE = "whole"
    GROUP = "group"


@dataclass(frozen=True, kw_only=True)
class ChannelParams:
    """One channel of an HBM-PIM stack: banks in lock step and a processing unit at each, or one at each bank group.

    Parameters
    ----------
    organisation : Organisation
        The stack's banks, rows and columns.
    timing : DramTiming
        Cycles of the memory clock that commands keep between each other.
    mapping : Mapping
        Split head dimension or whole tokens, units at the banks; or rows in turn, units at the bank groups.
    processing : ProcessingParams
        The unit at every bank, or bank group; ``slices`` is the number of banks in a group for a split head dimension,
        else 1.
    reduction : ReductionParams
        The unit that merges the states of a group's units; used by ``Mapping.WHOLE``, the layout of states by all.
    logic_ratio : Fraction
        Cycles of the logic for each cycle of the memory clock, at most 1.
    column_period : Fraction or None
        Cycles of the memory clock that the power cap grants a column read of all units; None is no cap.
    cap_burst_columns : int
        Columns that may be read at the pace of the memory after a pause before the cap holds again.

    Raises
    ------
    TypeError, ValueError
        If a field is of another type, or the units do not fit the memory: a column that is no beat, logic that cannot
        take the banks' columns, slices that are not the banks of a group, tiles that do not hold a row's tokens.
    """

    organisation: Organisation
    timing: DramTiming
    mapping: Mapping
    processing: ProcessingParams
    reduction: ReductionParams
    logic_ratio: Fraction = Fraction(1, 2)
    column_period: Fraction | None = None
    cap_burst_columns: int = 32

    def __post_init__(self) -> None:
        for name, kind in (
            ("organisation", Organisation),
            ("timing", DramTiming),
            ("mapping", Mapping),
            ("processing", ProcessingParams),
            ("reduction", ReductionParams),
            ("logic_ratio", Fraction),
        ):
            require_type(name, getattr(self, name), kind)
        if self.column_period is not None:
            require_type("column_period", self.column_period, Fraction)
        column_bytes = self.organisation.column_bytes
        beat_bytes = self.processing.lanes * self.processing.kv_format.bytes
        if beat_bytes != column_bytes:
            raise ValueError(f"a beat of the processing unit must be a column of {column_bytes} B, not {beat_bytes} B")
        slices = self.organisation.banks if self.mapping is Mapping.SPLIT else 1
        if self.processing.slices != slices:
            raise ValueError(
                f"slices must be {slices} for mapping {self.mapping.value!r}, not {self.processing.slices!r}"
            )
        if self.reduction.num_sources != self.units_per_group:
            what = "banks" if self.units_per_group > 1 else "unit"
            raise ValueError(
                f"num_sources of the reduction unit must be the {self.units_per_group} {what} of a group, "
                f"not {self.reduction.num_sources!r}"
            )
        if self.reduction.head_dim != self.head_dim or self.reduction.lanes != self.processing.lanes:
            raise ValueError(
                f"the reduction unit must take states of {self.head_dim} elements in {self.processing.lanes} lanes, "
                f"not {self.reduction.head_dim} in {self.reduction.lanes}"
            )
        if not 0 < self.logic_ratio <= 1:
            raise ValueError(f"logic_ratio must be above 0 and at most 1, not {self.logic_ratio}")
        if self.timing.n_ccdab * self.logic_ratio < 2:
            raise ValueError(
                f"a column every {self.timing.n_ccdab} cycles must leave the logic two cycles, it leaves "
                f"{self.timing.n_ccdab * self.logic_ratio} at a clock ratio of {self.logic_ratio}"
            )
        if self.column_period is not None and self.column_period < self.timing.n_ccdab:
            raise ValueError(
                f"column_period must be at least the memory's own {self.timing.n_ccdab} cycles, or None, "
                f"not {self.column_period}"
            )
        require_int("cap_burst_columns", self.cap_burst_columns, 2, 4096)
        if self.processing.tile_tokens * self.processing.beats < self.organisation.columns:
            raise ValueError(
                f"tile_tokens must be at least the {self.organisation.columns // self.processing.beats} tokens that a "
                f"row holds at the largest head dimension, not {self.processing.tile_tokens}"
            )

    @property
    def groups(self) -> int:
        """Bank groups of the channel."""
        return self.organisation.groups_per_channel

    @property
    def parts(self) -> int:
        """Parts that the tokens of a channel are dealt to: bank groups, or banks that have units and whole tokens."""
        return self.groups * (self.organisation.banks if self.mapping is Mapping.WHOLE else 1)

    @property
    def units_per_group(self) -> int:
        """Processing units of a bank group."""
        return self.organisation.banks // self.turn_banks

    @property
    def turn_banks(self) -> int:
        """Banks that the rows of a part go to in turn: row r of a part is row ``r // turn_banks`` of one of them."""
        return self.organisation.banks if self.mapping is Mapping.GROUP else 1

    @property
    def part_rows(self) -> int:
        """Rows that a part can hold."""
        return self.organisation.rows * self.turn_banks

    @property
    def parts_per_group(self) -> int:
        """Parts in a bank group."""
        return self.parts // self.groups

    @property
    def command_columns(self) -> int:
        """Bursts of a column that carry a command: 16 bytes for all units and the token count of every part."""
        bits = 8 * 16 + self.parts * self.processing.token_bits
        return -(-bits // (8 * self.organisation.column_bytes))

    @property
    def use_cycles(self) -> tuple[int, ...]:
        """Cycles of the memory clock in which a unit uses a column for 1, 2, ... queries: it takes no other meanwhile.

        Of that many consecutive cycles at least as many as there are queries are cycles of the logic.
        """
        return tuple(math.ceil(queries / self.logic_ratio) for queries in range(1, self.processing.queries + 1))

    def column_cycles(self, queries: int) -> int:
        """Return the least cycles between two reads of one row, the power cap left out.

        Parameters
        ----------
        queries : int
            Queries of the operation.
        """
        return max(self.timing.n_ccdab, self.use_cycles[queries - 1])

    @property
    def head_dim(self) -> int:
        """Largest head dimension."""
        return self.processing.head_dim * self.processing.slices

    def replace(self, **changes: Any) -> Self:
        """Return these parameters with ``changes`` applied, validated anew."""
        return replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class ChannelBenchParams:
    """What of a channel is simulated.

    Parameters
    ----------
    channel : ChannelParams
        The channel.
    groups : int
        Bank groups that are simulated, the first ones.
    rows : int
        Rows of every bank that have cells.

    Raises
    ------
    TypeError, ValueError
        If ``channel`` is no ChannelParams, or a count is out of range.
    """

    channel: ChannelParams
    groups: int = 1
    rows: int = 64

    def __post_init__(self) -> None:
        require_type("channel", self.channel, ChannelParams)
        require_int("groups", self.groups, 1, self.channel.groups)
        require_int("rows", self.rows, 1, self.channel.organisation.rows)
