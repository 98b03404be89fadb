"""Promise: ``nearkv study policies`` shows what each policy reads far away and moves, on loads mostly outside HBM."""

from __future__ import annotations

import csv
import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from sim.calibration import factors
from sim.cli import main
from sim.report import print_tables
from sim.studies import policies, policies_granularity
from sim.studies.policies import LOADS, Load, drawn_trace, policy_rows, read_rows
from sim.studies.policies_fit import GRID, best_ratio, ratio_rows
from sim.studies.policies_granularity import granularity_rows
from sim.studies.policies_tables import granularity_tables, policy_tables

if TYPE_CHECKING:
    from pathlib import Path

FEW = {"few": Load(model="llama-3.1-70b", requests=300, prompt_tokens=16_000, output_tokens=12)}


def test_every_policy_stands_beside_the_oracle() -> None:
    names = ("static", "pam", "oracle")
    rows = {row["policy"]: row for row in policy_rows(FEW, seed=1, policies=names)}
    assert list(rows) == list(names)
    for row in rows.values():
        assert row["outside_share"] > 0.5
        assert row["oracle_far_tokens"] == rows["oracle"]["far_tokens"] < row["far_tokens"] + 1
        assert row["tbt_ms"]["p50"] > 0.0
        assert row["provenance"]["class"] == "modelled"
    assert rows["static"]["moved_tokens"] == 0
    assert rows["oracle"]["far_share"] < rows["pam"]["far_share"] < rows["static"]["far_share"]
    assert rows["pam"]["decode_step_ms"] < rows["static"]["decode_step_ms"]


def test_reads_are_judged_on_other_seeds_and_localities() -> None:
    rows = read_rows(seeds=(3, 4), requests=3, tokens=1000, steps=20, counted=15)
    far = {(row["locality"], row["policy"], row["seed"]): row["far_share"] for row in rows}
    assert len(far) == len(rows) == 3 * 7 * 2
    for locality in ("fitted", "seed", "restless"):
        for seed in (3, 4):
            best = min(share for (place, _, draw), share in far.items() if (place, draw) == (locality, seed))
            assert best == far[locality, "oracle", seed]
            # Learnt on the first locality alone, and better than nothing on all.
            assert far[locality, "predictive", seed] < far[locality, "static", seed]
    assert far["fitted", "static", 3] != far["fitted", "static", 4]


def test_lengths_are_drawn_about_their_means() -> None:
    trace = drawn_trace(LOADS["drives"], 0)
    lengths = [request.input_tokens for request in trace.requests]
    assert len(lengths) == 512
    assert 8000 <= min(lengths) < max(lengths) <= 24_000
    assert sum(lengths) / 512 == pytest.approx(16_000, rel=0.05)
    assert drawn_trace(LOADS["drives"], 0) == trace != drawn_trace(LOADS["drives"], 1)


def test_the_ratio_in_use_is_inside_the_grid_and_the_best_is_found() -> None:
    rows = ratio_rows(FEW, ((1.0, 4.0, 64.0), (0.5, 1.0)), seed=0)
    assert len(rows) == 6
    best = best_ratio(rows)
    assert best["relative"] == min(row["relative"] for row in rows) < 1.0
    assert best["bracketed"] is False
    middle = [{"x": x, "y": y, "relative": abs(x - 2) + abs(y - 2)} for x in (1, 2, 3) for y in (1, 2, 3)]
    assert best_ratio(middle) == {"x": 2, "y": 2, "relative": 0, "bracketed": True}
    for name, values in zip(("pam_x", "pam_y"), GRID, strict=True):
        assert min(values) < factors()[name].value < max(values)
        assert "study policies --fit" in factors()[name].command


def test_the_command_writes_rows_and_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "LOADS", FEW)
    few = partial(granularity_rows, heads=4, tokens=200, steps=4)
    monkeypatch.setattr(policies_granularity, "granularity_rows", few)
    monkeypatch.setattr(policies, "read_rows", partial(read_rows, requests=2, tokens=300, steps=8, counted=4))
    files = ("--csv", str(tmp_path / "rows.csv"), "--plot", str(tmp_path / "rows.png"))
    assert main(["study", "policies", *files, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["rows"]) == 7
    found = list(csv.DictReader((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["kind"] for row in found} == {"policy", "reads", "granularity"}
    assert (tmp_path / "rows.png").stat().st_size > 10_000
    print_tables([*policy_tables(record["rows"], record["reads"]), *granularity_tables(record["granularity"])])
    shown = capsys.readouterr().out
    assert "% outside HBM" in shown
    assert "a bound on tokens" in shown
    assert "token-layer-head" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--load", "discs"), "load must be a known name, not 'discs'"),
        (("--seed", "x"), "--seed must be an integer from 0"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert main(["study", "policies", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
