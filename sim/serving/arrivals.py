"""When requests come: at the times of a trace, or in sessions that wait for the answer before they ask again."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.traces import TraceRequest

__all__ = ["Arrivals", "ClosedArrivals", "OpenArrivals"]


class Arrivals(Protocol):
    """Gives requests, by number, when they come."""

    def due(self, now_s: float) -> list[tuple[int, float]]:
        """Return the requests that have come by ``now_s`` and were not given before, and when each came."""
        ...

    def next_s(self) -> float | None:
        """Return when the next request comes; None if none will unless one ends first."""
        ...

    def ended(self, request: int, now_s: float) -> None:
        """Say that a request has ended, answered or refused."""
        ...


class OpenArrivals:
    """Requests come when the trace says, whatever becomes of those before.

    Parameters
    ----------
    requests : sequence of TraceRequest
        In the order of arrival.
    rate_scale : float
        How many times faster they come than in the trace.
    """

    def __init__(self, requests: Sequence[TraceRequest], *, rate_scale: float = 1.0) -> None:
        self._times = [request.arrival_s / rate_scale for request in requests]
        self._next = 0

    def due(self, now_s: float) -> list[tuple[int, float]]:
        """Return the requests that have come by ``now_s`` and were not given before."""
        first = self._next
        while self._next < len(self._times) and self._times[self._next] <= now_s:
            self._next += 1
        return [(number, self._times[number]) for number in range(first, self._next)]

    def next_s(self) -> float | None:
        """Return when the next request comes; None after the last."""
        return self._times[self._next] if self._next < len(self._times) else None

    def ended(self, request: int, now_s: float) -> None:
        """Nothing waits for an end."""


class ClosedArrivals:
    """A number of sessions run at a time; each asks again the recorded gap after its last answer.

    Sessions begin in the order of the trace, the first ones at 0 s, a further one when one has had its last answer.

    Parameters
    ----------
    requests : sequence of TraceRequest
        In the order of arrival; one without a session is a session of its own.
    sessions : int
        Sessions that run at a time.
    """

    def __init__(self, requests: Sequence[TraceRequest], *, sessions: int) -> None:
        calls: dict[str | int, list[int]] = {}
        for number, request in enumerate(requests):
            calls.setdefault(request.session or number, []).append(number)
        self._gaps = [request.gap_s for request in requests]
        self._following: dict[int, int] = {}
        for numbers in calls.values():
            self._following.update(itertools.pairwise(numbers))
        starts = [numbers[0] for numbers in calls.values()]
        self._coming = [(0.0, number) for number in starts[:sessions]]
        heapq.heapify(self._coming)
        self._unstarted = iter(starts[sessions:])

    def due(self, now_s: float) -> list[tuple[int, float]]:
        """Return the requests that have come by ``now_s`` and were not given before."""
        found: list[tuple[int, float]] = []
        while self._coming and self._coming[0][0] <= now_s:
            time_s, number = heapq.heappop(self._coming)
            found.append((number, time_s))
        return found

    def next_s(self) -> float | None:
        """Return when the next request comes; None if none will unless one ends first."""
        return self._coming[0][0] if self._coming else None

    def ended(self, request: int, now_s: float) -> None:
        """Let the session ask again after its gap, or the next session begin."""
        following = self._following.get(request)
        if following is not None:
            heapq.heappush(self._coming, (now_s + self._gaps[following], following))
        elif (start := next(self._unstarted, None)) is not None:
            heapq.heappush(self._coming, (now_s, start))
