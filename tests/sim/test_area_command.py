"""The command ``nearkv area``: its keys, its refusals and the baseline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hw.area_rows import AreaRow
from hw.device_verilog import DevicePart
from hw.synth_parts import CellArea
from hw.verilog import UNITS
from sim.cli import main
from sim.commands.area import BASELINE_PRESET, TOLERANCE
from tests.helpers.data import data_file

BASELINE = Path(__file__).resolve().parents[1] / "baselines" / "area.json"
KEYS = ("area_ge", "flip_flops", "delay_nand2")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["area", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    last = captured.err.splitlines()[-1]
    assert last.startswith("nearkv: error: ")
    return last.removeprefix("nearkv: error: ")


def test_record_of_the_exponential_is_the_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["area", "exp", "--preset", BASELINE_PRESET, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["unit"] == "exp"
    assert record["library"] == "nearkv_generic"
    assert record["yosys"] == "0.70"
    assert record["script"] == "quick"
    assert record["area_um2"] is None
    assert record["delay_ns"] is None
    assert record["cells"] > record["flip_flops"]
    assert record["provenance"]["class"] == "modelled"
    assert record["verilog_sha256"] in record["provenance"]["parts"][0]["source"]
    assert record["manifest"]["config_sha256"]
    kept = {row["name"]: row["value"] for row in json.loads(BASELINE.read_text())}
    for key in KEYS:
        assert record[key] == pytest.approx(kept[f"exp {BASELINE_PRESET} {key}"], rel=TOLERANCE)


@pytest.mark.parametrize("unit", ["score_adder", "state_join", "top_k_merge"])
def test_records_of_the_small_units_are_the_baseline(unit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["area", unit, "--preset", BASELINE_PRESET, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    kept = {row["name"]: row["value"] for row in json.loads(BASELINE.read_text())}
    for key in KEYS:
        assert record[key] == pytest.approx(kept[f"{unit} {BASELINE_PRESET} {key}"], rel=TOLERANCE)


def test_baseline_holds_every_unit() -> None:
    rows = json.loads(BASELINE.read_text())
    assert [row["name"] for row in rows] == [f"{unit} {BASELINE_PRESET} {key}" for unit in UNITS for key in KEYS]
    assert all(row.keys() == {"name", "unit", "value"} for row in rows)


def test_table_with_a_library_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    liberty = str(data_file("liberty", "sg13g2_typ.lib"))
    assert main(["area", "exp", "--preset", BASELINE_PRESET, "--liberty", liberty]) == 0
    out = capsys.readouterr().out
    assert "sg13g2_stdcell_typ_1p20V_25C" in " ".join(out.split())
    assert "before layout" in out
    assert max(map(len, out.splitlines())) <= 120


def test_comparison_marks_what_differs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("hw.verilog.UNITS", {"exp": UNITS["exp"]})
    kept = [row for row in json.loads(BASELINE.read_text()) if row["name"].startswith("exp ")]
    same, other = tmp_path / "same.json", tmp_path / "other.json"
    same.write_text(json.dumps(kept))
    assert main(["area", "--baseline", str(same), "-o", str(tmp_path / "new" / "area.json")]) == 0
    assert "0 of 3 differ by more than 0.5%" in capsys.readouterr().out
    assert [row["name"] for row in json.loads((tmp_path / "new" / "area.json").read_text())] == [
        row["name"] for row in kept
    ]
    changed = [kept[0] | {"value": kept[0]["value"] * 2}, kept[1], {"name": "gone", "unit": "1", "value": 1}]
    other.write_text(json.dumps(changed))
    assert main(["area", "--baseline", str(other)]) == 1
    out = capsys.readouterr().out
    assert "▼ -50.0%" in out
    assert "new" in out
    assert "gone" in out
    assert "3 of 4 differ by more than 0.5%" in out
    assert main(["area", "--baseline", str(other), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["differing"] == 3


def _rows() -> dict[str, list[AreaRow]]:
    unit = CellArea(10.0, None, 8, 4)
    return {
        "channel": [AreaRow("nearkv_unit", 4, unit.times(4), CellArea(2.0, None, 2, 2)), AreaRow("top", 1, unit, unit)],
        "logic_die": [AreaRow("link", 2, unit.times(2), unit)],
    }


def test_a_device_is_shown_by_its_modules(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _rows()
    monkeypatch.setattr(DevicePart, "area_rows", lambda self, library, script: rows[self.name])
    assert main(["area", "pam", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["device"], record["area_ge"], record["flip_flops"], record["area_um2"]) == ("pam", 70, 28, None)
    channel, die = record["parts"]
    assert (channel["name"], channel["area_ge"], channel["memory_ge"]) == ("channel", 50, 12)
    assert channel["modules"][0] == {
        "module": "nearkv_unit",
        "count": 4,
        "each_ge": 10,
        "area_ge": 40,
        "area_um2": None,
        "cells": 32,
        "flip_flops": 16,
        "memory_ge": 2,
    }
    assert (die["name"], die["modules"][0]["count"], die["cells"]) == ("logic_die", 2, 16)
    assert channel["verilog_sha256"] in record["provenance"]["parts"][0]["source"]
    assert record["provenance"]["class"] == "modelled"
    assert main(["area", "pam"]) == 0
    out = capsys.readouterr().out
    assert "one channel of pam, logic without its banks" in out
    assert max(map(len, out.splitlines())) <= 120


def test_refusals(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert refused(capsys) == "area must be given a UNIT or --baseline FILE, and not both"
    assert refused(capsys, "exp", "--baseline", "x") == "area must be given a UNIT or --baseline FILE, and not both"
    assert refused(capsys, "exp", "-o", "x") == "--output must go with --baseline"
    assert "unit must be a known name, not 'expp'; nearest: exp" in refused(capsys, "expp")
    assert "preset must be a known name, not 'tny'" in refused(capsys, "exp", "--preset", "tny")
    assert "unit must be hardware, not 'memory_model'" in refused(capsys, "memory_model")
    assert "--preset must go with units, not with device 'pam'" in refused(capsys, "pam", "--preset", "tiny")
    assert "script must be a known name, not 'quik'" in refused(capsys, "pam", "--script", "quik")
    assert "script must be a known name, not 'quik'" in refused(capsys, "exp", "--script", "quik")
    assert "nowhere.lib can't be read" in refused(capsys, "exp", "--liberty", str(tmp_path / "nowhere.lib"))
    assert "--baseline must be a file that can be read" in refused(capsys, "--baseline", str(tmp_path / "none.json"))
    odd = tmp_path / "odd.json"
    odd.write_text("{")
    assert "--baseline must be JSON" in refused(capsys, "--baseline", str(odd))
    odd.write_text("[1]")
    assert "--baseline must be a list of name, unit and value" in refused(capsys, "--baseline", str(odd))
