"""Progress of a run on standard error: requests answered, simulated time, time left."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.serving.engine import RunLog
    from sim.serving.requests import RequestStates

__all__ = ["Progress"]

_TERMINAL_S, _FILE_S = 0.5, 10.0


class Progress:
    """Say now and then how far a run has come: on a terminal in one line, else line by line.

    Time left is that of the tokens that are still to be given, at the mean rate so far.

    Parameters
    ----------
    states : RequestStates
    """

    def __init__(self, states: RequestStates) -> None:
        self._terminal = sys.stderr.isatty()
        self._began_s = self._said_s = time.perf_counter()
        self._total = int(states.output_tokens.sum())

    def __call__(self, log: RunLog, now_s: float, states: RequestStates) -> None:
        """Say it if it is time to."""
        clock_s = time.perf_counter()
        if clock_s - self._said_s < (_TERMINAL_S if self._terminal else _FILE_S):
            return
        self._said_s = clock_s
        given = int(states.given.sum())
        done = int((states.given >= states.output_tokens).sum())
        left_s = (clock_s - self._began_s) * (self._total - given) / given if given else float("inf")
        requests = f"{done:,} of {len(states):,} requests, {log.steps:,} steps"
        text = f"{requests}, {now_s:,.0f} s simulated, {left_s:,.0f} s left"
        if self._terminal:
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal's line."""
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
