"""State of all requests of a run, one array a quantity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sim.traces import TraceRequest

__all__ = ["RequestStates"]


class RequestStates:
    """What every request of a run is and how far it has come.

    Attributes
    ----------
    input_tokens, output_tokens : ndarray of int64, shape (requests,)
        As asked.
    arrival_s : ndarray of float64
        When it came; NaN where it has not yet.
    stored : ndarray of int64
        Tokens whose keys and values are stored.
    wanted : ndarray of int64
        Tokens that must be stored before the next one is given: the prompt, and after a preemption also the answer so
        far. One token is given each time ``stored`` reaches it.
    given : ndarray of int64
        Tokens of the answer so far.
    admitted_s, first_s, last_s : ndarray of float64
        When it first ran, when its first and its latest token came; NaN before.
    preemptions : ndarray of int64
        How often it had to make room.

    Parameters
    ----------
    requests : sequence of TraceRequest
        By the order of which everything is numbered.
    """

    def __init__(self, requests: Sequence[TraceRequest]) -> None:
        count = len(requests)
        self.input_tokens = np.array([request.input_tokens for request in requests], np.int64)
        self.output_tokens = np.array([request.output_tokens for request in requests], np.int64)
        self.arrival_s = np.full(count, np.nan)
        self.stored = np.zeros(count, np.int64)
        self.wanted = self.input_tokens.copy()
        self.given = np.zeros(count, np.int64)
        self.admitted_s = np.full(count, np.nan)
        self.first_s = np.full(count, np.nan)
        self.last_s = np.full(count, np.nan)
        self.preemptions = np.zeros(count, np.int64)

    def __len__(self) -> int:
        return len(self.input_tokens)

    def most_tokens(self, request: int) -> int:
        """Return the tokens that a request stores at its end: the last one given is never stored."""
        return int(self.input_tokens[request] + self.output_tokens[request]) - 1

    def left(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many tokens each of ``ids``, which decode, is still to be given."""
        return self.input_tokens[ids] + self.output_tokens[ids] - 1 - self.stored[ids]

    def settle(self, ids: npt.NDArray[np.int64]) -> None:
        """Bring ``wanted`` and ``given`` of requests that decode up to what they have ``stored``.

        A request that decodes has stored its prompt and all of its answer but the last token, so that ``stored`` alone
        is counted step by step.
        """
        self.wanted[ids] = self.stored[ids]
        self.given[ids] = self.stored[ids] - self.input_tokens[ids] + 1

    def is_done(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of ``ids`` have their whole answer."""
        return self.given[ids] >= self.output_tokens[ids]
