"""Promise: of a prompt nothing is computed that is still stored, and nothing is read that has been overwritten."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sim.serving.arrivals import OpenArrivals
from sim.serving.engine import RunLog, run
from sim.serving.kv_store import KvStore
from sim.serving.parameters import ServerParams
from sim.serving.prefixes import NoPrefixes, Prefixes
from sim.serving.requests import RequestStates
from sim.traces import TraceRequest, read_trace
from tests.helpers.data import data_file


class SecondSteps:
    def step_s(self, work: object) -> float:
        return 1.0


def named(arrival_s: float, *blocks: int, outputs: int = 1, tokens: int = 4) -> TraceRequest:
    """Return a request whose prompt is whole blocks of ``tokens``."""
    return TraceRequest(
        line=0, arrival_s=arrival_s, input_tokens=tokens * len(blocks), output_tokens=outputs, blocks=blocks
    )


def call(arrival_s: float, inputs: int, outputs: int, session: str = "a") -> TraceRequest:
    return TraceRequest(line=0, arrival_s=arrival_s, input_tokens=inputs, output_tokens=outputs, session=session)


def serve(
    requests: list[TraceRequest], blocks: int, *, trace_block_tokens: int
) -> tuple[RunLog, RequestStates, KvStore]:
    params = ServerParams(block_tokens=1)
    states, store = RequestStates(requests), KvStore([blocks], block_tokens=1, requests=len(requests))
    prefixes = Prefixes(requests, trace_block_tokens=trace_block_tokens, block_tokens=1)
    log = run(params, states, store, OpenArrivals(requests), SecondSteps(), prefixes=prefixes)
    return log, states, store


def test_named_blocks_are_read_up_to_the_first_that_is_not_stored() -> None:
    requests = [named(0.0, 1, 2, 3), named(10.0, 1, 2, 9), named(20.0, 7, 8, 4), named(30.0, 1, 2, 3)]
    log, _, _ = serve(requests, 1000, trace_block_tokens=4)
    # The second finds 8 of 12, the third none; of the fourth all is stored, but its last token always runs.
    assert log.reused_tokens == 8 + 0 + 11
    assert log.prompt_tokens == 12 + 4 + 12 + 1


def test_a_prompt_is_not_read_before_it_is_stored() -> None:
    log, _, _ = serve([named(0.0, 1, 2), named(0.0, 1, 2)], 1000, trace_block_tokens=4)
    assert log.reused_tokens == 0
    # A second later the first still decodes; what it has stored can be read.
    log, _, _ = serve([named(0.0, 1, 2, outputs=9), named(1.5, 1, 2)], 1000, trace_block_tokens=4)
    assert log.reused_tokens == 7


def test_a_call_finds_what_its_session_was_asked_and_answered() -> None:
    requests = [call(0.0, 10, 5), call(20.0, 20, 3), call(40.0, 8, 1), call(60.0, 30, 1, "b")]
    log, _, _ = serve(requests, 1000, trace_block_tokens=0)
    # 10 + 5 - 1 tokens are stored after the first; the third's prompt is shorter than what is stored.
    assert log.reused_tokens == 14 + 7 + 0
    assert log.prompt_tokens == 10 + 6 + 1 + 30


def test_what_others_have_taken_is_computed_again() -> None:
    # Room for 16: the second request takes 12, so 4 of the first's 8 are left, its first block.
    requests = [named(0.0, 1, 2), named(10.0, 5, 6, 7), named(20.0, 1, 2)]
    log, _, _ = serve(requests, 16, trace_block_tokens=4)
    assert log.reused_tokens == 4
    assert log.prompt_tokens == 8 + 12 + 4
    # With no room left nothing is.
    log, _, _ = serve(requests, 12, trace_block_tokens=4)
    assert log.reused_tokens == 0


def test_nothing_is_known_without_names() -> None:
    requests = [TraceRequest(line=0, arrival_s=0.0, input_tokens=9, output_tokens=1)] * 2
    assert Prefixes(requests, trace_block_tokens=0, block_tokens=1).readable(1) == 0
    assert NoPrefixes().readable(0) == 0


_PROMPTS = st.lists(
    st.tuples(st.floats(0, 30), st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(1, 6)), max_size=12
).map(sorted)


@given(prompts=_PROMPTS, room=st.integers(1, 60))
def test_tokens_are_computed_or_found(prompts: list[tuple[float, list[int], int]], room: int) -> None:
    requests = [named(arrival, *blocks, outputs=outputs) for arrival, blocks, outputs in prompts]
    log, states, store = serve(requests, room, trace_block_tokens=4)
    served = np.setdiff1d(np.arange(len(states)), log.refused)
    assert (states.given[served] == states.output_tokens[served]).all()
    assert store.free.tolist() == [room]
    if not log.preemptions:
        assert log.prompt_tokens + log.reused_tokens == states.input_tokens[served].sum()


def test_mooncake_hits_as_its_users_count() -> None:
    # With room for everything 36.6 % of the trace's blocks have been met before, as published of it.
    trace = read_trace(data_file("traces", "mooncake_conversation.jsonl"))
    prefixes = Prefixes(trace.requests, trace_block_tokens=trace.block_tokens, block_tokens=16)
    found = 0
    for number in range(len(trace.requests)):
        found += prefixes.readable(number) // 512
        prefixes.stored(number)
        prefixes.left(number)
    assert abs(found / sum(len(request.blocks) for request in trace.requests) - 0.366) < 0.005
