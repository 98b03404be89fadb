"""Which requests run in the next step: continuous batching, first come, first served.

``prefill-first``
    Waiting prompts run whole before anything is decoded, as many as the token budget and the KV store take.
``chunked``
    Every step decodes all it can, and fills what its token budget leaves with parts of prompts.

A request that can't get room for its next token makes the one that began last give up its own: that one's keys and
values are dropped, or moved to the host's memory and back, and it goes on before any other waiting request runs. What
of dropped ones nobody has written over by then is read again, the rest computed again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sim.serving.batch import Batch, Chunk

if TYPE_CHECKING:
    from sim.serving.kv_store import KvStore
    from sim.serving.parameters import ServerParams
    from sim.serving.prefixes import NoPrefixes
    from sim.serving.requests import RequestStates

__all__ = ["Scheduler"]

_NOBODY: npt.NDArray[np.int64] = np.empty(0, np.int64)


class Scheduler:
    """Decide step after step.

    Parameters
    ----------
    params : ServerParams
    states : RequestStates
        Read; only ``preemptions`` and what a preemption undoes are written.
    store : KvStore
        Blocks are taken here for what a step stores.
    prefixes : NoPrefixes
        What of a prompt needs no computing.

    Attributes
    ----------
    waiting : deque of int
        Requests that have come and do not run, in the order in which they will.
    decoding : ndarray of int64
        Running requests that give a token a step, in the order in which they began.
    prefilling : deque of int
        Running requests whose prompts are not stored yet.
    """

    def __init__(self, params: ServerParams, states: RequestStates, store: KvStore, prefixes: NoPrefixes) -> None:
        self.params = params
        self.waiting: deque[int] = deque()
        self.decoding: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.prefilling: deque[int] = deque()
        self._states = states
        self._store = store
        self._prefixes = prefixes
        self._swapped: dict[int, int] = {}
        self._steps_to_end = 0

    @property
    def running(self) -> int:
        """Requests that have begun and not ended, and are not waiting for room."""
        return len(self.decoding) + len(self.prefilling)

    def can_ever_run(self, request: int) -> bool:
        """Return whether an empty store has room for all that a request stores."""
        return self._store.blocks(self._states.most_tokens(request)) <= self._store.total_blocks

    def next_batch(self) -> Batch:
        """Return what runs next; empty only if nothing can."""
        batch = self._chosen()
        self._prefixes.overwritten(self._store.unread_blocks * self._store.block_tokens)
        return batch

    def _chosen(self) -> Batch:
        """Return what runs next."""
        batch = Batch()
        if self.params.scheduler == "prefill-first":
            self._admit_whole(batch)
            if not batch.chunks:
                self._decode(batch, self.running)
            return batch
        self._decode(batch, self.params.token_budget)
        left = self.params.token_budget - len(batch.decoding)
        left = self._go_on(batch, left)
        if not batch.preempted:
            # Who has just made room would only ask for it again.
            self._admit_parts(batch, left)
        return batch

    def apply(self, batch: Batch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Account for a batch that has run; return the requests that were given a token, and those that are done."""
        states = self._states
        states.stored[batch.decoding] += 1
        ready: list[int] = []
        for chunk in batch.chunks:
            states.stored[chunk.request] += chunk.tokens
            if states.stored[chunk.request] == states.wanted[chunk.request]:
                ready.append(chunk.request)
        given = batch.decoding
        if ready:
            fresh = np.array(ready, np.int64)
            given = np.concatenate([given, fresh])
            states.given[fresh] += 1
            for request in ready:
                self._prefixes.stored(request)
            begun = set(ready)
            self.prefilling = deque(request for request in self.prefilling if request not in begun)
            self.decoding = np.concatenate([self.decoding, fresh])
            self._steps_to_end = 0
        # A step gives each at most one token, so that nobody ends before the one with the fewest left could.
        self._steps_to_end -= 1
        done = _NOBODY
        if self._steps_to_end <= 0 and len(self.decoding):
            left = states.left(self.decoding)
            self._steps_to_end = int(left.min())
            if not self._steps_to_end:
                done, self.decoding = self.decoding[left == 0], self.decoding[left > 0]
        if len(done):
            states.settle(done)
            self._store.release(done)
            for request in done.tolist():
                self._prefixes.left(request)
        return given, done

    def _decode(self, batch: Batch, budget: int) -> None:
        """Put decoding requests into a batch, and make room for the token that each stores."""
        chosen = self.decoding[:budget]
        if not len(chosen):
            return
        while True:
            needing = self._store.needing(chosen, self._states.stored[chosen])
            if len(needing) <= self._store.free_blocks:
                break
            self._preempt(batch)
            chosen = self.decoding[:budget]
        self._store.grow_each(needing)
        batch.decoding = chosen

    def _preempt(self, batch: Batch) -> None:
        """Make the request that began last give up its room."""
        if self.prefilling:
            request = self.prefilling.pop()
        else:
            request = int(self.decoding[-1])
            self._states.settle(self.decoding[-1:])
            self.decoding = self.decoding[:-1]
            self._prefixes.left(request)
        states = self._states
        states.preemptions[request] += 1
        batch.preempted += 1
        stored = int(states.stored[request])
        if self.params.preemption == "swap" and stored:
            self._swapped[request] = stored
            batch.swapped_tokens += stored
        else:
            self._store.remember(request, stored)
            states.wanted[request] = states.input_tokens[request] + states.given[request]
        self._store.release(np.array([request]))
        states.stored[request] = 0
        self.waiting.appendleft(request)

    def _go_on(self, batch: Batch, budget: int) -> int:
        """Put further parts of prompts into a batch, the last to begin making room; return what the budget has left."""
        place = 0
        while budget > 0 and place < len(self.prefilling):
            taken = self._part(batch, self.prefilling[place], budget)
            if taken:
                budget -= taken
                place += 1
            else:
                self._preempt(batch)
        return budget

    def _admit_parts(self, batch: Batch, budget: int) -> None:
        """Let waiting requests begin with as much of their prompts as the budget takes."""
        while self.waiting and budget > 0 and self.running < self.params.max_running:
            request = self.waiting[0]
            if request in self._swapped:
                if not self._bring_back(batch, request):
                    return
                budget -= 1
                continue
            taken = self._begin(batch, request, budget)
            if not taken:
                return
            budget -= taken

    def _admit_whole(self, batch: Batch) -> None:
        """Let waiting requests begin with their whole prompts."""
        budget = self.params.token_budget
        while self.waiting and self.running < self.params.max_running:
            request = self.waiting[0]
            if request in self._swapped:
                if not self._bring_back(batch, request):
                    return
                continue
            wanted = int(self._states.wanted[request])
            # With less room left than a block for each that decodes, the next step would send somebody back.
            spare = self._store.free_blocks - self._store.blocks(wanted) >= len(self.decoding)
            if (wanted > budget and batch.chunks) or not spare:
                return
            taken = self._begin(batch, request, wanted)
            if not taken:
                return
            budget -= taken

    def _begin(self, batch: Batch, request: int, budget: int) -> int:
        """Let the first of the waiting begin, if there is room; return the tokens of its prompt that run."""
        states, store = self._states, self._store
        if not self._may_begin(request):
            return 0
        # The last token always runs: its result is what is waited for.
        known = max(store.readable(request), self._prefixes.readable(request))
        states.stored[request] = min(known, int(states.wanted[request]) - 1)
        taken = self._part(batch, request, budget)
        if taken:
            batch.reused_tokens += int(states.stored[request])
            store.forget(request)
            self.prefilling.append(self.waiting.popleft())
        else:
            states.stored[request] = 0
            store.release(np.array([request]))
        return taken

    def _may_begin(self, request: int) -> bool:
        """Return whether admission lets a request begin; what it was promised is kept for it."""
        return self.params.admission != "reserved" or self._store.promise(request, self._states.most_tokens(request))

    def _part(self, batch: Batch, request: int, budget: int) -> int:
        """Put a part of a prompt into a batch, if there is room; return its tokens."""
        before = int(self._states.stored[request])
        tokens = min(int(self._states.wanted[request]) - before, budget)
        held = self._store.held[request].copy()
        if not self._store.grow(request, before + tokens):
            return 0
        batch.chunks.append(Chunk(request, tokens, before, tuple((self._store.held[request] - held).tolist())))
        return tokens

    def _bring_back(self, batch: Batch, request: int) -> bool:
        """Bring the keys and values of a waiting request back from the host; return whether there is room."""
        stored = self._swapped[request]
        if not self._may_begin(request) or not self._store.grow(request, stored + 1):
            self._store.release(np.array([request]))
            return False
        del self._swapped[request]
        batch.swapped_tokens += stored
        self._states.stored[request] = stored
        self.waiting.popleft()
        if stored < self._states.wanted[request]:
            self.prefilling.append(request)
        else:
            self.decoding = np.concatenate([self.decoding, np.array([request])])
            self._steps_to_end = 0
            self._prefixes.stored(request)
        return True
