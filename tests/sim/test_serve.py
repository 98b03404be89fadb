"""Promise: ``nearkv serve`` accounts for every row, token and byte of a trace, and says the same on every run."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.cli import main
from sim.plots_serve import most_held, time_bins
from sim.serving.engine import RunLog
from sim.serving.fill import FILL_RULES
from sim.serving.saturation import is_saturated, mean_queue

if TYPE_CHECKING:
    from pathlib import Path

KEYS = {
    "requests",
    "served",
    "refused",
    "unfinished",
    "skipped_lines",
    "tokens_out",
    "ttft_ms",
    "tbt_ms",
    "tpot_ms",
    "queue_ms",
    "e2e_ms",
    "tokens_per_s",
    "slo_attained",
    "preemptions",
    "saturated",
    "energy_j",
    "moved_tokens",
    "steps",
    "sim_s",
    "fidelity",
    "wall_s",
}


def write_trace(folder: Path, rows: list[tuple[float, int, int]], name: str = "trace.csv") -> str:
    lines = ["arrived_at,num_prefill_tokens,num_decode_tokens"]
    lines += [f"{arrival},{inputs},{outputs}" for arrival, inputs, outputs in rows]
    path = folder / name
    path.write_bytes("\r\n".join(lines).encode())  # no last newline
    return str(path)


def mixed(folder: Path, seconds: float = 4.0) -> str:
    draw = np.random.default_rng(3)
    arrivals = np.sort(draw.uniform(0.0, seconds, 60))
    rows = [
        (float(time), int(inputs), int(outputs))
        for time, inputs, outputs in zip(arrivals, draw.integers(1, 3000, 60), draw.integers(1, 40, 60), strict=True)
    ]
    # A failed request, an empty prompt, and one that needs more than a card has.
    return write_trace(folder, [*rows, (5.0, 10, 0), (5.5, 0, 10), (6.0, 100_000, 1)])


def read_rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def served(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["serve", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


CARD = ("--system", "rtx-4090", "--model", "llama-3.1-8b", "--token-budget", "2048")


@pytest.mark.parametrize("scheduler", ["chunked", "prefill-first"])
@pytest.mark.parametrize("system", ["rtx-4090", "pam"])
def test_every_row_token_and_byte_is_accounted_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], system: str, scheduler: str
) -> None:
    trace = mixed(tmp_path)
    options = ("--system", system, "--model", "llama-3.1-8b", "--trace", trace, "--token-budget", "2048")
    if scheduler == "prefill-first" and system == "rtx-4090":
        # A prompt of 100,000 tokens in one step would leave the card no room at all.
        assert main(["serve", *options, "--scheduler", scheduler]) == 2
        assert "must fit in" in capsys.readouterr().err
        return
    record = served(capsys, *options, "--scheduler", scheduler, "--report", str(tmp_path / "out"))
    assert set(record) >= KEYS
    assert record["requests"] + sum(record["skipped_lines"].values()) == 63
    assert record["skipped_lines"] == {"no output tokens: a request that failed": 1, "no input tokens": 1}
    assert record["served"] + record["refused"] + record["unfinished"] == record["requests"] == 61
    assert record["refused"] == (system == "rtx-4090")
    rows = read_rows(tmp_path / "out" / "requests.csv")
    done = [row for row in rows if row["outcome"] == "served"]
    assert record["tokens_out"] == sum(int(row["output_tokens"]) for row in done)
    # The last token of a request is never stored.
    stored = sum(int(row["input_tokens"]) + int(row["output_tokens"]) - 1 for row in done)
    assert record["preemptions"] == 0
    assert sum(tier["written_bytes"] for tier in record["tiers"]) == stored * 131_072
    assert all(tier["peak_bytes"] <= tier["room_bytes"] for tier in record["tiers"])
    if record["refused"]:
        room = record["refused_bytes"]["room"]
        assert record["refused_bytes"]["least"] == record["refused_bytes"]["most"] == 100_000 * 131_072 > room
    assert (record["energy_j"] is None) == (system == "rtx-4090")
    assert record["busy_s"] <= record["sim_s"]
    assert sum(record["parts_s"].values()) == pytest.approx(record["busy_s"], rel=1e-9)


def test_percentiles_are_those_of_numpy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = served(capsys, *CARD, "--trace", mixed(tmp_path), "--report", str(tmp_path), "--warmup", "0.25")
    rows = read_rows(tmp_path / "requests.csv")
    assert record["measured_requests"] == 60 - 15
    measured = [row for row in rows[15:] if row["outcome"] == "served"]
    for name in ("ttft", "tpot", "queue", "e2e"):
        values = [float(row[f"{name}_ms"]) for row in measured if row[f"{name}_ms"]]
        expected = np.percentile(values, [50, 90, 99])
        assert list(record[f"{name}_ms"].values()) == pytest.approx(expected.tolist(), rel=1e-9)
    # Requests of one token have no gaps, so no tpot.
    assert len([row for row in measured if not row["tpot_ms"]]) == sum(row["output_tokens"] == "1" for row in measured)


def test_the_same_bytes_on_every_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records: list[dict[str, Any]] = []
    for folder in ("a", "b"):
        arguments = ("--system", "pam", "--model", "llama-3.1-8b", "--trace", mixed(tmp_path))
        record = served(capsys, *arguments, "--report", str(tmp_path / folder))
        assert json.loads((tmp_path / folder / "record.json").read_text())["wall_s"] == record["wall_s"]
        del record["wall_s"], record["host"]
        records.append(record)
    assert json.dumps(records[0]) == json.dumps(records[1])
    for name in ("requests.csv", "serve.png"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_level_is_met_or_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write_trace(tmp_path, [(0.0, 100, 30)])
    record = served(capsys, *CARD, "--trace", trace, "--slo-ms", "1000")
    assert record["slo_attained"] == {"p99_tbt": True, "mean_tpot": True}
    # 15 GB of weights take 15 ms at 1,008 GB/s: no token comes in 10.
    record = served(capsys, *CARD, "--trace", trace, "--slo-ms", "10")
    assert record["slo_attained"] == {"p99_tbt": False, "mean_tpot": False}
    assert served(capsys, *CARD, "--trace", trace)["slo_attained"] is None


def test_an_empty_trace_and_one_of_single_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    record = served(capsys, *CARD, "--trace", str(empty), "--report", str(tmp_path / "out"))
    assert (record["requests"], record["steps"], record["ttft_ms"], record["tokens_per_s"]) == (0, 0, None, 0.0)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["record.json"]
    record = served(capsys, *CARD, "--trace", write_trace(tmp_path, [(0.0, 5, 1)]), "--slo-ms", "9")
    assert record["tbt_ms"] is None
    assert record["slo_attained"] is None
    assert record["ttft_ms"]["p50"] > 0


def test_a_faster_rate_saturates_and_sessions_never_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write_trace(tmp_path, [(0.5 * number, 2000, 20) for number in range(100)])
    # 2,000 tokens are 30 TFLOP, a quarter of a second or so; at twenty times the rate ten come in that time.
    assert not served(capsys, *CARD, "--trace", trace)["saturated"]
    assert served(capsys, *CARD, "--trace", trace, "--rate-scale", "20")["saturated"]
    assert not served(capsys, *CARD, "--trace", trace, "--sessions", "4")["saturated"]


def test_prefixes_are_reused_where_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "named.jsonl"
    rows = [
        {"timestamp": 20_000 * number, "input_length": 1100, "output_length": 4, "hash_ids": [0, 1, 2 + number]}
        for number in range(3)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    plain = served(capsys, *CARD, "--trace", str(path))
    assert (plain["prompt_tokens_computed"], plain["prompt_tokens_reused"]) == (3300, 0)
    reused = served(capsys, *CARD, "--trace", str(path), "--prefix-reuse")
    # Two whole blocks of 512 tokens, twice.
    assert (reused["prompt_tokens_computed"], reused["prompt_tokens_reused"]) == (3300 - 2048, 2048)
    assert reused["ttft_ms"]["p50"] < plain["ttft_ms"]["p50"]
    (card,) = reused["tiers"]
    assert card["fetched_bytes"] == 2048 * 131_072


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *CARD, "--trace", mixed(tmp_path), "--slo-ms", "1000"]) == 0
    out = capsys.readouterr().out
    assert "61 requests, 60 served, 1 refused, 0 unfinished" in out
    assert "rows skipped: 1 no output tokens: a request that failed, 1 no input tokens" in out
    assert "refused need 13,107,200,000 to 13,107,200,000 bytes, there is room for " in out
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policy", "lru2"], "policy must be a known name, not 'lru2'"),
        (["--fill", "up"], "fill rule must be a known name, not 'up'"),
        (["--rate-scale", "0"], "--rate-scale must be a number above 0, not '0'"),
        (["--rate-scale", "nan"], "--rate-scale must be a number above 0, not 'nan'"),
        (["--warmup", "1"], "--warmup must be a number from 0 to below 1, not '1'"),
        (["--sessions", "0"], "--sessions must be an integer from 1"),
        (["--seed", "-1"], "--seed must be an integer from 0"),
        (["--scheduler", "fifo"], "scheduler must be a known name, not 'fifo'"),
        (["--sessions", "2", "--rate-scale", "2"], "not allowed with argument"),
        (["--system", "rtx-4091"], "system must be a known name"),
        (["--model", "llama-3.1-70b"], "weights of llama-3.1-70b and activations on rtx-4090 must fit in"),
        (["--trace", "none.csv"], "none.csv: trace must be a readable file"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    trace = write_trace(tmp_path, [(0.0, 1, 1)])
    assert main(["serve", *CARD, "--trace", trace, "--report", str(tmp_path / "out"), *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not (tmp_path / "out" / "record.json").exists()


def test_a_rate_needs_arrivals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain.csv"
    path.write_text("num_prefill_tokens,num_decode_tokens\n10,2\n")
    assert main(["serve", *CARD, "--trace", str(path), "--rate-scale", "2"]) == 2
    assert "rate-scale must go with a trace that says when requests arrive" in capsys.readouterr().err


@given(
    rooms=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=4),
    blocks=st.integers(0, 200),
    rule=st.sampled_from(sorted(FILL_RULES)),
)
def test_fill_rules_take_what_is_asked_and_no_more_than_is_free(
    rooms: list[tuple[int, int]], blocks: int, rule: str
) -> None:
    free, room = [left for left, _ in rooms], [left + used for left, used in rooms]
    blocks = min(blocks, sum(free))
    taken = FILL_RULES[rule].share(free, room, blocks)
    assert sum(taken) == blocks
    assert all(0 <= count <= left for count, left in zip(taken, free, strict=True))


def test_by_capacity_keeps_empty_tiers_alike_full() -> None:
    assert FILL_RULES["by-capacity"].share([10, 20, 70], [10, 20, 70], 10) == [1, 2, 7]
    # The first tier holds 5 of a fair 2: the others take all, in their own proportion as far as whole blocks go.
    assert FILL_RULES["by-capacity"].share([5, 20, 70], [10, 20, 70], 15) == [0, 4, 11]


def test_the_mean_queue_by_hand() -> None:
    times, waiting = np.array([1.0, 3.0, 4.0]), np.array([2, 0, 6])
    # 0 for a second, 2 for two, 0 for one, 6 for the last.
    assert mean_queue(times, waiting, 0.0, 5.0) == pytest.approx(10 / 5)
    assert mean_queue(times, waiting, 2.0, 4.5) == pytest.approx(5 / 2.5)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ([0, 1, 2, 4, 6, 8, 10, 12], True),
        ([0, 12, 12, 12, 12, 11, 10, 10], False),  # falls
        ([0, 0, 0, 0, 1, 1, 2, 5], False),  # 5 of 100 are what may wait
        ([0] * 8, False),
    ],
)
def test_saturation_by_hand(queue: list[int], expected: bool) -> None:
    log = RunLog(steps=8, queue_s=[float(second) for second in range(8)], queue=queue)
    assert is_saturated(log, np.linspace(0.0, 7.0, 100)) is expected
    assert not is_saturated(log, np.zeros(100))
    assert not is_saturated(RunLog(), np.zeros(0))


def test_a_figure_shows_the_most_that_was_held_and_all_that_moved() -> None:
    ends_s, edges_s = np.array([0.5, 1.0, 1.5, 3.5]), np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    held = np.array([[3.0, 0.0], [1.0, 2.0], [5.0, 0.0], [0.0, 0.0]])
    # In the third bin no step ends: what the last one left is held.
    assert most_held(ends_s, held, edges_s).tolist() == [[3, 2], [5, 2], [5, 0], [5, 0]]
    assert time_bins(ends_s, held[:, 0], edges_s).tolist() == [4, 5, 0, 0]
    assert most_held(np.empty(0), np.empty((0, 2)), edges_s).tolist() == [[0, 0]] * 4
