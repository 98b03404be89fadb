"""Prefixes of prompts whose keys and values are still stored: they are read, not computed again.

A prompt's beginning is known by the names of its blocks where the trace has them, else by its session: a call repeats
what the one before was asked and answered, as far as its prompt goes. What a request has stored can be read from when
its prompt is done until, after its end, other requests have taken the blocks: those left longest ago go first, of one
request the last ones. Requests that run at once hold a copy each; that is more room than sharing would take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.traces import TraceRequest

__all__ = ["NoPrefixes", "Prefixes"]

_Name = tuple[str, int]


class NoPrefixes:
    """Nothing is known of prompts: each is computed whole."""

    def readable(self, request: int) -> int:
        """Return 0."""
        del request
        return 0

    def stored(self, request: int) -> None:
        """Nothing is kept."""

    def left(self, request: int) -> None:
        """Nothing is kept."""

    def overwritten(self, free_tokens: int) -> None:
        """Nothing is kept."""


class Prefixes(NoPrefixes):
    """What can be read of the prompts to come.

    Parameters
    ----------
    requests : sequence of TraceRequest
    trace_block_tokens : int
        Tokens of a named block; 0 where blocks have no names.
    block_tokens : int
        Tokens of a block of the store: sessions are kept in whole ones.
    """

    def __init__(self, requests: Sequence[TraceRequest], *, trace_block_tokens: int, block_tokens: int) -> None:
        self._requests = requests
        self._tokens = trace_block_tokens or block_tokens
        self._named = bool(trace_block_tokens)
        self._users: dict[_Name, int] = {}
        self._idle: dict[_Name, None] = {}

    def _asked(self, request: int) -> list[_Name]:
        """Return the names of a prompt's whole blocks."""
        entry = self._requests[request]
        whole = entry.input_tokens // self._tokens
        if self._named:
            return [("", name) for name in entry.blocks[:whole]]
        return [(entry.session, number) for number in range(whole)] if entry.session else []

    def _kept(self, request: int) -> list[_Name]:
        """Return the names of what a request stores: its prompt, and in a session its answer as well."""
        entry = self._requests[request]
        if self._named or not entry.session:
            return self._asked(request)
        whole = (entry.input_tokens + entry.output_tokens - 1) // self._tokens
        return [(entry.session, number) for number in range(whole)]

    def readable(self, request: int) -> int:
        """Return how many tokens of a prompt, from its first, are stored somewhere."""
        count = 0
        for name in self._asked(request):
            if name not in self._users and name not in self._idle:
                break
            count += 1
        return count * self._tokens

    def stored(self, request: int) -> None:
        """Say that a request's prompt is stored."""
        for name in self._asked(request):
            self._users[name] = self._users.get(name, 0) + 1
            self._idle.pop(name, None)

    def left(self, request: int) -> None:
        """Say that a request whose prompt was stored has given its blocks back."""
        for name in self._asked(request):
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
        # The first blocks go last: without them the others are of no use.
        for name in reversed(self._kept(request)):
            if name not in self._users:
                self._idle.pop(name, None)
                self._idle[name] = None

    def overwritten(self, free_tokens: int) -> None:
        """Say how many tokens of room nobody holds: no more can still be read there."""
        while len(self._idle) * self._tokens > free_tokens:
            del self._idle[next(iter(self._idle))]
