"""Which part of a request's tokens a step attends to, and what finding it costs.

``dense``
    all of them;
``window``
    the first 4 and the last 1,024 (StreamingLLM);
``double``
    an eighth, chosen by labels: some channels of every key, read for every stored token (Double Sparsity).

An eighth of the tokens is not an eighth of the bytes: at d = 128 labels of d / 16 channels in fp16 are 16 B a token and
KV head beside 512 B of keys and values, of which a step reads 16 + 512 / 8 = 80 B, 6.4 times less; in int4 68 B, 7.5
times less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim.errors import UnknownNameError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sim.models import Attention

__all__ = ["LABEL_BITS", "LABEL_PLACES", "SCORERS", "SPARSITIES", "Sparsity", "SparsityRule"]

LABEL_BITS = {"fp16": 16, "int4": 4}
"""Bits of a label's channel, by format."""

LABEL_PLACES = {
    "nearest": "all in the nearest memory, which keeps room for those of every token that can be stored",
    "own": "each beside its token",
}
"""Where labels lie, by name."""

SCORERS = {
    "memory": "the units of the memory in which labels lie read them at its own rate",
    "gpu": "labels cross the links to the GPUs",
}
"""What reads labels, by name."""

_LABEL_SHARE = 16  # keys have so many times the channels of a label


@dataclass(frozen=True)
class SparsityRule:
    """How many tokens are attended to, and which in any case.

    Parameters
    ----------
    description : str
        What it does in words.
    part : int
        One token of so many is kept, rounded up; 0 for those alone that always are.
    sinks, recent : int or None
        First and last tokens that always are; None for what the generator of reads says.
    has_labels : bool
        Tokens are chosen by labels.
    """

    description: str
    part: int
    sinks: int | None = None
    recent: int | None = None
    has_labels: bool = False

    def kept(self, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many of each number of ``tokens`` are attended to."""
        if self.part:
            return -(-tokens // self.part)
        assert self.sinks is not None
        assert self.recent is not None
        return np.minimum(tokens, self.sinks + self.recent)


SPARSITIES = {
    "dense": SparsityRule("every token", 1),
    "window": SparsityRule("the first 4 tokens and the last 1,024", 0, sinks=4, recent=1024),
    "double": SparsityRule("an eighth of the tokens, chosen by labels", 8, has_labels=True),
}
"""Rules by name."""


@dataclass(frozen=True, kw_only=True)
class Sparsity:
    """A rule, and labels where it has some.

    Parameters
    ----------
    name : str
        One of :data:`SPARSITIES`.
    label_format, label_place, scorer : str
        One of :data:`LABEL_BITS`, of :data:`LABEL_PLACES`, of :data:`SCORERS`.

    Raises
    ------
    UnknownNameError
        If a name is unknown.
    """

    name: str = "dense"
    label_format: str = "fp16"
    label_place: str = "nearest"
    scorer: str = "memory"

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("sparsity", self.name, SPARSITIES),
            ("label format", self.label_format, LABEL_BITS),
            ("label place", self.label_place, LABEL_PLACES),
            ("scorer", self.scorer, SCORERS),
        ):
            if name not in known:
                raise UnknownNameError(kind, name, known)

    @property
    def rule(self) -> SparsityRule:
        """The rule."""
        return SPARSITIES[self.name]

    def label_bytes(self, attention: Attention) -> int:
        """Return the bytes of a token's labels in one layer, all KV heads: 0 where there are none."""
        if not self.rule.has_labels:
            return 0
        channels = -(-attention.key_dim // _LABEL_SHARE)
        return attention.stored_heads * -(-channels * LABEL_BITS[self.label_format] // 8)

    def label_elements(self, attention: Attention) -> int:
        """Return the elements of a token's labels in one layer, all KV heads: 0 where there are none."""
        return attention.stored_heads * -(-attention.key_dim // _LABEL_SHARE) if self.rule.has_labels else 0

    def byte_ratio(self, attention: Attention, *, stored: float, attended: float) -> float:
        """Return how many times fewer bytes of keys, values and labels are read than dense attention reads.

        Parameters
        ----------
        attention : Attention
        stored, attended : float
            Tokens that requests have, whose labels are read, and those of them that they attend to; sums over steps.
        """
        read = attended * attention.kv_bytes + stored * self.label_bytes(attention)
        return stored * attention.kv_bytes / read
