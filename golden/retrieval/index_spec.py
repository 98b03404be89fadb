"""What decides the bits of an index score beside the numbers: the order of the sums, and the mode of an operation."""

from __future__ import annotations

from dataclasses import dataclass

from golden.checks import require_int, require_type
from golden.formats import BF16, FP8_E4M3, FP16, FP32, FloatFormat

__all__ = ["KARAT_SCORES", "MODES", "MOST_BLOCK_KEYS", "ScoreMode", "ScoreSpec"]

MOST_BLOCK_KEYS = 256
"""Most keys of a block."""


@dataclass(frozen=True, kw_only=True)
class ScoreMode:
    """What one operation computes of its keys: a configuration at run time.

    Parameters
    ----------
    wide : bool
        Queries and keys are of the 16-bit format, else E4M3.
    relu : bool
        A head's product counts where it is positive.
    largest : bool
        The heads' largest term counts, else their sum.
    bounds : bool
        A key is two vectors, the least and the largest elements of a page; each element takes the one that makes its
        product largest.
    scaled : bool
        Every key has an fp32 factor of its own.
    block_keys : int
        Keys whose largest score is one candidate's; 1 to :data:`MOST_BLOCK_KEYS`.

    Raises
    ------
    TypeError, ValueError
        If a field is of another type or out of range.
    """

    wide: bool = False
    relu: bool = False
    largest: bool = False
    bounds: bool = False
    scaled: bool = False
    block_keys: int = 1

    def __post_init__(self) -> None:
        for name in ("wide", "relu", "largest", "bounds", "scaled"):
            require_type(name, getattr(self, name), bool)
        require_int("block_keys", self.block_keys, 1, MOST_BLOCK_KEYS)

    @property
    def columns(self) -> int:
        """Vectors of a key."""
        return 2 if self.bounds else 1

    def candidates(self, keys: int) -> int:
        """Return how many scores so many keys give; the last block may be short."""
        return -(-keys // self.block_keys)


MODES = {
    "indexer": ScoreMode(relu=True, scaled=True),
    "best-token": ScoreMode(wide=True, block_keys=128),
    "centroids": ScoreMode(wide=True, largest=True),
    "cosine": ScoreMode(wide=True, largest=True, scaled=True),
    "labels": ScoreMode(wide=True, largest=True),
    "page-bounds": ScoreMode(wide=True, largest=True, bounds=True),
    "representatives": ScoreMode(wide=True, largest=True, block_keys=4),
}
"""The modes of the methods of :mod:`golden.retrieval`, by name; ``cosine`` has 1/|c| as the scale of a centroid."""


@dataclass(frozen=True, kw_only=True)
class ScoreSpec:
    """The order in which index scores are summed.

    Parameters
    ----------
    beat_bytes : int
        Bytes of keys that are looked at together; a power of two from 8 to 64.
    head_lanes, wide_head_lanes : int
        Heads that are summed together, of E4M3 and of 16-bit queries; 1 to 64, the second at most the first. Of vectors
        of 16 bits that half a beat holds, twice the second where that is not more than the first.
    wide_format : FloatFormat
        The 16-bit format: bf16 or fp16.

    Raises
    ------
    TypeError, ValueError
        If a field is of another type or out of range.
    """

    beat_bytes: int = 32
    head_lanes: int = 22
    wide_head_lanes: int = 4
    wide_format: FloatFormat = BF16

    def __post_init__(self) -> None:
        require_int("beat_bytes", self.beat_bytes, 8, 64)
        if self.beat_bytes & (self.beat_bytes - 1):
            raise ValueError(f"beat_bytes must be a power of two, not {self.beat_bytes!r}")
        require_int("head_lanes", self.head_lanes, 1, 64)
        require_int("wide_head_lanes", self.wide_head_lanes, 1, self.head_lanes)
        require_type("wide_format", self.wide_format, FloatFormat)
        if self.wide_format not in (BF16, FP16):
            raise ValueError(f"wide_format must be bf16 or fp16, not {self.wide_format.name!r}")

    @property
    def scales_per_beat(self) -> int:
        """Scales that fit a beat: the keys of a group, which a beat of scales goes before."""
        return self.beat_bytes // FP32.bytes

    def format_of(self, mode: ScoreMode) -> FloatFormat:
        """Return the format of queries and keys."""
        return self.wide_format if mode.wide else FP8_E4M3

    def elements(self, mode: ScoreMode) -> int:
        """Return the elements of a beat."""
        return self.beat_bytes // self.format_of(mode).bytes

    def vector_beats(self, mode: ScoreMode, dim: int) -> int:
        """Return the beats of a vector of ``dim`` elements; the last one is filled up with zeros."""
        return -(-dim // self.elements(mode))

    def beat_keys(self, mode: ScoreMode, dim: int) -> int:
        """Return the keys that share a beat: two where half of it holds a vector, which pages do not."""
        return 2 if not mode.bounds and 2 * dim <= self.elements(mode) else 1

    def shares_lanes(self, mode: ScoreMode, dim: int) -> bool:
        """Return whether two heads share the products of a beat: of 16 bits, where half a beat holds a vector."""
        return mode.wide and self.beat_keys(mode, dim) > 1 and 2 * self.wide_head_lanes <= self.head_lanes

    def lanes(self, mode: ScoreMode, dim: int) -> int:
        """Return the heads of a group, whose terms are summed together."""
        if not mode.wide:
            return self.head_lanes
        return self.wide_head_lanes * (1 + self.shares_lanes(mode, dim))

    def groups(self, mode: ScoreMode, heads: int, dim: int) -> int:
        """Return the groups of so many heads."""
        return -(-heads // self.lanes(mode, dim))


KARAT_SCORES = ScoreSpec()
"""The order of the units of a KARAT device's channel."""
