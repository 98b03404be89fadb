"""Promise: a trace is read by its content, whatever its oddities; every row is a request or counted with its reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import ConfigError
from sim.traces import read_trace
from sim.traces.formats import FORMATS
from sim.traces.rows import split_rows
from tests.helpers.data import data_file

if TYPE_CHECKING:
    from pathlib import Path

    from sim.traces import Trace

# Each text holds the same two requests, (7, 3) at the first moment and (9, 1) 1.5 s later, in that order.
TEXTS = {
    "azure": "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:17:03.9799600,7,3\n2023-11-16 18:17:05.4799600,9,1\n",
    "mooncake": '{"timestamp": 1000, "input_length": 7, "output_length": 3, "hash_ids": [4]}\n'
    '{"timestamp": 2500, "input_length": 9, "output_length": 1, "hash_ids": [4, 5]}\n',
    "burstgpt": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,7,3,10,Conversation log\n6.5,GPT-4,9,1,10,API log\n",
    "vidur": "arrived_at,num_prefill_tokens,num_decode_tokens\n0.25,7,3\n1.75,9,1\n",
    "llmservingsim": "output_toks\tarrival_time_ns\tinput_toks\n3\t10\t7\n1\t1500000010\t9\n",
    "sessions": "session_id,span_index,start_s,duration_ms,input_tokens,output_tokens,model\n"
    "a,0,100.5,1000,7,3,m\na,1,102.0,10.0,9,1,m\n",
    "spaced-sessions": "session_id,turn_index,input_tokens,output_tokens,request_arrival_delta_s\n"
    "a,0,7,3,\na,1,9,1,1.5\n",
}


def _read(folder: Path, text: str | bytes) -> Trace:
    path = folder / "trace"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(path)


def _lengths(trace: Trace) -> list[tuple[int, int]]:
    return [(request.input_tokens, request.output_tokens) for request in trace.requests]


def test_every_format_has_a_text_here() -> None:
    assert set(TEXTS) == {form.name for form in FORMATS}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("blank", [False, True])
def test_line_ends_marks_and_blank_lines_change_nothing(
    tmp_path: Path, name: str, ends: str, last: bool, mark: bytes, blank: bool
) -> None:
    lines = (
        TEXTS[name].replace("request_arrival_delta_s\na,0,7,3,\n", "request_arrival_delta_s\na,0,7,3,0\n").splitlines()
    )
    if blank:
        lines = ["", *(part for line in lines for part in (line, "  "))]
    trace = _read(tmp_path, mark + (ends.join(lines) + (ends if last else "")).encode())
    assert trace.format == name
    assert _lengths(trace) == [(7, 3), (9, 1)]
    assert [request.arrival_s for request in trace.requests] == [0.0, 1.5]
    assert not trace.skipped
    assert trace.has_arrivals


def test_columns_may_come_in_any_order_with_others_among_them(tmp_path: Path) -> None:
    text = "note, GeneratedTokens ,TIMESTAMP,,contexttokens\nx,3,2023-11-16T18:17:03Z,,7,more\n"
    assert _lengths(_read(tmp_path, text)) == [(7, 3)]


def test_objects_may_differ_in_their_keys(tmp_path: Path) -> None:
    rows = [{"input_toks": 7, "output_toks": 3, "arrival_time_ns": 0, "more": 1}, {"output_toks": 1, "input_toks": 9}]
    trace = _read(tmp_path, "\n".join(map(json.dumps, rows)))
    assert _lengths(trace) == [(7, 3), (9, 1)]


def test_without_arrivals_all_requests_come_at_once(tmp_path: Path) -> None:
    trace = _read(tmp_path, "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n7,3,10,2.3\n9,1,10,9\n")
    assert trace.format == "vidur"
    assert not trace.has_arrivals
    assert [request.arrival_s for request in trace.requests] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2023-11-16 18:17:04,0,3", "no input tokens"),
        ("2023-11-16 18:17:04,7,0", "no output tokens: a request that failed"),
        ("2023-11-16 18:17:04,7", "fewer than the header's 3 columns"),
        ("2023-11-16 18:17:04,,3", "no contexttokens"),
        ("2023-11-16 18:17:04,-7,3", "contexttokens is negative"),
        ("2023-11-16 18:17:04,7.5,3", "contexttokens is not a whole number"),
        ("2023-11-16 18:17:04,inf,3", "contexttokens is not a number"),
        ("2023-11-16 18:17:04,nan,3", "contexttokens is not a number"),
        ("2023-11-16 18:17:04,1e999999999,3", "contexttokens has more than ten digits"),
        ("2023-11-16 18:17:04,seven,3", "contexttokens is not a number"),
        (",7,3", "no timestamp"),
        ("2023-13-16 18:17:04,7,3", "timestamp is not a date and time"),
        ("yesterday,7,3", "timestamp is not a date and time"),
    ],
)
def test_a_row_that_is_no_request_is_kept_with_its_line_and_reason(tmp_path: Path, row: str, reason: str) -> None:
    text = f"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,7,3\n{row}\n2023-11-16 18:17:05,9,1\n"
    trace = _read(tmp_path, text)
    assert _lengths(trace) == [(7, 3), (9, 1)]
    assert [(line.line, line.reason) for line in trace.skipped] == [(3, reason)]
    assert trace.skip_reasons() == {reason: 1}
    assert trace.rows == 3


@pytest.mark.parametrize(
    "row", ["[1, 2]", "7", "{", '{"timestamp": 1}', '{"timestamp": true, "input_length": 1}', "null"]
)
def test_an_object_that_is_no_request_is_counted(tmp_path: Path, row: str) -> None:
    trace = _read(tmp_path, TEXTS["mooncake"] + row)
    assert _lengths(trace) == [(7, 3), (9, 1)]
    assert [line.line for line in trace.skipped] == [3]


def test_block_names_are_kept_and_must_be_whole_numbers(tmp_path: Path) -> None:
    bad = '{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": ["x"]}\n'
    trace = _read(tmp_path, TEXTS["mooncake"] + bad)
    assert [request.blocks for request in trace.requests] == [(4,), (4, 5)]
    assert trace.block_tokens == 512
    assert trace.skip_reasons() == {"hash_ids is not a list of whole numbers": 1}


def test_rows_are_put_in_time_and_those_of_one_moment_stay_in_order(tmp_path: Path) -> None:
    text = "arrived_at,num_prefill_tokens,num_decode_tokens\n3,1,1\n1,2,1\n3,3,1\n1,4,1\n"
    trace = _read(tmp_path, text)
    assert [request.input_tokens for request in trace.requests] == [2, 4, 1, 3]
    assert [request.arrival_s for request in trace.requests] == [0.0, 0.0, 2.0, 2.0]
    assert trace.oddities == {"rows out of order": 2, "arrivals of one moment": 2}


def test_all_digits_of_a_time_count(tmp_path: Path) -> None:
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-31 23:59:59.9999999,1,1\n2024-01-01 00:00:00.0000001,1,1\n"
    assert _read(tmp_path, text).requests[1].arrival_s == 2e-7


def test_a_zone_counts(tmp_path: Path) -> None:
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00+00:00,1,1\n2024-05-10 01:00:01.5+01:00,1,1\n"
    assert _read(tmp_path, text).requests[1].arrival_s == 1.5


def test_gaps_of_a_session_run_from_the_end_of_the_call_before(tmp_path: Path) -> None:
    # a: 0 to 1 s, next at 3.5; then a failed call; then one that begins before the last has ended.
    text = (
        "session_id,start_s,duration_ms,input_tokens,output_tokens\n"
        "a,10,1000,100,5\nb,10.5,100,1,1\na,13.5,2000,120,5\na,14,0,0,0\na,15,10,60,5\n"
    )
    trace = _read(tmp_path, text)
    assert [(request.session, request.gap_s) for request in trace.requests] == [
        ("a", 0.0),
        ("b", 0.0),
        ("a", 2.5),
        ("a", 0.0),
    ]
    assert trace.oddities == {"contexts that shrink": 1, "calls before the end of the one before": 1}


@pytest.mark.parametrize("text", ["", "\n \r\n", "\ufeff"])
def test_an_empty_file_is_a_trace_without_requests(tmp_path: Path, text: str) -> None:
    trace = _read(tmp_path, text)
    assert trace.format == "empty"
    assert trace.rows == 0
    assert trace.span_s == 0.0


def test_a_header_alone_is_a_trace_without_requests(tmp_path: Path) -> None:
    trace = _read(tmp_path, TEXTS["azure"].splitlines()[0])
    assert trace.format == "azure"
    assert trace.rows == 0


@pytest.mark.parametrize("text", ["a,b\n1,2\n", '{"a": 1}\n', "{\n", b"\xff\xfe\x00", "timestamp,Timestamp\n"])
def test_a_file_of_no_format_is_refused_in_one_line(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(ConfigError) as refusal:
        _read(tmp_path, text)
    assert str(tmp_path / "trace") in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be a readable file"):
        read_trace(tmp_path / "none")


@given(st.text())
def test_splitting_never_fails_but_for_a_doubled_column(text: str) -> None:
    try:
        rows = split_rows(text, where="text")
    except ConfigError as error:
        assert "must name every column once" in str(error)
    else:
        lines = [line for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
        is_table = bool(lines) and not lines[0].lstrip().startswith("{")
        assert len(rows.rows) == len(lines) - is_table


# Counts, means and largest lengths of the public files, as their own summary gives them.
@pytest.mark.parametrize(
    ("name", "rows", "served", "mean_input", "mean_output", "largest_input", "span_s"),
    [
        ("azure2023_code.csv", 8819, 8819, 2048, 28, 7437, 3436),
        ("azure2023_conv.csv", 19366, 19366, 1155, 211, 14050, 3502),
        ("mooncake_conversation.jsonl", 12031, 12031, 12035, 343, 126195, 3537),
    ],
)
def test_public_traces_read_as_their_summary_says(
    name: str, rows: int, served: int, mean_input: int, mean_output: int, largest_input: int, span_s: int
) -> None:
    trace = read_trace(data_file("traces", name))
    inputs, outputs = zip(*_lengths(trace), strict=True)
    assert (trace.rows, len(trace.requests)) == (rows, served)
    assert round(sum(inputs) / served) == mean_input
    assert round(sum(outputs) / served) == mean_output
    assert max(inputs) == largest_input
    assert round(trace.span_s) == span_s


def test_public_sessions_count_their_empty_rows() -> None:
    trace = read_trace(data_file("traces", "exgentic_claude_code_swebench.csv"))
    assert trace.rows == 2294
    assert trace.skip_reasons() == {"no input tokens": 148}
    assert len({request.session for request in trace.requests}) == 46
