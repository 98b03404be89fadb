"""A store that knows every token: which step reads it, how important it is and in which memory it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.balance import GreedyBalance, intra_tokens
from sim.serving.moved_store import MovedStore
from sim.tiering.policy import TierScore
from sim.tiering.swaps import Ranked, swap_count
from sim.tiering.use import TierUse

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.retrieval.access import AccessStream
    from sim.tiering.memories import TokenMemory

__all__ = ["TokenStore", "lowest"]


class _Tokens:
    """The tokens of one request: their reads, what is known of them, the memory of each and its bank group there.

    A prompt's tokens are dealt to the groups of their memory in turn.
    """

    __slots__ = ("_balances", "_counts", "group", "memory", "stream", "tier")

    def __init__(
        self, stream: AccessStream, memory: TokenMemory, tier: npt.NDArray[np.int8], groups: npt.NDArray[np.int64]
    ) -> None:
        self.stream, self.memory = stream, memory
        self.tier: npt.NDArray[np.int8] = tier
        self._counts = groups.tolist()
        self._balances = [GreedyBalance(count) for count in self._counts]
        self.group = np.zeros(len(tier), np.int64)
        for number, count in enumerate(self._counts):
            here = np.flatnonzero(tier == number)
            self.group[here] = np.arange(len(here)) % count

    def append(self, tokens: int, tier: int) -> None:
        """Store more tokens in one memory."""
        self.stream.append(tokens)
        self.memory.append(tokens)
        self.tier = np.concatenate([self.tier, np.full(tokens, tier, np.int8)])
        self.group = np.concatenate([self.group, self._balances[tier].place_each(tokens)])

    def move(self, tier: npt.NDArray[np.int8]) -> None:
        """Give each token its memory anew, and those that have moved a bank group there."""
        moved = np.flatnonzero(self.tier != tier)
        for number in np.unique(tier[moved]).tolist():
            coming = moved[tier[moved] == number]
            self.group[coming] = self._balances[int(number)].place_each(len(coming))
        self.tier = tier

    def fullest(self, read: npt.NDArray[np.bool_]) -> list[int]:
        """Return the tokens of the fullest group times the groups of each memory, and count the reads of a step."""
        tier, group = self.tier[read], self.group[read]
        found: list[int] = []
        for number, (count, balance) in enumerate(zip(self._counts, self._balances, strict=True)):
            here = group[tier == number]
            found.append(count * intra_tokens(here, count))
            balance.activate(here)
            balance.begin_step()
        return found


class TokenStore(MovedStore):
    """Blocks of one token each, swapped between memories by a policy: the ``exact`` fidelity.

    A request's prompt fills memories in the order of its tokens. What a request that was sent back had is forgotten.

    Parameters are those of :class:`sim.serving.moved_store.MovedStore`.
    """

    def prepare(self, requests: int) -> None:
        """Know nothing of any request."""
        self._tokens: dict[int, _Tokens] = {}
        self._rng = np.random.default_rng([self._plan.seed, requests])

    def release(self, ids: npt.NDArray[np.int64]) -> None:
        """Give back all that ``ids`` hold, and forget their tokens."""
        super().release(ids)
        for request in ids.tolist():
            self._tokens.pop(request, None)

    def use(self, ids: npt.NDArray[np.int64], stored: npt.NDArray[np.int64]) -> TierUse:
        """Return what one step of ``ids`` reads where, and swap tokens after it."""
        if not len(ids):
            return super().use(ids, stored)
        tiers = len(self.room)
        self._steps += 1
        decides = self._steps % self._plan.policy.every == 0
        kept = self._plan.kept(stored + 1).tolist()
        tokens, requests, pages = np.zeros(tiers, np.int64), np.zeros(tiers, np.int64), np.zeros(tiers)
        fullest = np.zeros(tiers, np.int64)
        entries: list[_Tokens] = []
        for request, before, wanted in zip(ids.tolist(), stored.tolist(), kept, strict=True):
            entry = self._grown(request, before + 1)
            read = entry.stream.step(wanted)
            entry.memory.step(read, decides=decides)
            here = np.bincount(entry.tier[read], minlength=tiers)
            tokens += here
            requests += here > 0
            fullest += entry.fullest(read)
            for tier, size in enumerate(self._page_tokens):
                if size and here[tier]:
                    of_tier = read[entry.tier == tier]
                    pages[tier] += np.count_nonzero(np.add.reduceat(of_tier, np.arange(0, len(of_tier), size)))
            entries.append(entry)
        held = tuple(self.held[ids].sum(axis=0).tolist())
        moves = decides and not self.only_nearest and len(entries)
        swaps = self._swap(ids, entries) if moves else [0] * (tiers - 1)
        return TierUse(
            tokens=tuple(tokens.tolist()),
            requests=tuple(requests.tolist()),
            held=held,
            appended=self.appended(ids),
            pages=tuple(pages.tolist()),
            swaps=tuple(swaps),
            fullest=tuple(fullest.tolist()),
        )

    def _grown(self, request: int, count: int) -> _Tokens:
        """Return the tokens of a request, ``count`` by now; the last ones lie where it took its last block."""
        last = int(self.last_tier[request])
        entry = self._tokens.get(request)
        if entry is None:
            before = self.held[request].copy()
            before[last] -= 1
            tier = np.repeat(np.arange(len(self.room), dtype=np.int8), before)
            stream = self._plan.stream(request, len(tier))
            memory = self._plan.policy.memory(stream, self._plan.kept_of)
            entry = self._tokens[request] = _Tokens(stream, memory, tier, self._groups)
        if count > len(entry.tier):
            entry.append(count - len(entry.tier), last)
        return entry

    def _swap(self, ids: npt.NDArray[np.int64], entries: list[_Tokens]) -> list[int]:
        """Swap tokens as the policy says, the farthest pair of memories first; return the pairs of each."""
        policy = self._plan.policy
        importance = np.concatenate([entry.memory.importance for entry in entries])
        before = np.concatenate([entry.tier for entry in entries])
        after = before.copy()
        budget = self._plan.budget(len(before))
        places = [np.flatnonzero(before == tier) for tier in range(len(self.room))]
        values = [importance[place] for place in places]
        swaps = [0] * (len(self.room) - 1)
        for pair in reversed(range(len(swaps))):
            scores = [TierScore(float(value.sum(dtype=np.float64)), len(value)) for value in values]
            leaving, coming = self._candidates(values[pair], values[pair + 1], policy.threshold(pair), budget)
            ones = np.ones(len(leaving))
            found = swap_count(
                Ranked(values[pair][leaving].astype(np.float64), ones),
                Ranked(values[pair + 1][coming].astype(np.float64), ones),
                budget=len(leaving),
                needed=policy.gain(pair, scores),
            )
            swaps[pair] = count = int(np.ceil(found - 1e-9))
            goes, comes = leaving[:count], coming[:count]
            for of_tier in (places, values):
                near, far = of_tier[pair], of_tier[pair + 1]
                near[goes], far[comes] = far[comes], near[goes]
            after[places[pair][goes]], after[places[pair + 1][comes]] = pair, pair + 1
        self._note(ids, entries, before, after)
        return swaps

    def _candidates(
        self, near: npt.NDArray[np.float32], far: npt.NDArray[np.float32], threshold: float | None, budget: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the places of tokens that may leave a memory, and that may come, in the order in which they would."""
        if threshold is None:
            most = min(budget, len(near), len(far))
            return lowest(near, most, self._rng), lowest(-far, most, self._rng)
        low, high = np.flatnonzero(near < threshold), np.flatnonzero(far >= threshold)
        most = min(budget, len(low), len(high))
        return low[lowest(near[low], most, self._rng)], high[lowest(-far[high], most, self._rng)]

    def _note(
        self,
        ids: npt.NDArray[np.int64],
        entries: list[_Tokens],
        before: npt.NDArray[np.int8],
        after: npt.NDArray[np.int8],
    ) -> None:
        """Note where tokens lie that have moved."""
        moved = np.flatnonzero(before != after)
        ends = np.cumsum([len(entry.stream) for entry in entries])
        owners = np.searchsorted(ends, moved, side="right")
        np.subtract.at(self.held, (ids[owners], before[moved]), 1)
        np.add.at(self.held, (ids[owners], after[moved]), 1)
        parts: list[npt.NDArray[np.int8]] = np.split(after, ends[:-1])
        for owner in np.unique(owners).tolist():
            entries[int(owner)].move(parts[int(owner)])


def lowest(values: npt.NDArray[np.float32], count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the places of the ``count`` lowest values, ascending; equal ones in an order drawn by chance.

    A fixed order would favour the same requests in every step.
    """
    if count <= 0:
        return np.empty(0, np.int64)
    places = np.arange(len(values))
    if count < len(values):
        limit = np.partition(values, count - 1)[count - 1]
        below, equal = np.flatnonzero(values < limit), np.flatnonzero(values == limit)
        places = np.concatenate([below, rng.choice(equal, count - len(below), replace=False)])
    places = rng.permutation(places)
    return places[np.argsort(values[places], kind="stable")]
