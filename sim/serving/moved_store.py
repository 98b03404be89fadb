"""A store whose tokens change their memory: what both fidelities of it have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from sim.serving.kv_store import KvStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.serving.fill import FillRule
    from sim.tiering.plan import TierPlan

__all__ = ["MovedStore"]


class MovedStore(KvStore):
    """Blocks of one token each, swapped between memories by a policy.

    Parameters
    ----------
    tier_tokens : sequence of int
        Room of each memory.
    requests : int
        Requests there can be.
    fill : FillRule
        Where new tokens go.
    plan : TierPlan
        What reads and moves them.
    page_tokens : sequence of int
        Tokens of a page of one KV head, of memories that are read by pages; 0 of others.
    groups : sequence of int
        Bank groups of a channel of each memory (:mod:`sim.tiering.groups`).
    """

    def __init__(
        self,
        tier_tokens: Sequence[int],
        *,
        requests: int,
        fill: FillRule,
        plan: TierPlan,
        page_tokens: Sequence[int],
        groups: Sequence[int],
    ) -> None:
        super().__init__(tier_tokens, block_tokens=1, requests=requests, fill=fill)
        self._plan, self._page_tokens = plan, page_tokens
        self._groups = np.array(groups, np.int64)
        self._steps = 0
        self.prepare(requests)

    @abstractmethod
    def prepare(self, requests: int) -> None:
        """Make what is known of so many requests, before any of them begins."""
