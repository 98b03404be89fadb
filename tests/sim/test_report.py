"""Reports: one JSON object, rows for every step, files whole or not at all, figures from rows."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from sim.errors import ConfigError
from sim.model_config import load_model
from sim.plots import decode_figure
from sim.record import decode_record
from sim.report import decode_row, to_csv, to_json, write_text
from sim.step import StepRequest
from sim.system_config import load_system

if TYPE_CHECKING:
    from pathlib import Path

PAM = load_system("pam")
ROWS = [
    decode_row(decode_record(PAM, load_model(name), StepRequest(context=context, batch=16)))
    for name in ("llama-3.1-70b", "opt-175b")
    for context in (1000, 2048, 8192)
]


def test_rows_become_csv() -> None:
    read = list(csv.DictReader(to_csv(ROWS).splitlines()))
    assert [row["model"] for row in read] == ["llama-3.1-70b"] * 3 + ["opt-175b"] * 3
    for row in read:
        parts = sum(float(row[key]) for key in ("gpu_us", "tier_us", "link_us", "reduction_us"))
        assert parts == pytest.approx(float(row["step_us"]))
        assert row["slowest_tier"] in ("hbm-pim", "ddr-pim")
    with pytest.raises(ValueError, match="rows must not be empty"):
        to_csv([])
    with pytest.raises(ValueError, match="dict contains fields not in fieldnames"):
        to_csv([{"a": 1}, {"b": 1}])


def test_json_rounds_to_twelve_digits_and_refuses_what_it_cannot_say() -> None:
    assert json.loads(to_json({"a": [1 / 3, {"b": 2**60}], "c": "é"})) == {
        "a": [0.333333333333, {"b": 2**60}],
        "c": "é",
    }
    with pytest.raises(ValueError, match="value must be finite to be reported, not nan"):
        to_json({"a": float("nan")})


def test_files_appear_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.csv"
    write_text(path, "a\nb\n")
    write_text(path, "c\n")
    assert path.read_bytes() == b"c\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["rows.csv"]
    with pytest.raises(ConfigError, match=r"rows\.csv/below: file must be writable: "):
        write_text(path / "below", "x")


def test_figure_is_drawn_from_rows(tmp_path: Path) -> None:
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    decode_figure(ROWS, first)
    decode_figure(list(ROWS), second)
    assert first.read_bytes()[:4] == b"\x89PNG"
    assert len(first.read_bytes()) > 20_000
    assert first.read_bytes() == second.read_bytes()
    with pytest.raises(ValueError, match="rows must not be empty"):
        decode_figure([], first)
    with pytest.raises(ConfigError, match=r"a\.png/c\.png: file must be writable: "):
        decode_figure(ROWS, first / "c.png")
