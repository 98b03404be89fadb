"""Comparisons of exponential units: the seed's claim against named baselines, published units beside ours."""

from __future__ import annotations

import json

import numpy as np
import pytest

from golden.exp.catalogue import UNITS
from sim.cli import main
from sim.comparisons import exp_anchors, exp_seed
from tests.helpers.exp_rows import study_row

ROW_KEYS = {"name", "reference", "ours", "ours_default", "ratio", "unit", "source", "within", "fit", "note"}


def seed_areas() -> dict[str, float]:
    """Every baseline 4,000 GE; forms of degree 6 at 40 %, 3 % more than 60 %, and the baseline's own area."""
    return dict.fromkeys(exp_seed.BASELINES, 4000.0) | {
        "poly6-f14": 4000.0,
        "compact-poly6": 1600.0,
        "compact-poly6-serial": 2472.0,
    }


def test_the_seed_holds_for_some_baselines_and_not_for_others() -> None:
    measured = [study_row(name, area) for name, area in seed_areas().items()]
    rows = exp_seed.seed_rows(measured)
    assert all(set(row) == ROW_KEYS for row in rows)
    assert len(rows) == len(exp_seed.FORMS) * (1 + len(exp_seed.BASELINES))
    losses = [row for row in rows if row["name"].endswith("largest error")]
    assert [row["within"] for row in losses] == [True, True, True]
    assert all(row["reference"] == 0.001 and row["unit"] == "relative error" for row in losses)
    saved = {row["name"]: row for row in rows if "area saved" in row["name"]}
    for name in exp_seed.BASELINES:
        assert saved[f"poly6-f14: area saved against {name}"]["ours"] == 0.0
        assert not saved[f"poly6-f14: area saved against {name}"]["within"]
        assert saved[f"compact-poly6: area saved against {name}"]["ours"] == pytest.approx(0.6)
        assert saved[f"compact-poly6: area saved against {name}"]["ratio"] == pytest.approx(1.5)
        # 38 % is 40 % within the tool noise.
        assert saved[f"compact-poly6-serial: area saved against {name}"]["within"]
    lines = exp_seed.verdict(rows)
    assert lines[0].endswith("40 % less area holds against none of them")
    assert lines[1].endswith("holds against " + ", ".join(exp_seed.BASELINES))


def test_baselines_are_what_they_are_called() -> None:
    degree = {name: UNITS[name].parameters.get("degree") for name in (*exp_seed.FORMS, "poly6-full", "poly3-f14")}
    assert degree == {**dict.fromkeys(exp_seed.FORMS, 6), "poly6-full": 6, "poly3-f14": 3}
    assert UNITS["poly6-full"].parameters["core_bits"] == 24
    assert UNITS["table-1024"].parameters["entries"] == 1024
    assert UNITS["linear-16-14"].parameters["segments"] == 16
    assert UNITS["compact-poly6-serial"].evaluation == "serial"


def test_anchors() -> None:
    areas = {name: 500.0 + place for place, name in enumerate(exp_anchors.wanted_units())} | {"compact-bf16": 499.0}
    measured = [study_row(name, area) for name, area in areas.items()]
    rows = {row["name"]: row for row in exp_anchors.anchor_rows(measured)}
    assert len(rows) == len(exp_anchors.ANCHORS)
    assert all(set(row) == ROW_KEYS and row["source"] and not row["fit"] for row in rows.values())
    # The same method in our frame errs as the published unit does.
    for what in ("largest error", "mean error"):
        assert rows[f"VEXP bf16: {what}"]["ratio"] == pytest.approx(1, abs=0.05)
    # Minimax of degree 3 is 7.5e-5; ours has the fewest wrong roundings in fp16 instead.
    assert 7.4e-5 < rows["FlashAttention-4, degree 3: largest error"]["ours"] < 1.3e-4
    assert 1.9e-3 < rows["Softermax, 4 segments: largest error"]["ours"] < 3.8e-3  # chords
    assert rows["I-BERT i-exp, degree 2: largest error"]["within"]
    assert rows["SoftEx bf16: area"]["ours"] < 1170
    assert rows["SoftEx bf16: largest error"]["note"].endswith("every code with a normal result; ours: compact-bf16")


def test_an_anchor_without_a_unit_of_ours() -> None:
    measured = [study_row(name, correctly_rounded=0.5) for name in exp_anchors.wanted_units()]
    rows = {row["name"]: row for row in exp_anchors.anchor_rows(measured)}
    row = rows["SoftEx bf16: area"]
    assert (row["ours"], row["ratio"], row["within"]) == (None, None, False)
    assert "ours: none as accurate; their method in our RTL by our script: 1,000 GE" in row["note"]


@pytest.mark.parametrize("name", ["exp-seed", "exp-anchors"])
def test_the_commands(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(units, arguments):
        assert arguments.jobs == 2
        return [study_row(spec.name, 900.0, equal_to_golden=correct) for spec in units]

    monkeypatch.setattr("sim.commands.compare.measured_rows", rows)
    correct = True
    assert main(["compare", name, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {key for row in record["rows"] for key in row} == ROW_KEYS
    assert record["manifest"]["config_sha256"]
    assert main(["compare", name]) == 0
    out = capsys.readouterr().out
    assert "areas with a library, a Yosys; every operand code through the RTL" in out
    assert max(map(len, out.splitlines())) <= 120
    correct = False
    assert main(["compare", name, "--json"]) == 1
    assert "RTL must equal the golden model, it differs in " in capsys.readouterr().err


def test_far_operands_are_those_beyond_two_to_the_minus_ten() -> None:
    spec = UNITS["poly3-f16"]
    right = exp_anchors._far(spec)
    assert 0.90 < right < 0.94  # 92.0 % published for degree 3
    assert right < np.float64(study_row("poly3-f16")["correctly_rounded"])
