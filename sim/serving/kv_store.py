"""Where the keys and values of running requests are: blocks of tokens in tiers, shared out by a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.serving.fill import FILL_RULES
from sim.tiering.use import TierUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sim.serving.fill import FillRule

__all__ = ["KvStore"]


class KvStore:
    """Blocks that requests hold in each tier.

    Parameters
    ----------
    tier_blocks : sequence of int
        Room of each tier, from the nearest to the farthest.
    block_tokens : int
        Tokens of a block.
    requests : int
        Requests there can be.
    fill : FillRule
        Which tiers new blocks are taken from.

    Attributes
    ----------
    held : ndarray of int64, shape (requests, tiers)
        Blocks that each request holds in each tier.
    held_blocks : ndarray of int64, shape (requests,)
        The same of all tiers together.
    last_tier : ndarray of int64, shape (requests,)
        Tier of the block that each request took last.
    free : ndarray of int64, shape (tiers,)
        Blocks that nobody holds; with ``held`` it always adds up to the room.
    total_blocks, free_blocks : int
        Room and free blocks of all tiers together.
    """

    def __init__(
        self,
        tier_blocks: Sequence[int],
        *,
        block_tokens: int,
        requests: int,
        fill: FillRule = FILL_RULES["top-down"],
    ) -> None:
        self._fill = fill
        self.block_tokens = block_tokens
        self.room = np.array(tier_blocks, np.int64)
        self._room = self.room.tolist()
        self.free = self.room.copy()
        self.total_blocks = self.free_blocks = int(self.room.sum())
        self._far_held = 0
        self.held = np.zeros((requests, len(tier_blocks)), np.int64)
        self._tier_held = [self.held[:, tier] for tier in range(len(tier_blocks))]
        self.held_blocks = np.zeros(requests, np.int64)
        self.last_tier = np.zeros(requests, np.int64)
        self._promised = 0
        self._promise = np.zeros(requests, np.int64)
        self._remembered: dict[int, int] = {}

    @property
    def unread_blocks(self) -> int:
        """Blocks that nobody holds and of which nothing is remembered."""
        return self.free_blocks - sum(self._remembered.values()) if self._remembered else self.free_blocks

    @property
    def only_nearest(self) -> bool:
        """Nothing is held but in the nearest tier."""
        return not self._far_held

    def blocks(self, tokens: int) -> int:
        """Return the blocks that hold ``tokens``."""
        return -(-tokens // self.block_tokens)

    def promise(self, request: int, tokens: int) -> bool:
        """Keep room for ``tokens`` of a request until it is released; return whether there is that much."""
        blocks = self.blocks(tokens)
        if self._promised + blocks > self.total_blocks:
            return False
        self._promised += blocks
        self._promise[request] = blocks
        return True

    def grow(self, request: int, tokens: int) -> bool:
        """Take blocks so that a request has room for ``tokens``; return whether there were enough, else take none."""
        short = self.blocks(tokens) - int(self.held_blocks[request])
        if short <= 0:
            return True
        if short > self.free_blocks:
            return False
        taken = self._share(short)
        self.held[request] += taken
        self.held_blocks[request] += short
        self.last_tier[request] = max(tier for tier, count in enumerate(taken) if count)
        self.free -= taken
        self.free_blocks -= short
        self._far_held += short - taken[0]
        self._overwrite()
        return True

    def needing(self, ids: npt.NDArray[np.int64], stored: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return those of ``ids`` that need a block for one token more than the ``stored`` of each."""
        return ids[self.held_blocks[ids] * self.block_tokens <= stored]

    def grow_each(self, ids: npt.NDArray[np.int64]) -> None:
        """Take one block for each of ``ids``, for which there must be room."""
        if not len(ids):
            return
        assert len(ids) <= self.free_blocks, "grow_each needs a free block for every request"
        start = 0
        for tier, count in enumerate(self._share(len(ids))):
            if count:
                chosen = ids[start : start + count]
                self._tier_held[tier][chosen] += 1
                self.last_tier[chosen] = tier
                self.free[tier] -= count
                self._far_held += count if tier else 0
                start += count
        self.held_blocks[ids] += 1
        self.free_blocks -= len(ids)
        self._overwrite()

    def release(self, ids: npt.NDArray[np.int64]) -> None:
        """Give back all that ``ids`` hold, and what was promised to them."""
        given_back = self._given_back(ids)
        self.free += given_back
        self.free_blocks += int(given_back.sum())
        self._far_held -= int(given_back[1:].sum())
        self.held[ids] = 0
        self.held_blocks[ids] = 0
        self._promised -= int(self._promise[ids].sum())
        self._promise[ids] = 0

    def use(self, ids: npt.NDArray[np.int64], stored: npt.NDArray[np.int64]) -> TierUse:
        """Return what one step of ``ids``, which have ``stored`` tokens each, reads where: everything.

        What is missing from a request's last block is missing where that block lies.
        """
        count, tiers = len(ids), len(self.room)
        none = (0,) * tiers
        if not count or self.only_nearest:
            tokens = (sum(stored.tolist()) + count, *none[1:])
            requests = appended = (count, *none[1:])
        else:
            held, last = self.held[ids], self.last_tier[ids]
            each = held * self.block_tokens
            each[np.arange(count), last] -= self.held_blocks[ids] * self.block_tokens - (stored + 1)
            tokens, requests = tuple(each.sum(axis=0).tolist()), tuple((held > 0).sum(axis=0).tolist())
            appended = self.appended(ids)
        return TierUse(tokens=tokens, requests=requests, held=tokens, appended=appended, pages=(), swaps=none[1:])

    def appended(self, ids: npt.NDArray[np.int64]) -> tuple[int, ...]:
        """Return how many of ``ids`` append their next token to each tier."""
        return tuple(np.bincount(self.last_tier[ids], minlength=len(self.room)).tolist())

    def remember(self, request: int, tokens: int) -> None:
        """Leave the first ``tokens`` of a request readable in the blocks that it is about to release.

        They stay so until others take these blocks: those of the request that was remembered first, its last ones
        first.
        """
        self._remembered[request] = tokens // self.block_tokens

    def readable(self, request: int) -> int:
        """Return how many tokens of a request that holds nothing can still be read."""
        return self._remembered.get(request, 0) * self.block_tokens

    def forget(self, request: int) -> None:
        """Remember a request no longer: it holds its blocks again."""
        self._remembered.pop(request, None)

    def _given_back(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the blocks that ``ids`` hold in each tier."""
        return self.held[ids].sum(axis=0)

    def _share(self, blocks: int) -> list[int]:
        """Return how many of ``blocks`` each tier takes."""
        return self._fill.share(self.free.tolist(), self._room, blocks)

    def _overwrite(self) -> None:
        """Drop what is remembered of blocks that have been taken."""
        if not self._remembered:
            return
        over = sum(self._remembered.values()) - self.free_blocks
        for request in list(self._remembered):
            if over <= 0:
                return
            lost = min(over, self._remembered[request])
            self._remembered[request] -= lost
            over -= lost
