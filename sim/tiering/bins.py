"""Tokens of a request by what a policy knows of them, as numbers that need not be whole: cost without the context.

Bin 0 holds the tokens that every step reads. The others are a Markov chain: from bin z a token is read with probability
``memory_z + s anew_z``, with one factor s a request and step that makes the reads exactly as many as are asked for, and
goes on to another bin, by one table if it was read and by another if not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.retrieval.access import AccessLocality

    Table = npt.NDArray[np.float64]

__all__ = [
    "Bins",
    "average_bins",
    "count_bins",
    "future_bins",
    "kind_bins",
    "read_chance",
    "recency_bins",
    "with_older_reads",
]

_STEPS, _LONGEST = 4, 12
"""Steps whose reads a bin tells apart, and steps up to which it tells how long they were all alike."""


@dataclass(frozen=True, kw_only=True)
class Bins:
    """Bins of a policy.

    Parameters
    ----------
    memory, anew : ndarray, shape (bins,)
        Read probability, its fixed part and the part that is scaled; bin 0 is always read.
    read_to, unread_to : ndarray, shape (bins, bins), or None
        Where tokens go that were read, and that were not; None where bins change at decisions alone.
    decided_to : ndarray, shape (bins, bins), or None
        Where tokens go at a decision.
    leave : ndarray, shape (bins,)
        Where those go that are no longer read always.
    start : ndarray, shape (bins,)
        How the tokens of a request that begins are spread, those aside that are always read.
    importance : ndarray, shape (bins,)
        By which tokens are ranked.
    score : ndarray, shape (bins,), or None
        Mean importance of a bin's tokens, where it is more than they are ranked by; None: the same.
    """

    memory: Table
    anew: Table
    read_to: Table | None
    unread_to: Table | None
    decided_to: Table | None
    leave: Table
    start: Table
    importance: Table
    score: Table | None = None

    def __len__(self) -> int:
        return len(self.importance)

    @cached_property
    def levels(self) -> Table:
        """The different importances, ascending."""
        return np.unique(self.importance)

    @cached_property
    def level(self) -> npt.NDArray[np.int64]:
        """Of each bin, the place of its importance among the levels: a policy can't tell bins of one level apart."""
        return np.searchsorted(self.levels, self.importance)

    def total(self, counts: Table) -> float:
        """Return the sum of the importance of so many tokens of each bin."""
        return float(counts @ (self.importance if self.score is None else self.score))

    def by_level(self, counts: Table) -> Table:
        """Return how many tokens have each importance, given those of each bin."""
        return np.bincount(self.level, weights=counts, minlength=len(self.levels)).astype(np.float64)


def read_chance(bins: Bins, counts: Table, wanted: Table) -> Table:
    """Return the probability of being read, shape (requests, bins).

    Parameters
    ----------
    bins : Bins
    counts : ndarray, shape (requests, bins)
        Tokens of each request.
    wanted : ndarray, shape (requests,)
        Reads of each, those of bin 0 left out.
    """
    inner = counts.copy()
    inner[:, 0] = 0.0
    scaled = inner @ bins.anew
    factor = (wanted - inner @ bins.memory) / np.maximum(scaled, 1e-12)
    chance = np.clip(bins.memory + factor[:, np.newaxis] * bins.anew, 0.0, 1.0)
    # Where a probability would leave 0 to 1, all give way alike.
    expected = (inner * chance).sum(axis=1)
    chance *= np.minimum(1.0, wanted / np.maximum(expected, 1e-12))[:, np.newaxis]
    short = np.clip((wanted - expected) / np.maximum(inner.sum(axis=1) - expected, 1e-12), 0.0, 1.0)
    chance += (1.0 - chance) * short[:, np.newaxis]
    chance[:, 0] = 1.0
    return chance


def _spread(bins: int, kinds: Table, first: int, stride: int) -> Table:
    """Return a distribution with each kind's share at its bin ``first + kind * stride``."""
    found = np.zeros(bins)
    found[first + stride * np.arange(len(kinds))] = kinds
    return found


def _stationary(bins: int, memory: Table, anew: Table, read_to: Table, unread_to: Table, begin: Table) -> Table:
    """Return how tokens are spread in the long run."""
    chance = np.minimum(1.0, memory + anew)[:, np.newaxis]
    step = chance * read_to + (1.0 - chance) * unread_to
    step[0] = np.eye(bins)[0]
    # Squared ten times: 1,024 steps.
    return begin @ np.linalg.matrix_power(step, 1 << 10)


