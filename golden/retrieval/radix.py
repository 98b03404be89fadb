"""Top-k by radix: digits of an ordered key from the highest down, histograms that add up over shards.

What :class:`hw.units.top_k.TopK` does, step by step; its result is that of :func:`golden.retrieval.topk.top_k`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["KEY_BITS", "NAN_KEY", "Threshold", "digit_counts", "ordered_keys", "quotas", "select", "threshold"]

KEY_BITS = 32
"""Bits of a key: those of an fp32 score."""

NAN_KEY = 1
"""Key of every NaN: above 0, which stands for no score at all, and below that of -inf."""

_SIGN = np.uint32(1 << 31)
_INFINITY = np.uint32(0x7F80_0000)


@dataclass(frozen=True)
class Threshold:
    """The key of the least score taken, and how many of its equals are taken; key 0 takes every score there is.

    Parameters
    ----------
    key : int
        Every greater key is taken.
    equal : int
        Of the scores of this very key so many are taken, the lowest ids first.
    """

    key: int
    equal: int


def ordered_keys(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    """Return unsigned integers in the order of fp32 ``scores``: equal where the scores are, so that -0 = +0.

    A non-negative score gets its code with the sign bit set, a negative one its code inverted; every NaN gets
    :data:`NAN_KEY`, below all numbers. No score has key 0.

    Parameters
    ----------
    scores : ndarray of float32
        Any codes.

    Raises
    ------
    TypeError
        If ``scores`` is not of float32.
    """
    if scores.dtype != np.float32:
        raise TypeError(f"scores must be of float32, not {scores.dtype}")
    codes = scores.view(np.uint32)
    codes = np.where(codes == _SIGN, np.uint32(0), codes)
    keys = np.where(codes & _SIGN, ~codes, codes | _SIGN)
    return np.where((codes & ~_SIGN) > _INFINITY, np.uint32(NAN_KEY), keys)


def digit_counts(keys: npt.NDArray[np.uint32], prefix: int, digit: int, digit_bits: int) -> npt.NDArray[np.int64]:
    """Count, by their next digit, the keys that begin with the digits of ``prefix``.

    Parameters
    ----------
    keys : ndarray of uint32, shape (candidates,)
    prefix : int
        The digits found so far, as a number of ``digit`` digits.
    digit : int
        Number of the digit counted, 0 the highest.
    digit_bits : int
        Bits of a digit, a divisor of :data:`KEY_BITS`.

    Returns
    -------
    ndarray of int64, shape (2**digit_bits,)
    """
    below = KEY_BITS - (digit + 1) * digit_bits
    heads = keys.astype(np.uint64) >> np.uint64(below)
    mine = heads[heads >> np.uint64(digit_bits) == prefix] & np.uint64((1 << digit_bits) - 1)
    return np.bincount(mine.astype(np.int64), minlength=1 << digit_bits)


def threshold(shards: Sequence[npt.NDArray[np.uint32]], k: int, digit_bits: int = 4) -> Threshold:
    """Return the threshold of the ``k`` largest keys of all ``shards`` together.

    Each digit is the highest with which the keys above it and its own reach what is left of ``k``; what lies above is
    then taken off. A shard gives its histogram alone, and the sum of histograms is that of the union, so that the
    threshold is exact however the keys are spread. With fewer keys than ``k`` every digit is 0.

    Parameters
    ----------
    shards : sequence of ndarray of uint32
        Keys, none of them 0.
    k : int
        At least 0.
    digit_bits : int
        A divisor of :data:`KEY_BITS`.

    Raises
    ------
    TypeError, ValueError
        If ``k`` or ``digit_bits`` is no integer or out of range.
    """
    require_int("k", k, 0)
    require_int("digit_bits", digit_bits, 1, KEY_BITS)
    if KEY_BITS % digit_bits:
        raise ValueError(f"digit_bits must divide {KEY_BITS}, not {digit_bits!r}")
    prefix, left = 0, k
    for digit in range(KEY_BITS // digit_bits):
        counts = np.zeros(1 << digit_bits, np.int64)
        for keys in shards:
            counts += digit_counts(keys, prefix, digit, digit_bits)
        reached = np.cumsum(counts[::-1])[::-1]
        chosen = int(np.flatnonzero(reached >= left)[-1]) if reached[0] >= left else 0
        left -= int(reached[chosen] - counts[chosen])
        prefix = prefix << digit_bits | chosen
    return Threshold(prefix, left)


def quotas(shards: Sequence[npt.NDArray[np.uint32]], found: Threshold) -> list[int]:
    """Return how many scores of the threshold's own key each shard takes: all, until there are enough.

    The ids of a shard are all lower than those of the next, so that the lowest ids come first.
    """
    left = found.equal
    taken: list[int] = []
    for keys in shards:
        taken.append(min(left, int(np.count_nonzero(keys == found.key))))
        left -= taken[-1]
    return taken


def select(keys: npt.NDArray[np.uint32], key: int, quota: int) -> npt.NDArray[np.int64]:
    """Return the indices, ascending, of the keys above ``key`` and of the first ``quota`` that equal it.

    Parameters
    ----------
    keys : ndarray of uint32, shape (candidates,)
        By id; 0 where an id has no score.
    key, quota : int
        Threshold and the shard's share of it.
    """
    equal = np.flatnonzero((keys == key) & (keys != 0))[:quota]
    return np.sort(np.concatenate([np.flatnonzero(keys > key), equal]))
