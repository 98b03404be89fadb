"""How a memory is divided, from its channels down to a column, and how many bytes that makes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from golden.checks import require_int
from hw.memory.complete import Complete

__all__ = ["Organisation"]


@dataclass(frozen=True, kw_only=True)
class Organisation(Complete):
    """Division of one memory device; every count is per unit of the level above.

    Parameters
    ----------
    channels, pseudochannels, ranks, bankgroups, banks : int
        Channels of the device, pseudo-channels of a channel, ranks of a pseudo-channel, bank groups of a rank, banks of
        a bank group.
    rows, columns : int
        Rows of a bank, and columns of a row: what one column command moves.
    dq_bits, burst_length : int
        Data pins of a pseudo-channel, and bits that each moves for a column.
    column_bytes : int
        ``dq_bits * burst_length / 8``.
    capacity_bytes : int
        ``channels * pseudochannels * ranks * bankgroups * banks * rows * columns * column_bytes``.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer, less than 1, or one of the two products is another number.
    """

    channels: int
    pseudochannels: int
    ranks: int
    bankgroups: int
    banks: int
    rows: int
    columns: int
    dq_bits: int
    burst_length: int
    column_bytes: int
    capacity_bytes: int

    def __post_init__(self) -> None:
        for item in fields(self):
            require_int(item.name, getattr(self, item.name), 1)
        if self.column_bytes * 8 != self.dq_bits * self.burst_length:
            raise ValueError(
                f"column_bytes must be dq_bits * burst_length / 8 = {self.dq_bits * self.burst_length / 8:g}, "
                f"not {self.column_bytes!r}"
            )
        held = self.channels * self.banks_per_channel * self.rows * self.row_bytes
        if self.capacity_bytes != held:
            raise ValueError(
                "capacity_bytes must be channels * pseudochannels * ranks * bankgroups * banks * rows * columns * "
                f"column_bytes = {held}, not {self.capacity_bytes!r}"
            )

    @property
    def ranks_per_channel(self) -> int:
        """Ranks of all pseudo-channels of a channel."""
        return self.pseudochannels * self.ranks

    @property
    def groups_per_channel(self) -> int:
        """Bank groups of a channel."""
        return self.ranks_per_channel * self.bankgroups

    @property
    def banks_per_channel(self) -> int:
        """Banks of a channel."""
        return self.groups_per_channel * self.banks

    @property
    def column_bits(self) -> int:
        """Bits of a column."""
        return 8 * self.column_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.columns * self.column_bytes

    @property
    def bank_bytes(self) -> int:
        """Bytes of a bank."""
        return self.rows * self.row_bytes

    def group_index(self, pseudochannel: int, rank: int, bankgroup: int) -> int:
        """Return the number of a bank group in its channel: bank groups count fastest, pseudo-channels slowest.

        Raises
        ------
        ValueError
            If a coordinate is out of range.
        """
        require_int("pseudochannel", pseudochannel, 0, self.pseudochannels - 1)
        require_int("rank", rank, 0, self.ranks - 1)
        require_int("bankgroup", bankgroup, 0, self.bankgroups - 1)
        return (pseudochannel * self.ranks + rank) * self.bankgroups + bankgroup

    def group_address(self, group: int) -> tuple[int, int, int]:
        """Return pseudo-channel, rank and bank group of the group numbered ``group``.

        Raises
        ------
        ValueError
            If there is no such group.
        """
        require_int("group", group, 0, self.groups_per_channel - 1)
        rank_index, bankgroup = divmod(group, self.bankgroups)
        pseudochannel, rank = divmod(rank_index, self.ranks)
        return pseudochannel, rank, bankgroup