def _chain(
    locality: AccessLocality, states: int, latest: npt.NDArray[np.bool_], nexts: tuple[list[int], list[int]], top: int
) -> tuple[Table, Table, Table, Table, Table, Table]:
    """Return memory, anew, tables, leave and start of a chain whose states tell whether the latest step read."""
    size = 1 + 2 * states
    memory, anew = np.ones(size), np.zeros(size)
    tables = np.zeros((2, size, size))
    tables[:, 0, 0] = 1.0
    for kind in range(2):
        place = 1 + kind * states
        memory[place : place + states] = latest * locality.memories[kind]
        anew[place : place + states] = locality.anew[kind]
        for table, following in zip(tables, nexts, strict=True):
            table[place + np.arange(states), place + np.array(following)] = 1.0
    leave = _spread(size, locality.shares, 1 + top, states)
    start = _stationary(size, memory, anew, tables[0], tables[1], leave)
    return memory, anew, tables[0], tables[1], leave, start


def _histories() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the reads of four steps and how long all were alike, of each bin of a kind; 0 where they are not.

    Never read for 4, 5, ... steps come first, then the mixed ones, then always read for 4, 5, ... steps.
    """
    runs = np.arange(_STEPS, _LONGEST + 1)
    codes = np.arange(1, (1 << _STEPS) - 1)
    code = np.concatenate([np.zeros_like(runs), codes, np.full_like(runs, (1 << _STEPS) - 1)])
    return code, np.concatenate([runs, np.zeros_like(codes), runs])


def average_bins(locality: AccessLocality, importance: Table, always: float) -> Bins:
    """Return bins by kind and the reads of four steps, the latest the highest bit, with the ``importance`` of each.

    Where the four are alike, bins also tell for how long, up to twelve steps.

    Parameters
    ----------
    locality : AccessLocality
    importance : ndarray, shape (16,)
    always : float
        Importance of what is always read.
    """
    code, _ = _histories()
    states, top = len(code), (1 << _STEPS) - 1
    unread = [_place(int(now) >> 1, place, read=False) for place, now in enumerate(code)]
    read = [_place(int(now) >> 1 | 1 << _STEPS - 1, place, read=True) for place, now in enumerate(code)]
    latest = code > top // 2
    memory, anew, read_to, unread_to, leave, start = _chain(locality, states, latest, (read, unread), states - 1)
    return Bins(
        memory=memory,
        anew=anew,
        read_to=read_to,
        unread_to=unread_to,
        decided_to=None,
        leave=leave,
        start=start,
        importance=np.concatenate([[always], importance[code], importance[code]]),
    )


def _place(code: int, before: int, *, read: bool) -> int:
    """Return the bin of a kind for the reads of four steps, given the bin before the last of them."""
    runs, top = _LONGEST + 1 - _STEPS, (1 << _STEPS) - 1
    if code == 0 and not read:
        return min(before + 1, runs - 1) if before < runs else 0
    if code == top:
        first = runs + top - 1
        return min(before + 1, first + runs - 1) if before >= first else first
    return runs + code - 1


def with_older_reads(bins: Bins, locality: AccessLocality, weight: float) -> Bins:
    """Return bins of :func:`average_bins` at the mean of ``I = weight S + (1 - weight) I``, older reads included.

    Given a token's kind and whether a step, n = 0, read it, the steps before that one add on average

        older_0 = sum over n = 1, 2, ... of weight (1 - weight)^(n - 1) (q + (S_0 - q) f^n).

    Tokens are ranked by the mean over both kinds, which a policy does not know.
    """
    code, run = _histories()
    keep = 1.0 - weight
    rate, memory = locality.rates[:, np.newaxis], locality.memories[:, np.newaxis]

    def older(read: npt.NDArray[np.int64] | int) -> Table:
        return rate + (read - rate) * weight * memory / (1.0 - keep * memory)

    mixed = bins.importance[1 : 1 + len(code)] + keep**_STEPS * older(code & 1)
    # The step before a run was the other way.
    unread = keep**run * (weight + keep * older(1))
    read = 1.0 - keep**run * (1.0 - keep * older(0))
    exact = np.where(run == 0, mixed, np.where(code == 0, unread, read))
    parts = bins.start[1:].reshape(exact.shape)
    ranked = (exact * parts).sum(axis=0) / parts.sum(axis=0)
    always = bins.importance[:1]
    return replace(
        bins,
        importance=np.concatenate([always, ranked, ranked]),
        score=np.concatenate([always, exact.ravel()]),
    )


def recency_bins(locality: AccessLocality, oldest: int = 48) -> Bins:
    """Return bins by kind and steps since the last read, from 0 to ``oldest`` and more."""
    ages = np.arange(oldest + 1)
    nexts = ([0] * len(ages), np.minimum(ages + 1, oldest).tolist())
    memory, anew, read_to, unread_to, leave, start = _chain(locality, len(ages), ages == 0, nexts, 0)
    return Bins(
        memory=memory,
        anew=anew,
        read_to=read_to,
        unread_to=unread_to,
        decided_to=None,
        leave=leave,
        start=start,
        importance=np.concatenate([[0.0], -ages, -ages]),
    )


def kind_bins(locality: AccessLocality) -> Bins:
    """Return bins by kind and whether the latest step read, all of them alike important."""
    memory, anew, read_to, unread_to, leave, start = _chain(locality, 2, np.array([False, True]), ([1, 1], [0, 0]), 1)
    return Bins(
        memory=memory,
        anew=anew,
        read_to=read_to,
        unread_to=unread_to,
        decided_to=None,
        leave=leave,
        start=start,
        importance=np.zeros(5),
    )


def future_bins(locality: AccessLocality, farthest: int = 48) -> Bins:
    """Return bins by kind and steps until the next read, from 1 to ``farthest`` and more."""
    size = 1 + 2 * farthest
    memory, anew = np.zeros(size), np.zeros(size)
    read_to, unread_to = np.eye(size), np.zeros((size, size))
    memory[0] = unread_to[0, 0] = 1.0
    leave = np.zeros(size)
    waits = np.arange(farthest)
    for kind in range(2):
        place = 1 + kind * farthest
        again, rest = locality.anew[kind] + locality.memories[kind], locality.anew[kind]
        # The soonest are read; of the next ones as many as are still asked for.
        memory[place], anew[place + 1] = 1.0, 1.0
        # Not read at once, a token waits one step and then geometrically; who waits the longest keeps doing so.
        law = np.concatenate([[again], (1.0 - again) * rest * (1.0 - rest) ** waits[:-1]])
        law[-1] = 1.0 - law[:-1].sum()
        read_to[place : place + farthest, place : place + farthest] = law
        unread_to[place, place] = 1.0
        unread_to[place + waits[1:], place + waits[1:] - 1] = 1.0
        last = place + farthest - 1
        unread_to[last, last - 1], unread_to[last, last] = rest, 1.0 - rest
        leave[place : place + farthest] = locality.shares[kind] * law
    chance = np.zeros((size, 1))
    chance[[1, 1 + farthest]] = 1.0
    step = chance * read_to + (1.0 - chance) * unread_to
    start = leave @ np.linalg.matrix_power(step, 1 << 10)
    importance = -1.0 - np.concatenate([[0], waits, waits])
    return Bins(
        memory=memory,
        anew=anew,
        read_to=read_to,
        unread_to=unread_to,
        decided_to=None,
        leave=leave,
        start=start,
        importance=importance,
    )


def count_bins(locality: AccessLocality, decay: float, interval: int, highest: float, width: float = 0.25) -> Bins:
    """Return bins by kind and ``I = decay I + (1 - decay) count``, ``width`` apart, which decisions alone change.

    The last bin is ``highest`` and more. Reads of an interval are counted by their law in the chain; that they hang
    together with those of the interval before is left out. A value between two bins is shared between them, so that its
    mean is kept.
    """
    states = int(np.ceil(highest / width)) + 1
    values = width * np.arange(states)
    size = 1 + 2 * states
    decided = np.zeros((size, size))
    decided[0, 0] = 1.0
    anew = np.zeros(size)
    start, leave = np.zeros(size), np.zeros(size)
    # What leaves was counted in every step since it came.
    begun = min(states - 1, round(interval * (1.0 - decay ** (locality.recent / interval)) / width))
    for kind in range(2):
        place = 1 + kind * states
        anew[place : place + states] = locality.rates[kind]
        start[place], leave[place + begun] = locality.shares[kind], locality.shares[kind]
        for count, part in enumerate(_count_law(locality, kind, interval)):
            low, share = np.divmod((decay * values + (1.0 - decay) * count) / width, 1.0)
            rows, columns, last = place + np.arange(states), place + low.astype(np.int64), place + states - 1
            decided[rows, np.minimum(columns, last)] += part * (1.0 - share)
            decided[rows, np.minimum(columns + 1, last)] += part * share
    return Bins(
        memory=np.eye(size)[0],
        anew=anew,
        read_to=None,
        unread_to=None,
        decided_to=decided,
        leave=leave,
        start=start,
        importance=np.concatenate([[width * begun], values, values]),
    )


def _count_law(locality: AccessLocality, kind: int, interval: int) -> Table:
    """Return how likely each number of reads in an interval is."""
    rate, anew = locality.rates[kind], locality.anew[kind]
    again = anew + locality.memories[kind]
    unread, read = np.zeros(interval + 1), np.zeros(interval + 1)
    unread[0], read[0] = 1.0 - rate, rate
    for _ in range(interval):
        # A read of this step counts; the state before decides how likely it is.
        now = again * read + anew * unread
        unread, read = (1.0 - again) * read + (1.0 - anew) * unread, np.concatenate([[0.0], now[:-1]])
    return unread + read
