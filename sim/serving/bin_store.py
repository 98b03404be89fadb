"""A store that counts the tokens of a request by importance: a step costs the same however long requests are.

Counts are means, so that they are not whole. As long as the nearest memory holds everything nothing is counted: reads
are known by their number, and whatever a policy knows is then as it is in the long run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.serving.moved_store import MovedStore
from sim.tiering.bins import read_chance
from sim.tiering.groups import fullest_tokens
from sim.tiering.policy import TierScore
from sim.tiering.swaps import Ranked, swap_count, taken
from sim.tiering.use import TierUse

if TYPE_CHECKING:
    import numpy.typing as npt

    Counts = npt.NDArray[np.float64]

__all__ = ["BinStore", "touched_pages"]


class BinStore(MovedStore):
    """Blocks of one token each, swapped between memories by a policy: the ``aggregate`` fidelity.

    Parameters are those of :class:`sim.serving.moved_store.MovedStore`.
    """

    def prepare(self, requests: int) -> None:
        """Know nothing of any request."""
        self._bins = self._plan.policy.bins(self._plan.locality)
        self._slot = np.full(requests, -1, np.int64)
        self._spare: list[int] = []
        self._counts = np.zeros((0, len(self.room), len(self._bins)))
        self._length = np.zeros(0, np.int64)
        self._owed = np.zeros(len(self.room))

    def use(self, ids: npt.NDArray[np.int64], stored: npt.NDArray[np.int64]) -> TierUse:
        """Return what one step of ``ids`` reads where, and swap tokens after it."""
        if not len(ids):
            return super().use(ids, stored)
        self._steps += 1
        kept = self._plan.kept(stored + 1)
        tiers = len(self.room)
        if self.only_nearest and not self._page_tokens[0]:
            self._forget_all()
            far = (0,) * (tiers - 1)
            count, held = len(ids), int(stored.sum()) + len(ids)
            locality = self._plan.locality
            read = kept.astype(np.float64)
            always = np.minimum(read, locality.sinks + locality.recent)
            fullest = fullest_tokens(read, always, (stored + 1).astype(np.float64), self._groups[:1])
            return TierUse(
                tokens=(int(kept.sum()), *far),
                requests=(count, *far),
                held=(held, *far),
                appended=(count, *far),
                pages=(0.0,) * tiers,
                swaps=far,
                fullest=(float(fullest.sum()), *far),
            )
        slots = self._followed(ids, stored, kept)
        counts = self._counts[slots]
        chance = read_chance(self._bins, counts.sum(axis=1), kept - counts[:, :, 0].sum(axis=1))
        read = counts * chance[:, np.newaxis]
        held, read_here = counts.sum(axis=2), read.sum(axis=2)
        fullest = fullest_tokens(read_here, counts[:, :, 0], held, self._groups)
        use_pages = [
            float(touched_pages(held[:, tier], counts[:, tier, 0], read_here[:, tier], size).sum()) if size else 0.0
            for tier, size in enumerate(self._page_tokens)
        ]
        counts = self._moved_on(counts, read)
        swaps = [0.0] * (tiers - 1)
        if self._steps % self._plan.policy.every == 0:
            if self._bins.decided_to is not None:
                counts = counts @ self._bins.decided_to
            counts, swaps = self._swapped(counts)
        self._counts[slots] = counts
        return TierUse(
            tokens=tuple(read_here.sum(axis=0).tolist()),
            requests=tuple(_met(counts=read, chance=chance, held=held).tolist()),
            held=tuple(held.sum(axis=0).tolist()),
            appended=self.appended(ids),
            pages=tuple(use_pages),
            swaps=tuple(swaps),
            fullest=tuple(fullest.sum(axis=0).tolist()),
        )

    def _followed(
        self, ids: npt.NDArray[np.int64], stored: npt.NDArray[np.int64], kept: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the slots of ``ids``, with the tokens that they have now."""
        for place in np.flatnonzero(self._slot[ids] < 0).tolist():
            self._begin(int(ids[place]), int(stored[place]))
        slots = self._slot[ids]
        new = stored + 1 - self._length[slots]
        self._counts[slots, self.last_tier[ids], 0] += new
        self._length[slots] += new
        # Those that are no longer among the last ones go to the bins of their kinds, from each memory alike.
        always = self._counts[slots, :, 0]
        sums = always.sum(axis=1)
        locality = self._plan.locality
        left = np.maximum(0.0, sums - np.minimum(kept, locality.sinks + locality.recent))
        gone = always * (left / np.maximum(sums, 1e-12))[:, np.newaxis]
        self._counts[slots] += gone[:, :, np.newaxis] * self._bins.leave
        self._counts[slots, :, 0] -= gone
        return slots

    def _begin(self, request: int, stored: int) -> None:
        """Take up a request before the token of the step: the last of its tokens lie farthest."""
        if not self._spare:
            size = max(16, 2 * len(self._length))
            self._spare += range(len(self._length), size)
            grown = np.zeros((size, *self._counts.shape[1:]))
            grown[: len(self._counts)] = self._counts
            self._counts = grown
            self._length = np.concatenate([self._length, np.zeros(size - len(self._length), np.int64)])
        slot = self._spare.pop()
        held = self.held[request].astype(np.float64)
        held[self.last_tier[request]] -= 1
        first, recent = self._plan.always(stored)
        always = np.zeros(len(held))
        always[np.flatnonzero(held)[0]] = first
        for tier in reversed(range(len(held))):
            here = min(recent, held[tier] - always[tier])
            always[tier] += here
            recent -= here
        self._counts[slot] = np.multiply.outer(held - always, self._bins.start)
        self._counts[slot, :, 0] += always
        self._length[slot] = stored
        self._slot[request] = slot

    def _moved_on(self, counts: Counts, read: Counts) -> Counts:
        """Return counts after a step that has read so many of each."""
        bins = self._bins
        if bins.read_to is None or bins.unread_to is None:
            return counts
        return read @ bins.read_to + (counts - read) @ bins.unread_to

    def _swapped(self, counts: Counts) -> tuple[Counts, list[float]]:
        """Return counts after the policy's swaps, the farthest pair of memories first, and the pairs of each."""
        policy, bins = self._plan.policy, self._bins
        totals = counts.sum(axis=0)
        swaps = [0.0] * (len(totals) - 1)
        budget = float(self._plan.budget(int(totals.sum())))
        for pair in reversed(range(len(swaps))):
            scores = [TierScore(bins.total(tier), float(tier.sum())) for tier in totals]
            near = far = slice(None)
            threshold = policy.threshold(pair)
            if threshold is not None:
                limit = int(np.searchsorted(bins.levels, threshold))
                near, far = slice(None, limit), slice(limit, None)
            leaving = Ranked(bins.levels[near], bins.by_level(totals[pair])[near])
            coming = Ranked(bins.levels[far][::-1], bins.by_level(totals[pair + 1])[far][::-1])
            swaps[pair] = swap_count(leaving, coming, budget=budget, needed=policy.gain(pair, scores))
            if swaps[pair]:
                away, here = np.zeros(len(bins.levels)), np.zeros(len(bins.levels))
                away[near] = taken(leaving, swaps[pair]) / np.maximum(leaving.counts, 1e-12)
                here[far] = (taken(coming, swaps[pair]) / np.maximum(coming.counts, 1e-12))[::-1]
                down, up = counts[:, pair] * away[bins.level], counts[:, pair + 1] * here[bins.level]
                counts[:, pair] += up - down
                counts[:, pair + 1] += down - up
                totals = counts.sum(axis=0)
        return counts, swaps

    def release(self, ids: npt.NDArray[np.int64]) -> None:
        """Give back all that ``ids`` hold, and follow them no longer."""
        super().release(ids)
        self._drop(ids)

    def _drop(self, ids: npt.NDArray[np.int64]) -> None:
        slots = self._slot[ids]
        self._spare += slots[slots >= 0].tolist()
        self._slot[ids] = -1

    def _forget_all(self) -> None:
        """Follow nobody: where everything is near, all is as in the long run."""
        if len(self._spare) < len(self._length):
            self._drop(np.flatnonzero(self._slot >= 0))

    def _given_back(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return whole tokens of each memory that ``ids`` leave; what rounding keeps back is given with the next."""
        followed = self._slot[ids] >= 0
        plain = self.held[ids[~followed]].sum(axis=0)
        followed_ids = ids[followed]
        exact = self._counts[self._slot[followed_ids]].sum(axis=(0, 2))
        total = int(self.held_blocks[ids].sum())
        # Tokens that were stored and not yet counted lie where the last one was taken.
        missing = self.held_blocks[followed_ids] - self._length[self._slot[followed_ids]]
        exact += np.bincount(self.last_tier[followed_ids], weights=missing, minlength=len(exact))
        wanted = plain + exact + self._owed
        whole = np.clip(np.floor(wanted + 0.5).astype(np.int64), 0, self.room - self.free)
        short = total - int(whole.sum())
        for tier in np.argsort(whole - wanted if short > 0 else wanted - whole, kind="stable").tolist():
            # One token here or there, as far as a memory has it.
            change = (
                min(short, int((self.room - self.free)[tier] - whole[tier]))
                if short > 0
                else max(short, -int(whole[tier]))
            )
            whole[tier] += change
            short -= change
        self._owed = wanted - whole
        return whole


def touched_pages(held: Counts, always: Counts, read: Counts, size: int) -> Counts:
    """Return the pages that each request touches, a mean.

    Tokens lie on pages in their order, and all but those that are always read are read with one probability p, by
    chance: a page of n of them is touched with probability ``1 - (1 - p)^n``. Those always read lie on the last pages.

    Parameters
    ----------
    held, always, read : ndarray of float64, shape (requests,)
        Tokens in the memory, those of them that every step reads, and all that the step reads.
    size : int
        Tokens of a page.
    """
    full = np.floor(held / size)
    rest = held - full * size
    others = np.maximum(held - always, 1e-12)
    chance = np.clip((read - always) / others, 0.0, 1.0)
    miss = 1.0 - chance
    # A last page that is full is the last page all the same.
    only_full = (rest == 0.0) & (full > 0.0)
    full, rest = np.where(only_full, full - 1.0, full), np.where(only_full, float(size), rest)
    last = np.maximum(1.0 - miss**rest, np.minimum(1.0, always))
    before = np.maximum(0.0, always - rest)
    sure = np.minimum(full, np.where(before < 1.0, before, np.ceil(before / size)))
    pages = sure + (full - sure) * (1.0 - miss**size) + np.where(rest > 0.0, last, 0.0)
    # A part of a token touches no more than that part of a page.
    return np.minimum(pages, read)


def _met(*, counts: Counts, chance: Counts, held: Counts) -> Counts:
    """Return how many requests read anything of each memory, a mean: ``1 - product (1 - p)^n`` of each request.

    Parameters
    ----------
    counts : ndarray, shape (requests, tiers, bins)
        Tokens that are read.
    chance : ndarray, shape (requests, bins)
        Probability of being read.
    held : ndarray, shape (requests, tiers)
        Tokens.
    """
    sure = chance >= 1.0
    unsure = np.where(sure, 0.0, chance)[:, np.newaxis]
    tokens = np.where(sure[:, np.newaxis], 0.0, counts / np.maximum(chance, 1e-12)[:, np.newaxis])
    none = np.exp((tokens * np.log1p(-unsure)).sum(axis=2))
    some = np.where(sure[:, np.newaxis], counts, 0.0).sum(axis=2)
    met = np.where(held > 0.0, 1.0 - none * np.maximum(0.0, 1.0 - some), 0.0)
    # A part of a token is read by no more than that part of a request.
    return np.minimum(met, counts.sum(axis=2)).sum(axis=0)
