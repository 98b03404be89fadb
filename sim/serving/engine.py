"""The event loop: step after step, with requests arriving, being answered, refused or left when time is up.

Time moves from the end of one step to that of the next, or to the next arrival when nothing runs. What can't ever run
is refused when it comes; as the requests that run can always go on, the loop ends. Where steps are decided ahead, a
step knows of requests that came before the step in front of it began, or while nothing ran.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sim.placement import apportion
from sim.serving.batch import StepWork
from sim.serving.prefixes import NoPrefixes
from sim.serving.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from sim.serving.arrivals import Arrivals
    from sim.serving.batch import Batch, Chunk
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
    works : list of StepWork
        What each step did.
    occupied : list of tuple of int
        Blocks that were held in each tier at its end.
    prompt_tokens, reused_tokens, swapped_tokens, preemptions : int
        Tokens of prompts that went through the layers, again if dropped; tokens that were found stored; tokens moved
        to the host or back.
    """

    steps: int = 0
    end_s: float = 0.0
    busy_s: float = 0.0
    refused: list[int] = field(default_factory=list[int])
    gap_s: list[float] = field(default_factory=list[float])
    gap_counts: list[int] = field(default_factory=list[int])
    queue_s: list[float] = field(default_factory=list[float])
    queue: list[int] = field(default_factory=list[int])
    works: list[StepWork] = field(default_factory=list[StepWork])
    occupied: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    prompt_tokens: int = 0
    reused_tokens: int = 0
    swapped_tokens: int = 0
    preemptions: int = 0


def run(
    params: ServerParams,
    states: RequestStates,
    store: KvStore,
    arrivals: Arrivals,
    model: StepModel,
    *,
    prefixes: NoPrefixes | None = None,
    progress: Callable[[RunLog, float, RequestStates], None] | None = None,
    max_s: float = float("inf"),
    first_measured: int = 0,
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
    prefixes : NoPrefixes, optional
        What of a prompt needs no computing; nothing by default.
    progress : callable, optional
        Called after every step with the log, the time and the states.
    max_s : float
        No step begins at or after this time.
    first_measured : int
        Gaps of requests before this one are not noted: the server was still filling.
    """
    scheduler = Scheduler(params, states, store, prefixes or NoPrefixes())
    log = RunLog()
    now_s = known_s = 0.0
    next_s = arrivals.next_s()
    while now_s < max_s:
        if next_s is not None and next_s <= known_s:
            for request, arrival_s in arrivals.due(known_s):
                states.arrival_s[request] = arrival_s
                if scheduler.can_ever_run(request):
                    scheduler.waiting.append(request)
                else:
                    log.refused.append(request)
                    arrivals.ended(request, now_s)
            next_s = arrivals.next_s()
        batch = scheduler.next_batch()
        log.preemptions += batch.preempted
        if batch.is_empty:
            if next_s is None:
                break
            now_s = known_s = max(now_s, next_s)
            continue
        began_s = now_s
        work = _work(batch, states, store)
        now_s += model.step_s(work)
        known_s = began_s if params.steps_ahead else now_s
        for chunk in batch.chunks:
            if np.isnan(states.admitted_s[chunk.request]):
                states.admitted_s[chunk.request] = began_s
        given, done = scheduler.apply(batch)
        _give(states, log, given, began_s, now_s, first_measured)
        if len(done):
            for request in done.tolist():
                arrivals.ended(request, now_s)
            next_s = arrivals.next_s()
        log.steps += 1
        log.busy_s += now_s - began_s
        log.end_s = now_s
        log.prompt_tokens += work.prompt_tokens
        log.reused_tokens += batch.reused_tokens
        log.swapped_tokens += batch.swapped_tokens
        log.queue_s.append(now_s)
        log.queue.append(len(scheduler.waiting))
        log.works.append(work)
        log.occupied.append(tuple((store.room - store.free).tolist()))
        if progress is not None:
            progress(log, now_s, states)
    states.settle(scheduler.decoding)
    return log


def _work(batch: Batch, states: RequestStates, store: KvStore) -> StepWork:
    """Return what a batch costs."""
    ids, chunks = batch.decoding, batch.chunks
    use = store.use(ids, states.stored[ids])
    context = written = (0,) * len(store.room)
    tokens = pairs = begun = 0
    if chunks:
        context, written = _prompts(chunks, store)
        tokens = sum(chunk.tokens for chunk in chunks)
        pairs = sum(chunk.tokens * chunk.before + chunk.tokens * (chunk.tokens + 1) // 2 for chunk in chunks)
        begun = sum(bool(chunk.before + chunk.tokens == states.wanted[chunk.request]) for chunk in chunks)
    return StepWork(
        decoding=len(ids),
        tier_tokens=use.tokens,
        tier_requests=use.requests,
        prompt_requests=len(chunks),
        prompt_tokens=tokens,
        prompt_pairs=pairs,
        prompt_context=context,
        decode_appended=use.appended,
        prompt_appended=written,
        ending=len(ids) + begun,
        swapped_tokens=batch.swapped_tokens,
        tier_held=use.held,
        tier_pages=use.pages,
        swaps=use.swaps,
        tier_fullest=use.fullest,
        prompt_parts=tuple(chunk.tokens for chunk in chunks),
    )


def _prompts(chunks: Sequence[Chunk], store: KvStore) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return, by tier, stored tokens that parts of prompts read, and tokens that they append.

    What is appended goes to the tiers of the blocks that the part took, in proportion; what was stored before lies in
    the blocks that the request had.
    """
    context, written = np.zeros(len(store.room), np.int64), np.zeros(len(store.room), np.int64)
    for chunk in chunks:
        taken = np.array(chunk.taken)
        if taken.any():
            written += apportion(chunk.tokens, taken.tolist())
        else:
            written[store.last_tier[chunk.request]] += chunk.tokens
        if chunk.before:
            # Who reads again what nobody has written over has just taken all its blocks.
            had = store.held[chunk.request] - taken
            context += apportion(chunk.before, (had if had.any() else taken).tolist())
    return tuple(context.tolist()), tuple(written.tolist())


def _give(
    states: RequestStates,
    log: RunLog,
    given: npt.NDArray[np.int64],
    began_s: float,
    now_s: float,
    first_measured: int,
) -> None:
    """Note the time of the token that each of ``given`` gets."""
    last = states.last_s[given]
    states.last_s[given] = now_s
    # Nearly always all of them had their last token when the step began.
    if not first_measured and len(last) and last.tolist().count(began_s) == len(last):
        log.gap_s.append(now_s - began_s)
        log.gap_counts.append(len(last))
        return
    first = np.isnan(last)
    states.first_s[given[first]] = now_s
    last = last[~first & (given >= first_measured)]
    if len(last):
        values, counts = np.unique(now_s - last, return_counts=True)
        log.gap_s += values.tolist()
        log.gap_counts += counts.tolist()
