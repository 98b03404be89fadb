"""Promise: the demonstration, a newcomer's first command, runs to its end and leaves what it says."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

from hw.presets import UNIT_PRESETS
from sim.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_demonstration_agrees_and_writes_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "-o", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "RTL, golden model and formulas agree" in shown.out
    assert "[4/4," in shown.err
    units = {unit["name"] for unit in json.loads((tmp_path / "rtl.json").read_text())["units"]}
    assert units == set(UNIT_PRESETS["pam-hbm"].units)
    assert {path.suffix for path in (tmp_path / "verilog").iterdir()} == {".v", ".json", ".core"}
    records = json.loads((tmp_path / "decode.json").read_text())["records"]
    rows = list(csv.DictReader((tmp_path / "decode.csv").read_text().splitlines()))
    assert [float(row["step_us"]) for row in rows] == [record["step_us"] for record in records]
    assert (tmp_path / "decode.png").read_bytes().startswith(b"\x89PNG")
