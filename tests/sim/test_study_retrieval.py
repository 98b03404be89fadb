"""Promise: the study's cycles, recall, mass and bytes are those of the units and methods, counted apart."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from golden.retrieval.quality import attention_mass
from hw.presets import UNIT_PRESETS
from hw.timing.top_k import ShardWork, predict
from hw.top_k_params import TopKParams, TopKShardParams
from sim.cli import main
from sim.errors import ConfigError
from sim.plots_retrieval import retrieval_figure
from sim.retrieval.pnm import select_cycles
from sim.studies.retrieval_quality import KS, PINNED, Sample, drawn_samples, quality_rows, read_samples
from sim.studies.retrieval_scan import CLAIM_FROM, KEY_RATE, LIMIT, RATE_FROM, scan_rows
from tests.helpers.data import full_tensors
from tests.sim.test_cli import refused

if TYPE_CHECKING:
    from pathlib import Path

KARAT = UNIT_PRESETS["karat"].top_k


# Scoring and selecting.


def test_a_million_keys_as_the_unit_was_measured() -> None:
    row = next(row for row in scan_rows() if row["model"] == "deepseek-v3.2" and row["tokens"] == 1_000_000)
    assert row["select_cycles"] == 4189
    # 132 MB at 1.2 TB/s are 110 us, 201,300 cycles of 1.83 GHz; 64 heads of 4 beats before, latency 14 and 3 behind.
    assert row["score_cycles"] == pytest.approx(201_300 + 256 + 17)
    assert row["select_share"] == pytest.approx(4189 / 201_573)
    assert (row["score_bound"], row["key_stream_share"]) == ("memory", pytest.approx(201_300 / 201_573))
    # 15,625 keys of a channel at 12 cycles, and a beat of scales for eight of them.
    assert row["score_unit_cycles"] == 15_625 * 12 + 1954 + 273


def test_scoring_keeps_up_with_its_keys_from_128k_tokens_on() -> None:
    rows = scan_rows()
    rated = [row for row in rows if row["tokens"] >= RATE_FROM]
    assert len(rated) == 12
    assert all(row["keeps_up"] and row["key_stream_share"] >= KEY_RATE == 0.98 for row in rated)
    assert all(row["keeps_up"] is None for row in rows if row["tokens"] < RATE_FROM)
    # Nobody is faster than the memory.
    assert all(row["key_stream_share"] < 1 for row in rows)


def test_selection_stays_within_its_limit_from_64k_tokens_on() -> None:
    rows = scan_rows()
    assert {row["model"] for row in rows} == {"deepseek-v3.2", "glm-5.2", "minimax-m3"}
    assert {row["tokens"] for row in rows} >= {2048, 65536, 1_000_000}
    claimed = [row for row in rows if row["tokens"] >= CLAIM_FROM]
    assert len(claimed) == 15
    assert all(row["within"] and row["select_share"] <= LIMIT == 0.05 for row in claimed)
    assert all(row["within"] is None for row in rows if row["tokens"] < CLAIM_FROM)


def ends(params: TopKParams, counts: list[int], selected: list[np.ndarray]) -> int:
    """Cycles from the last score to the last shard's end, by the unit's recurrence."""
    work = [ShardWork.of(params.shard, np.arange(n), ids) for n, ids in zip(counts, selected, strict=True)]
    found = predict(params, [work])
    last = max(found[f"scores__{s}"][-1] for s in range(params.shards) if counts[s])
    return int(max(found[f"selected__{s}"][-1] for s in range(params.shards)) - last)


@pytest.mark.parametrize(("tokens", "k"), [(64, 8), (64, 4), (48, 12), (8, 8), (128, 32)])
def test_selections_take_as_long_as_the_recurrence_says_wherever_their_ids_lie(tokens: int, k: int) -> None:
    params = TopKParams(shard=TopKShardParams(depth=32, lanes=4, id_bits=8), shards=4, max_k=32)
    each = tokens // 4
    cycles = select_cycles(params, tokens, k)
    # An id a row, as evenly as they go.
    even = np.sort((np.arange(k // 4) * 4) % each + np.arange(k // 4) * 4 // each)
    assert ends(params, [each] * 4, [even] * 4) == cycles
    # All in the last shard, row after row, and in the first.
    for packed in ([0, 0, 0, min(k, each)], [min(k, each), 0, 0, 0]):
        assert ends(params, [each] * 4, [np.arange(count) for count in packed]) == cycles
    rng = np.random.default_rng(0)
    for _ in range(10):
        chosen = rng.choice(4 * each, k, replace=False)
        assert ends(params, [each] * 4, [np.sort(chosen[chosen % 4 == s] // 4) for s in range(4)]) == cycles


def test_selection_of_a_device_by_hand() -> None:
    assert KARAT is not None
    # 1,024 scores a shard in 32 rows of 32; seven digits more, and the last shard's share is the 64th.
    assert select_cycles(KARAT, 65_536, 2048) == 7 * (32 + 16 + 6 + 4) + 16 + 6 + 63 + 10 + 32 == 533


# Quality.


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return quality_rows(drawn_samples(requests=1, tokens=1200, steps=2, heads=2, seed=0))


def test_rows_of_every_method_and_k(rows: list[dict[str, Any]]) -> None:
    methods = {row["method"] for row in rows}
    assert len(methods) == 8 + len(PINNED)
    assert len(rows) == len(methods) * len(KS)
    for row in rows:
        assert row["selected"] == row["k"]
        assert 0 <= row["recall"] <= 1
        assert 0 <= row["kept_mass"] <= 1 + 1e-12
        assert row["queries"] == 4


def test_nobody_keeps_more_than_the_oracle(rows: list[dict[str, Any]]) -> None:
    best = {row["k"]: row["kept_mass"] for row in rows if row["method"] == "oracle"}
    assert all(row["recall"] == 1 for row in rows if row["method"] == "oracle")
    assert all(row["kept_mass"] <= best[row["k"]] + 1e-12 for row in rows)
    assert sorted(best.values()) == [best[k] for k in sorted(best)]


def test_bytes_and_operations_by_hand(rows: list[dict[str, Any]]) -> None:
    by_name = {(row["method"], row["k"]): row for row in rows}
    # Two steps, of 1,199 and 1,200 tokens of 128 elements: means of both.
    indexer = by_name["indexer", 64]
    assert indexer["index_bytes"] == 1199.5 * 132
    assert indexer["score_flops"] == 2 * 1199.5 * 128
    assert indexer["kv_bytes"] == 64 * 128 * 4
    assert indexer["bytes_share"] == pytest.approx((1199.5 * 132 + 64 * 512) / (1199.5 * 512), rel=1e-6)
    assert by_name["page bounds", 16]["index_bytes"] == 75 * 2 * 128 * 2
    assert by_name["labels", 16]["index_bytes"] == 1199.5 * 8 * 2
    assert by_name["streaming", 16]["index_bytes"] == 0
    assert by_name["oracle", 16]["index_bytes"] is None


def test_streaming_by_hand() -> None:
    # Keys and query that give the last of 20 tokens nearly all of the mass, and the first two half of the rest each.
    keys = np.zeros((20, 4), np.float32)
    keys[19, 0], keys[0, 0], keys[1, 0] = 8, 4, 4
    query = np.array([[1, 0, 0, 0]], np.float32)
    found = quality_rows([Sample("here", keys, query, (20,), 1.0)], ks=(5,))
    row = next(row for row in found if row["method"] == "streaming")
    # Sinks 0 to 3 and the last token: all that matters.
    mass = attention_mass(query[0], keys, 1.0)
    assert row["kept_mass"] == pytest.approx(mass[[0, 1, 2, 3, 19]].sum())
    assert row["recall"] == pytest.approx(1.0)


def test_k_above_a_quarter_of_the_tokens_is_left_out() -> None:
    samples = drawn_samples(requests=1, tokens=255, steps=1, heads=1, seed=0)
    assert {row["k"] for row in quality_rows(samples)} == {16, 32}
    tiny = drawn_samples(requests=1, tokens=60, steps=1, heads=1, seed=0)
    assert quality_rows(tiny) == []


def test_seeds_draw_other_requests() -> None:
    first, second = (drawn_samples(requests=2, tokens=50, steps=1, heads=1, seed=seed) for seed in (0, 1))
    keys = [sample.keys for sample in (*first, *second)]
    assert all(not np.array_equal(keys[a], keys[b]) for a in range(4) for b in range(a))


def test_real_tensors() -> None:
    samples = read_samples(full_tensors().parent)
    assert len(samples) == 3 * 12
    found = quality_rows(samples[:2], ks=(16, 128, 256))
    assert {row["k"] for row in found} == {16, 128}
    assert {row["tokens"] for row in found} == {512}
    mass = attention_mass(samples[0].queries[0], samples[0].keys, 32**-0.5)
    assert mass.sum() == pytest.approx(1)


def test_folders_without_tensors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"folder must hold an .npz of tensors, there or in tensors/, it holds none"):
        read_samples(tmp_path)
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    with pytest.raises(ConfigError, match="file must be an archive of arrays q0, k0, v0"):
        read_samples(tmp_path)
    np.savez(tmp_path / "bad.npz", q0=np.zeros((4, 1, 2)))
    with pytest.raises(ConfigError, match="file must be an archive of arrays q0, k0, v0"):
        read_samples(tmp_path)


# The command.


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw little."""
    drawn = {"requests": 1, "tokens": 600, "steps": 1, "heads": 1}
    monkeypatch.setattr("sim.commands.study_retrieval._DRAWN", drawn)


