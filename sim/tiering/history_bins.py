"""Bins of what was read: the kinds of tokens, their last steps, and how long ago the last read was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sim.tiering.bins import Bins

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.retrieval.access import AccessLocality

    Table = npt.NDArray[np.float64]

__all__ = ["average_bins", "kind_bins", "recency_bins", "with_older_reads"]

_STEPS, _LONGEST = 4, 12
"""Steps whose reads a bin tells apart, and steps up to which it tells how long they were all alike."""


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
