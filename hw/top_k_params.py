"""Parameters of the top-k unit: its shards, and the merge that finds their common threshold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from golden.checks import require_int, require_type
from golden.retrieval.radix import KEY_BITS

__all__ = ["TopKParams", "TopKShardParams"]


@dataclass(frozen=True, kw_only=True)
class TopKShardParams:
    """Parameters of :class:`hw.units.top_k_shard.TopKShard`.

    Parameters
    ----------
    depth : int
        Scores that it stores, one for each of its ids; a power of two from 2 * ``lanes`` to 2^24.
    lanes : int
        Scores that a sweep reads in a cycle; a power of two from 2 to 128.
    digit_bits : int
        Bits of the key that a sweep counts; 1, 2 or 4.
    id_bits : int
        Width of the ids given out; at least that of an id within the shard, at most 32.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not an integer or out of range.
    """

    depth: int = 16384
    lanes: int = 32
    digit_bits: int = 4
    id_bits: int = 20

    def __post_init__(self) -> None:
        require_int("lanes", self.lanes, 2, 128)
        require_int("depth", self.depth, 2 * self.lanes, 1 << 24)
        for name in ("lanes", "depth"):
            value = getattr(self, name)
            if value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value!r}")
        require_int("digit_bits", self.digit_bits, 1, 4)
        if KEY_BITS % self.digit_bits:
            raise ValueError(f"digit_bits must be 1, 2 or 4, not {self.digit_bits!r}")
        require_int("id_bits", self.id_bits, self.local_bits, 32)

    @property
    def local_bits(self) -> int:
        """Width of an id within the shard."""
        return self.depth.bit_length() - 1

    @property
    def lane_bits(self) -> int:
        """Bits of an id that name its lane."""
        return self.lanes.bit_length() - 1

    @property
    def rows(self) -> int:
        """Rows of the store, ``lanes`` scores each."""
        return self.depth // self.lanes

    @property
    def digits(self) -> int:
        """Digits of a key."""
        return KEY_BITS // self.digit_bits

    @property
    def bins(self) -> int:
        """Counters of a shard, one for each value of a digit."""
        return 1 << self.digit_bits

    @property
    def count_bits(self) -> int:
        """Width of a number of scores, 0 to ``depth``."""
        return self.depth.bit_length()

    @property
    def choice_bits(self) -> int:
        """Width of the merge's answer to a shard: a digit, or a number of scores."""
        return max(self.digit_bits, self.count_bits)

    @property
    def store_bytes(self) -> int:
        """Bytes of the stored keys."""
        return self.depth * KEY_BITS // 8

    def replace(self, **changes: Any) -> Self:
        """Return these parameters with ``changes`` applied, validated anew."""
        return replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class TopKParams:
    """Parameters of :class:`hw.units.top_k.TopK` and of the merge in it, :class:`hw.units.top_k_merge.TopKMerge`.

    Parameters
    ----------
    shard : TopKShardParams
        Each of the shards.
    shards : int
        How many; 1 to 256.
    max_k : int
        Largest k of an operation, at least 1, at most all scores of all shards.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of another type or out of range.
    """

    shard: TopKShardParams = field(default_factory=TopKShardParams)
    shards: int = 1
    max_k: int = 2048

    def __post_init__(self) -> None:
        require_type("shard", self.shard, TopKShardParams)
        require_int("shards", self.shards, 1, 256)
        require_int("max_k", self.max_k, 1, self.shards * self.shard.depth)

    @property
    def k_bits(self) -> int:
        """Width of k."""
        return self.max_k.bit_length()

    @property
    def levels(self) -> int:
        """Levels of the tree that adds the shards' counts, a cycle each."""
        return (self.shards - 1).bit_length()

    def replace(self, **changes: Any) -> Self:
        """Return these parameters with ``changes`` applied, validated anew."""
        return replace(self, **changes)
