"""Promise: every request is answered token by token, refused, or left when time is up; times are what a hand counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import ConfigError
from sim.serving.arrivals import ClosedArrivals, OpenArrivals
from sim.serving.engine import run
from sim.serving.kv_store import KvStore
from sim.serving.metrics import latencies_s, percentiles, weighted_percentile
from sim.serving.parameters import ADMISSIONS, PREEMPTIONS, SCHEDULERS, ServerParams
from sim.serving.requests import RequestStates
from sim.traces import TraceRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.serving.batch import StepWork
    from sim.serving.engine import RunLog


@dataclass
class SecondSteps:
    """Every step takes a second; what it was asked is kept."""

    asked: list[StepWork] = field(default_factory=list)

    def step_s(self, work: StepWork) -> float:
        self.asked.append(work)
        return 1.0


def _requests(*lengths: tuple[float, int, int]) -> list[TraceRequest]:
    return [
        TraceRequest(line=number + 2, arrival_s=arrival_s, input_tokens=inputs, output_tokens=outputs)
        for number, (arrival_s, inputs, outputs) in enumerate(lengths)
    ]


def _serve(
    requests: Sequence[TraceRequest], params: ServerParams, blocks: Sequence[int] = (1 << 20,), **options: float
) -> tuple[RequestStates, RunLog, KvStore, list[StepWork]]:
    states, model = RequestStates(requests), SecondSteps()
    store = KvStore(blocks, block_tokens=params.block_tokens, requests=len(requests))
    log = run(params, states, store, OpenArrivals(requests), model, **options)
    return states, log, store, model.asked


def test_prefill_first_counted_by_hand() -> None:
    # Step 1: both prompts of the first moment. Step 2: both decode; the third comes at 1.5. Step 3: its prompt alone.
    # Step 4: two decode, the first ends with its third token; step 5: the others end.
    requests = _requests((0.0, 10, 3), (0.0, 20, 4), (1.5, 5, 2))
    states, log, store, asked = _serve(requests, ServerParams(scheduler="prefill-first"))
    assert states.first_s.tolist() == [1.0, 1.0, 3.0]
    assert states.last_s.tolist() == [4.0, 5.0, 4.0]
    assert log.steps == 5
    assert [work.prompt_tokens for work in asked] == [30, 0, 5, 0, 0]
    assert [work.decoding for work in asked] == [0, 2, 0, 3, 1]
    # Attended: 11 + 21; then 12 + 22 + 6; then 23.
    assert [work.tier_tokens for work in asked] == [(0,), (32,), (0,), (40,), (23,)]
    assert store.free.tolist() == store.room.tolist()


def test_chunked_prefill_counted_by_hand() -> None:
    # Budget 8. Step 1: 8 of 12 prompt tokens. Step 2: the other 4, and 4 of the second's 6. Step 3: the first decodes,
    # the second's last 2. Step 4: both decode. The first has 3 tokens by then, the second 2.
    requests = _requests((0.0, 12, 3), (0.0, 6, 2))
    states, log, _, asked = _serve(requests, ServerParams(token_budget=8))
    assert [work.prompt_tokens for work in asked] == [8, 8, 2, 0]
    assert [work.decoding for work in asked] == [0, 0, 1, 2]
    # Pairs: 8 tokens among themselves 36; 4 behind 8 are 32 + 10, 4 alone 10; 2 behind 4 are 8 + 3.
    assert [work.prompt_pairs for work in asked] == [36, 52, 11, 0]
    assert [work.prompt_context for work in asked] == [(0,), (8,), (4,), (0,)]
    assert [work.ending for work in asked] == [0, 1, 2, 2]
    assert states.first_s.tolist() == [2.0, 3.0]
    assert states.last_s.tolist() == [4.0, 4.0]
    assert log.prompt_tokens == 18


def test_a_prompt_longer_than_the_budget_runs_alone_and_whole() -> None:
    requests = _requests((0.0, 4, 1), (0.0, 100, 1), (0.0, 4, 1))
    _, _, _, asked = _serve(requests, ServerParams(scheduler="prefill-first", token_budget=10))
    assert [work.prompt_tokens for work in asked] == [4, 100, 4]


def test_a_step_decided_ahead_knows_what_came_before_the_one_in_front() -> None:
    # Steps end at 1, 2, ... What comes at 0.5 is met by the step from 1 on; decided ahead, only by that from 2 on. What
    # comes at 9 finds nothing running, and begins at once either way.
    requests = _requests((0.0, 4, 5), (0.5, 4, 2), (9.0, 4, 1))
    at_once, _, _, _ = _serve(requests, ServerParams())
    ahead, _, _, _ = _serve(requests, ServerParams(steps_ahead=1))
    assert at_once.admitted_s.tolist() == [0.0, 1.0, 9.0]
    assert ahead.admitted_s.tolist() == [0.0, 2.0, 9.0]
    assert (ahead.first_s.tolist(), ahead.last_s.tolist()) == ([1.0, 3.0, 10.0], [5.0, 4.0, 10.0])


def test_running_requests_are_limited() -> None:
    requests = _requests(*[(0.0, 1, 3)] * 5)
    _, log, _, asked = _serve(requests, ServerParams(max_running=2))
    assert max(work.decoding + work.prompt_tokens for work in asked) == 2
    # Pairs of requests take 3 steps each.
    assert log.steps == 9


def test_preemption_counted_by_hand() -> None:
    # Blocks of one token, 8 of them. Both prompts of 3 are stored in step 1; each needs 5 at its end. Step 2 leaves 0
    # free, in step 3 the second makes room: the first ends alone. Its 4 dropped tokens and the third are computed
    # again, less the 3 that nobody has written over.
    requests = _requests((0.0, 3, 3), (0.0, 3, 3))
    params = ServerParams(block_tokens=1)
    states, log, store, asked = _serve(requests, params, (8,))
    assert log.preemptions == 1
    assert states.preemptions.tolist() == [0, 1]
    assert states.last_s[0] == 3.0
    assert [work.decoding for work in asked[:3]] == [0, 2, 1]
    # Stored were 4 of the 5 that it wants; the first request's fifth token took one of the blocks.
    assert asked[3].prompt_tokens == 2
    assert asked[3].prompt_context == (3,)
    assert states.last_s[1] == 4.0
    assert store.free.tolist() == [8]


def test_swapped_requests_come_back_without_computing_again() -> None:
    requests = _requests((0.0, 3, 3), (0.0, 3, 3))
    states, log, _, asked = _serve(requests, ServerParams(block_tokens=1, preemption="swap"), (8,))
    assert log.preemptions == 1
    assert log.prompt_tokens == 6
    # Four tokens go out in the third step and come back in the one behind it.
    assert [work.swapped_tokens for work in asked] == [0, 0, 4, 4, 0]
    assert states.last_s.tolist() == [3.0, 5.0]


def test_reserved_room_makes_the_second_wait_and_nobody_yield() -> None:
    requests = _requests((0.0, 3, 3), (0.0, 3, 3))
    states, log, _, _ = _serve(requests, ServerParams(block_tokens=1, admission="reserved"), (8,))
    assert log.preemptions == 0
    assert states.admitted_s.tolist() == [0.0, 3.0]


def test_what_never_fits_is_refused_and_counted() -> None:
    # 5 + 4 - 1 tokens fit 8 blocks of one; one more does not.
    requests = _requests((0.0, 5, 4), (0.0, 5, 5), (0.0, 9, 1))
    states, log, _, _ = _serve(requests, ServerParams(block_tokens=1), (8,))
    assert log.refused == [1, 2]
    assert states.given.tolist() == [4, 0, 0]


def test_tiers_fill_from_the_nearest() -> None:
    requests = _requests((0.0, 6, 3))
    _, _, _, asked = _serve(requests, ServerParams(block_tokens=1), (4, 1, 9))
    assert [work.tier_tokens for work in asked] == [(0, 0, 0), (4, 1, 2), (4, 1, 3)]
    assert [work.tier_requests for work in asked] == [(0, 0, 0), (1, 1, 1), (1, 1, 1)]


def test_nothing_to_do_ends_at_once() -> None:
    states, log, _, asked = _serve([], ServerParams())
    assert (len(states), log.steps, log.end_s, asked) == (0, 0, 0.0, [])


def test_time_up_leaves_requests_unfinished() -> None:
    states, log, _, _ = _serve(_requests((0.0, 1, 100)), ServerParams(), max_s=5.0)
    assert log.end_s == 5.0
    assert states.given.tolist() == [5]


def test_idle_time_is_skipped_and_not_busy() -> None:
    _, log, _, _ = _serve(_requests((0.0, 1, 1), (100.0, 1, 1)), ServerParams())
    assert (log.end_s, log.busy_s, log.steps) == (101.0, 2.0, 2)


def test_closed_sessions_wait_for_their_answers() -> None:
    # a: two calls with a gap of 10 s; b and c one each; two sessions at a time.
    requests = [
        TraceRequest(line=2, arrival_s=0.0, input_tokens=1, output_tokens=2, session="a"),
        TraceRequest(line=3, arrival_s=1.0, input_tokens=1, output_tokens=1, session="b"),
        TraceRequest(line=4, arrival_s=2.0, input_tokens=1, output_tokens=1, session="a", gap_s=10.0),
        TraceRequest(line=5, arrival_s=3.0, input_tokens=1, output_tokens=1),
    ]
    states = RequestStates(requests)
    store = KvStore((100,), block_tokens=1, requests=4)
    run(ServerParams(), states, store, ClosedArrivals(requests, sessions=2), SecondSteps())
    # b ends at 1 s, and the fourth begins; a ends at 2 s and asks again at 12 s.
    assert states.arrival_s.tolist() == [0.0, 0.0, 12.0, 1.0]
    assert states.last_s.tolist() == [2.0, 1.0, 13.0, 2.0]


def test_a_faster_rate_divides_arrivals() -> None:
    arrivals = OpenArrivals(_requests((0.0, 1, 1), (3.0, 1, 1)), rate_scale=2.0)
    assert arrivals.due(0.0) == [(0, 0.0)]
    assert arrivals.next_s() == 1.5


_LENGTHS = st.lists(st.tuples(st.floats(0, 20), st.integers(1, 40), st.integers(1, 12)), min_size=0, max_size=12).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)


@given(
    lengths=_LENGTHS,
    scheduler=st.sampled_from(sorted(SCHEDULERS)),
    admission=st.sampled_from(sorted(ADMISSIONS)),
    preemption=st.sampled_from(sorted(PREEMPTIONS)),
    budget=st.integers(1, 50),
    running=st.integers(1, 6),
    block=st.integers(1, 5),
    room=st.lists(st.integers(0, 20), min_size=1, max_size=3),
)
def test_tokens_and_blocks_are_conserved(
    lengths: list[tuple[float, int, int]],
    scheduler: str,
    admission: str,
    preemption: str,
    budget: int,
    running: int,
    block: int,
    room: list[int],
) -> None:
    params = ServerParams(
        scheduler=scheduler,
        admission=admission,
        preemption=preemption,
        token_budget=budget,
        max_running=running,
        block_tokens=block,
    )
    states, log, store, asked = _serve(_requests(*lengths), params, room)
    served = np.setdiff1d(np.arange(len(states)), log.refused)
    assert (states.given[served] == states.output_tokens[served]).all()
    assert not states.given[log.refused].any()
    for request in log.refused:
        most = lengths[request][1] + lengths[request][2] - 1
        assert -(-most // block) > sum(room)
    assert store.free.tolist() == room
    assert not store.held.any()
    # One token for each that is counted as ending, and one gap for each but the first of a request.
    assert sum(work.ending for work in asked) == states.given.sum()
    assert sum(log.gap_counts) == (states.given[served] - 1).sum()
    gaps = np.dot(log.gap_s, log.gap_counts) if log.gap_s else 0.0
    assert gaps == pytest.approx((states.last_s - states.first_s)[served].sum())
    for work in asked:
        assert sum(work.prompt_appended) == work.prompt_tokens
        assert sum(work.decode_appended) == work.decoding
    assert log.prompt_tokens >= states.input_tokens[served].sum()
    if scheduler == "chunked":
        assert all(work.tokens <= budget for work in asked)
    times = latencies_s(states, served)
    assert all((values >= 0).all() for values in times.values())


@given(st.lists(st.tuples(st.floats(0, 1e3), st.integers(1, 9)), min_size=1, max_size=20), st.floats(0, 100))
def test_weighted_percentiles_are_those_of_all_values_written_out(
    rows: list[tuple[float, int]], percent: float
) -> None:
    values, counts = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    (found,) = weighted_percentile(values, counts, [percent])
    assert found == pytest.approx(np.percentile(np.repeat(values, counts), percent), rel=1e-12, abs=1e-12)


def test_percentiles_of_nothing_are_none() -> None:
    assert percentiles(np.empty(0)) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scheduler": "chunk"}, "scheduler must be a known name"),
        ({"admission": ""}, "admission must be a known name"),
        ({"preemption": "drop"}, "preemption must be a known name"),
        ({"token_budget": 0}, "token_budget must be"),
        ({"max_running": -1}, "max_running must be"),
        ({"block_tokens": 2.5}, "block_tokens must be"),
        ({"steps_ahead": 2}, "steps_ahead must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ServerParams(**changes)  # type: ignore[arg-type]
