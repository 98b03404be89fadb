"""Bins of how soon a token is read next, and of how often it was in an interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.tiering.bins import Bins

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.retrieval.access import AccessLocality

    Table = npt.NDArray[np.float64]

__all__ = ["count_bins", "future_bins"]


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