@pytest.mark.usefixtures("small")
def test_command_prints_writes_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = tmp_path / "rows.csv", tmp_path / "figure.png"
    arguments = ["study", "retrieval", "--csv", str(table), "--plot", str(picture)]
    assert main([*arguments, "--json"]) == 0
    text = capsys.readouterr().out
    record = json.loads(text)
    assert main([*arguments, "--json"]) == 0
    assert capsys.readouterr().out == text
    written = list(csv.DictReader(io.StringIO(table.read_text())))
    assert len(written) == len(record["rows"]) + len(record["quality"])
    assert {row["kind"] for row in written} == {"scan", "quality"}
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert main(["study", "retrieval", "--seed", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "selection adds at most 5% from 65,536 tokens on: 15 of 15 points" in shown
    assert "scoring keeps at least 98% of the keys' rate from 131,072 tokens on: 12 of 12 points" in shown


@pytest.mark.usefixtures("small")
def test_a_selection_over_its_limit_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sim.studies.retrieval_scan.LIMIT", 0.03)
    assert main(["study", "retrieval", "--json"]) == 1
    assert "selection must stay within its limit, it does not at deepseek-v3.2, 65,536" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_scan_that_falls_behind_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sim.studies.retrieval_scan.KEY_RATE", 0.99)
    assert main(["study", "retrieval", "--json"]) == 1
    assert "scoring must keep up with its keys, it does not at deepseek-v3.2, 131,072" in capsys.readouterr().err


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "folder must hold an .npz" in refused(capsys, "study", "retrieval", "--data", str(tmp_path))
    assert "--seed must be an integer" in refused(capsys, "study", "retrieval", "--seed", "-1")


def test_figures_of_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rows must not be empty"):
        retrieval_figure([], [], tmp_path / "nothing.png")
