"""The event loop: step after step, with requests arriving, being answered, refused or left when time is up.

Time moves from the end of one step to that of the next, or to the next arrival when nothing runs. What can't ever run
is refused when it comes; as the requests that run can always go on, the loop ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sim.serving.batch import StepWork
from sim.serving.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sim.serving.arrivals import Arrivals
    from sim.serving.batch import Batch
    from sim.serving.kv_store import KvStore
    from sim.serving.parameters import ServerParams
    from sim.serving.requests import RequestStates

__all__ = ["RunLog", "StepModel", "run"]


class StepModel(Protocol):
    """Time of a step."""

    def step_s(self, work: StepWork) -> float:
        """Return the seconds that a step takes."""
        ...


@dataclass
class RunLog:
    """What a run did.

    Parameters
    ----------
    steps : int
        Steps.
    end_s : float
        End of the last.
    busy_s : float
        Time in steps.
    refused : list of int
        Requests that need more than the whole store.
    gap_s, gap_counts : list
        Gaps between the tokens of a request, and how often each was met; equal ones may come up again.
    queue_s, queue : list
        Ends of steps, and requests waiting then.
    prompt_tokens, swapped_tokens, preemptions : int
        Tokens of prompts that went through the layers, again if dropped; tokens moved to the host or back.
    """

    steps: int = 0
    end_s: float = 0.0
    busy_s: float = 0.0
    refused: list[int] = field(default_factory=list[int])
    gap_s: list[float] = field(default_factory=list[float])
    gap_counts: list[int] = field(default_factory=list[int])
    queue_s: list[float] = field(default_factory=list[float])
    queue: list[int] = field(default_factory=list[int])
    prompt_tokens: int = 0
    swapped_tokens: int = 0
    preemptions: int = 0


def run(
    params: ServerParams,
    states: RequestStates,
    store: KvStore,
    arrivals: Arrivals,
    model: StepModel,
    *,
    progress: Callable[[RunLog, float, RequestStates], None] | None = None,
    max_s: float = float("inf"),
) -> RunLog:
    """Serve all requests and return what happened; times of each request are left in ``states``.

    Parameters
    ----------
    params : ServerParams
    states : RequestStates
        All requests, none begun.
    store : KvStore
        Empty.
    arrivals : Arrivals
        Gives the numbers of requests in ``states``.
    model : StepModel
        Time of a step.
    progress : callable, optional
        Called after every step with the log, the time and the states.
    max_s : float
        No step begins at or after this time.
    """
    scheduler = Scheduler(params, states, store)
    log = RunLog()
    now_s = 0.0
    while now_s < max_s:
        for request, arrival_s in arrivals.due(now_s):
            states.arrival_s[request] = arrival_s
            if scheduler.can_ever_run(request):
                scheduler.waiting.append(request)
            else:
                log.refused.append(request)
                arrivals.ended(request, now_s)
        batch = scheduler.next_batch()
        log.preemptions += batch.preempted
        if batch.is_empty:
            next_s = arrivals.next_s()
            if next_s is None:
                break
            now_s = max(now_s, next_s)
            continue
        began_s = now_s
        now_s += model.step_s(_work(batch, states, store))
        for chunk in batch.chunks:
            if np.isnan(states.admitted_s[chunk.request]):
                states.admitted_s[chunk.request] = began_s
        given, done = scheduler.apply(batch)
        _give(states, log, given, now_s)
        for request in done:
            arrivals.ended(int(request), now_s)
        log.steps += 1
        log.busy_s += now_s - began_s
        log.end_s = now_s
        log.prompt_tokens += sum(chunk.tokens for chunk in batch.chunks)
        log.swapped_tokens += batch.swapped_tokens
        log.queue_s.append(now_s)
        log.queue.append(len(scheduler.waiting))
        if progress is not None:
            progress(log, now_s, states)
    return log


def _work(batch: Batch, states: RequestStates, store: KvStore) -> StepWork:
    """Return what a batch costs; an unfilled block counts in the tier that holds most of its request."""
    ids = batch.decoding
    held = store.held[ids]
    tokens = held * store.block_tokens
    if len(ids):
        unfilled = tokens.sum(axis=1) - (states.stored[ids] + 1)
        tokens[np.arange(len(ids)), held.argmax(axis=1)] -= unfilled
    return StepWork(
        decoding=len(ids),
        tier_tokens=tuple(tokens.sum(axis=0).tolist()),
        tier_requests=tuple((held > 0).sum(axis=0).tolist()),
        prompt_tokens=sum(chunk.tokens for chunk in batch.chunks),
        prompt_pairs=sum(
            chunk.tokens * chunk.before + chunk.tokens * (chunk.tokens + 1) // 2 for chunk in batch.chunks
        ),
        prompt_context=sum(chunk.before for chunk in batch.chunks),
        ending=len(ids) + sum(chunk.before + chunk.tokens == states.wanted[chunk.request] for chunk in batch.chunks),
        swapped_tokens=batch.swapped_tokens,
    )


def _give(states: RequestStates, log: RunLog, given: npt.NDArray[np.int64], now_s: float) -> None:
    """Note the time of the token that each of ``given`` gets."""
    last = states.last_s[given]
    first = np.isnan(last)
    if first.any():
        states.first_s[given[first]] = now_s
        last = last[~first]
    states.last_s[given] = now_s
    if len(last):
        # Nearly always all of them had their last token at the end of the step before.
        if last.min() == last.max():
            log.gap_s.append(now_s - float(last[0]))
            log.gap_counts.append(len(last))
        else:
            values, counts = np.unique(now_s - last, return_counts=True)
            log.gap_s += values.tolist()
            log.gap_counts += counts.tolist()
