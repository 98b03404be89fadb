"""Parameters of the index scoring unit, and what one of its operations is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from golden.checks import require_int, require_type
from golden.formats import FP8_E4M3
from golden.retrieval.index_beats import scale_beats, stored_beats
from golden.retrieval.index_spec import ScoreMode, ScoreSpec
from hw.top_k_params import TopKParams

__all__ = ["IndexScoreParams", "IndexSelectParams", "ScoreWork"]

_STEP_BITS = 9
"""E4M3 numbers are whole multiples of 2^-9."""


@dataclass(frozen=True, kw_only=True)
class IndexScoreParams:
    """Parameters of :class:`hw.units.index_score.IndexScore`.

    Parameters
    ----------
    spec : ScoreSpec
        Bytes of a beat, heads at once and the 16-bit format: what decides the bits of a score.
    max_groups : int
        Most groups of heads of an operation; 1 to 16.
    query_rows : int
        Rows of the query's store, one for each beat of a vector and group of heads; ``max_groups`` to 256.
    id_bits : int
        Width of the number of a score; an operation has at most ``2**id_bits`` keys; 1 to 24.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of another type or out of range.
    """

    spec: ScoreSpec = field(default_factory=ScoreSpec)
    max_groups: int = 3
    query_rows: int = 24
    id_bits: int = 14

    def __post_init__(self) -> None:
        require_type("spec", self.spec, ScoreSpec)
        require_int("max_groups", self.max_groups, 1, 16)
        require_int("query_rows", self.query_rows, self.max_groups, 256)
        require_int("id_bits", self.id_bits, 1, 24)

    @property
    def beat_bits(self) -> int:
        """Width of a beat."""
        return 8 * self.spec.beat_bytes

    @property
    def count_bits(self) -> int:
        """Width of a number of keys."""
        return self.id_bits + 1

    @property
    def product_bits(self) -> int:
        """Width of the product of two E4M3 numbers in units of 2^-18, signed."""
        largest = int(FP8_E4M3.max_finite * 2**_STEP_BITS) ** 2
        return largest.bit_length() + 1

    @property
    def dot_bits(self) -> int:
        """Width of an exact dot product of as many elements as the query's store holds, signed."""
        return self.product_bits + (self.query_rows * self.spec.beat_bytes - 1).bit_length()

    @property
    def dot_fraction_bits(self) -> int:
        """Bits behind the point of an exact dot product."""
        return 2 * _STEP_BITS

    @property
    def exact_stages(self) -> int:
        """Registers from a beat of E4M3 elements to its sum: one for two levels of the tree, products in the first."""
        return -(-(self.spec.beat_bytes.bit_length() - 1) // 2)

    @property
    def wide_stages(self) -> int:
        """Registers from a beat of 16-bit elements to its sum: one of the products, one for each level of the tree."""
        return self.spec.beat_bytes.bit_length() - 1

    @property
    def head_levels(self) -> int:
        """Levels of the tree over the heads of a group."""
        return (self.spec.head_lanes - 1).bit_length()

    def replace(self, **changes: Any) -> Self:
        """Return these parameters with ``changes`` applied, validated anew."""
        return replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class IndexSelectParams:
    """Parameters of :class:`hw.units.index_select.IndexSelect`.

    Parameters
    ----------
    score : IndexScoreParams
        Each of the scoring units.
    top_k : TopKParams
        The shards behind them and their merge; ids in a shard are as wide as the numbers of scores.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of another type, or ids and numbers differ in width.
    """

    score: IndexScoreParams
    top_k: TopKParams

    def __post_init__(self) -> None:
        require_type("score", self.score, IndexScoreParams)
        require_type("top_k", self.top_k, TopKParams)
        wanted = self.top_k.shard.local_bits
        if self.score.id_bits != wanted:
            raise ValueError(f"id_bits of score must be {wanted}, as of an id in a shard, not {self.score.id_bits}")


@dataclass(frozen=True, kw_only=True)
class ScoreWork:
    """One operation.

    Parameters
    ----------
    mode : ScoreMode
        What is computed.
    heads, dim : int
        Heads of the query, and elements of a vector; at least 1.
    keys : int
        Keys; at least 0.

    Raises
    ------
    TypeError, ValueError
        If a field is of another type or out of range.
    """

    mode: ScoreMode
    heads: int
    dim: int
    keys: int

    def __post_init__(self) -> None:
        require_type("mode", self.mode, ScoreMode)
        for name, least in (("heads", 1), ("dim", 1), ("keys", 0)):
            require_int(name, getattr(self, name), least)

    def require_fits(self, params: IndexScoreParams) -> None:
        """Raise unless a unit has room for the operation.

        Raises
        ------
        ValueError
            If the heads make too many groups, the query has too many rows, or there are too many keys.
        """
        groups, most = self.groups(params), params.max_groups
        if groups > most:
            lanes = params.spec.lanes(self.mode, self.dim)
            raise ValueError(f"heads must be at most {most * lanes}, max_groups of {lanes}, not {self.heads}")
        rows = groups * self.vector_beats(params)
        if rows > params.query_rows:
            raise ValueError(f"query must take at most {params.query_rows} rows, query_rows, not {rows}")
        if self.keys > 1 << params.id_bits:
            raise ValueError(f"keys must be at most {1 << params.id_bits}, what id_bits number, not {self.keys}")

    def groups(self, params: IndexScoreParams) -> int:
        """Return the groups of heads."""
        return params.spec.groups(self.mode, self.heads, self.dim)

    def vector_beats(self, params: IndexScoreParams) -> int:
        """Return the beats of a vector."""
        return params.spec.vector_beats(self.mode, self.dim)

    def key_beats(self, params: IndexScoreParams) -> int:
        """Return the beats of a key, its scale left out; that of two keys counts as one of each."""
        return self.mode.columns * self.vector_beats(params)

    def beat_keys(self, params: IndexScoreParams) -> int:
        """Return the keys that share a beat, 1 or 2."""
        return params.spec.beat_keys(self.mode, self.dim)

    def scale_beats(self, params: IndexScoreParams) -> int:
        """Return the beats of the scales."""
        return scale_beats(params.spec, self.mode, self.keys)

    def stored_beats(self, params: IndexScoreParams) -> int:
        """Return the beats of all keys and scales."""
        return stored_beats(params.spec, self.mode, self.keys, self.dim)

    @property
    def candidates(self) -> int:
        """Scores."""
        return self.mode.candidates(self.keys)
