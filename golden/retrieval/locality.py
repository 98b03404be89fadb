"""How attention of a decoding request is spread over its tokens, and how it moves from step to step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Mass = npt.NDArray[np.float64]

__all__ = ["AttentionLocality", "attention_locality", "tokens_for"]

_PARTS = (0.5, 0.9, 0.95, 0.99)
_ACCESSED = 1
"""Number of the part of a head's mass that its accessed tokens hold."""

_PAGE_TOKENS = 16


@dataclass(frozen=True, kw_only=True)
class AttentionLocality:
    """Statistics of the attention of heads that share keys, over steps.

    Parameters
    ----------
    tokens_for_half, tokens_for_90, tokens_for_95, tokens_for_99 : float
        Fewest tokens that hold this part of one head's mass, median over heads and steps.
    sink_mass : float
        Mass on the first token, mean.
    last_16_mass, last_64_mass, last_256_mass : float
        Mass on the last tokens, mean.
    overlap_64, overlap_256, overlap_1024 : float
        Part of a head's tokens of largest mass that are among them in the next step as well, mean.
    accessed_share : float
        Part of the context that holds 90 % of any head's mass, mean; these tokens are *accessed*.
    accessed_again, page_accessed_again : float
        Part of the accessed tokens, and of the pages of 16 with any, that are accessed in the next step as well.
    accessed_in_last_20 : float
        Part of the accessed tokens that are among the last 20.
    """

    tokens_for_half: float
    tokens_for_90: float
    tokens_for_95: float
    tokens_for_99: float
    sink_mass: float
    last_16_mass: float
    last_64_mass: float
    last_256_mass: float
    overlap_64: float
    overlap_256: float
    overlap_1024: float
    accessed_share: float
    accessed_again: float
    page_accessed_again: float
    accessed_in_last_20: float


def tokens_for(mass: Mass, *parts: float) -> list[npt.NDArray[np.int64]]:
    """Return for each part the fewest tokens that hold at least it, the largest first; of equals the lower ones.

    Parameters
    ----------
    mass : ndarray of float64, shape (tokens,)
        Softmax weights, at least one.
    parts : float
        Parts of the whole mass, from 0 to 1.
    """
    order = np.argsort(-mass, kind="stable")
    reached = np.cumsum(mass[order])
    # Parts of what rounding leaves of 1, so that all tokens hold all of it.
    fewest = [min(len(mass), int(np.count_nonzero(reached < part * reached[-1])) + 1) for part in parts]
    return [order[:count] for count in fewest]


def attention_locality(steps: Sequence[Sequence[Mass]]) -> AttentionLocality:
    """Return the statistics of consecutive steps.

    Parameters
    ----------
    steps : sequence of sequence of ndarray of float64, shape (tokens,)
        Softmax weights of every head in every step; a step may have more tokens than the one before.

    Raises
    ------
    ValueError
        If there are fewer than two steps.
    """
    if len(steps) < 2:
        raise ValueError(f"steps must be at least 2, not {len(steps)}")
    heads = [mass for step in steps for mass in step]
    held = [[tokens_for(mass, *_PARTS) for mass in step] for step in steps]
    counts = np.array([[len(part) for part in parts] for step in held for parts in step])
    half, most, nearly, almost = (float(np.median(column)) for column in counts.T)
    accessed = [np.unique(np.concatenate([parts[_ACCESSED] for parts in step])) for step in held]
    pages = [np.unique(tokens // _PAGE_TOKENS) for tokens in accessed]
    lengths = [len(step[0]) for step in steps]
    return AttentionLocality(
        tokens_for_half=half,
        tokens_for_90=most,
        tokens_for_95=nearly,
        tokens_for_99=almost,
        sink_mass=float(np.mean([mass[0] for mass in heads])),
        last_16_mass=float(np.mean([mass[-16:].sum() for mass in heads])),
        last_64_mass=float(np.mean([mass[-64:].sum() for mass in heads])),
        last_256_mass=float(np.mean([mass[-256:].sum() for mass in heads])),
        overlap_64=_overlap(steps, 64),
        overlap_256=_overlap(steps, 256),
        overlap_1024=_overlap(steps, 1024),
        accessed_share=float(np.mean([len(tokens) / n for tokens, n in zip(accessed, lengths, strict=True)])),
        accessed_again=_again(accessed),
        page_accessed_again=_again(pages),
        accessed_in_last_20=float(
            np.mean([(tokens >= n - 20).mean() for tokens, n in zip(accessed, lengths, strict=True)])
        ),
    )


def _overlap(steps: Sequence[Sequence[Mass]], count: int) -> float:
    """Return the mean part of the ``count`` largest of each head that are among them in its next step."""
    best = [[set(np.argpartition(-mass, min(count, len(mass)) - 1)[:count].tolist()) for mass in s] for s in steps]
    pairs = [(a, b) for now, after in pairwise(best) for a, b in zip(now, after, strict=True)]
    return float(np.mean([len(a & b) / len(a) for a, b in pairs]))


def _again(sets: Sequence[npt.NDArray[np.int64]]) -> float:
    """Return the mean part of each set that is in the next one."""
    return float(np.mean([np.isin(a, b).mean() for a, b in pairwise(sets)]))
