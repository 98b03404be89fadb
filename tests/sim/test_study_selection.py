"""The study of selection: what is drawn, what its rows say of a run, balance, labels, figure and command line."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hw.memory.kv_rows import kv_rows, row_visits
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import row_cycles
from sim.cli import main
from sim.plots_selection import selection_figure
from sim.report import to_csv
from sim.studies import selection
from sim.studies.selection import PATTERNS, PRESETS, draw, points, selection_rows
from sim.studies.selection_balance import balance_rows
from sim.studies.selection_labels import label_rows
from sim.studies.selection_tables import csv_rows

if TYPE_CHECKING:
    from pathlib import Path


def _counted(point: Any) -> dict[str, Any]:
    """Stand in for a run: rows and columns counted, the rows' times summed."""
    visits = row_visits(kv_rows(point.params, 128, 0), point.selected().positions)
    cycles = sum(row_cycles(point.params, columns) for columns in visits)
    counts = {"columns": sum(visits), "openings": len(visits)}
    return {**counts, "last_column": cycles, "last_state": cycles + 100, "verilog_sha256": "0123456789abcdef"}


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setattr(selection, "_measured", _counted)
    return selection_rows(points(0))


@pytest.mark.parametrize("parts", [16, 64])
def test_what_is_drawn(parts: int) -> None:
    part_tokens = 32768 // parts
    for share in (1, 8, 32):
        chosen = {
            name: draw(np.random.default_rng(1), name, share, parts=parts, part_tokens=part_tokens) for name in PATTERNS
        }
        for name, selected in chosen.items():
            assert selected.wanted.sum() == 32768 // share, name
            assert (selected.positions < part_tokens).all()
            if name != "context runs":
                assert (selected.wanted.sum(axis=1) == part_tokens // share).all(), name
            if name.endswith("agreed"):
                assert selected.wanted.all(), name
            if name.startswith("runs"):
                starts = selected.positions[::16]
                assert (starts % 16 == 0).all()
                assert (selected.positions.reshape(-1, 16) == starts[:, None] + np.arange(16)).all()
        tokens = np.sort(
            (chosen["context runs"].positions * parts + np.arange(parts)[:, None])[chosen["context runs"].wanted]
        )
        assert (np.diff(tokens.reshape(-1, 16), axis=1) == 1).all()


def test_rows_say_what_was_run(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == len(PRESETS) * (1 + 2 * len(PATTERNS))
    by_name = {row["name"]: row for row in rows}
    assert len(by_name) == len(rows)
    for preset in PRESETS:
        dense = by_name[f"{preset}: all"]
        assert (dense["relative_cycles"], dense["useful_share"], dense["speedup_share"]) == (1, 1, 1)
        assert dense["positions_read"] == dense["part_tokens"] == 2048 // DEVICE_PRESETS[preset].channel.parts_per_group
        agreed = by_name[f"{preset}: 1/8 runs, agreed"]
        assert agreed["positions_read"] == dense["positions_read"] // 8
        assert agreed["useful_share"] == 1
        alone = by_name[f"{preset}: 1/8 random"]
        # Of 1 - (7/8)^parts of the positions some part wants its token; each part an eighth of all.
        share = 1 - (7 / 8) ** alone["parts"]
        assert alone["positions_read"] / dense["positions_read"] == pytest.approx(share, abs=0.03)
        assert alone["useful_share"] == pytest.approx(0.125 * dense["positions_read"] / alone["positions_read"])
        assert alone["provenance"]["class"] == "measured-rtl"
    # Sixteen consecutive tokens are one position of sixteen parts: an eighth of the positions, all of it useful.
    context = by_name["attacc: 1/8 context runs"]
    assert (context["positions_read"], context["useful_share"]) == (256, 1)


def test_new_tokens_spread_by_activations_beat_those_dealt_in_turn() -> None:
    found = {(row["weights"], row["policy"]): row for row in balance_rows(0)}
    for weights in ("strewn", "periodic"):
        greedy, turn, chance = (found[weights, name] for name in ("greedy", "in turn", "random"))
        assert greedy["relative_to_even"] < min(turn["relative_to_even"], chance["relative_to_even"])
        # The same tokens are activated, whoever places them.
        assert greedy["activated_again"] == turn["activated_again"] == chance["activated_again"]
        assert 0.5 < greedy["activated_again"] < 0.8
        assert min(row["relative_to_even"] for row in (greedy, turn, chance)) >= 1
    greedy = found["strewn", "greedy"]
    assert (greedy["group_id_bytes"], greedy["tracking_bytes"]) == (2816, 42880)


def test_labels_are_beside_all_tokens(rows: list[dict[str, Any]]) -> None:
    found = {row["name"]: row for row in label_rows(rows)}
    # 64 rows of 232 cycles for 256 of them: a quarter, though a label has 16 of the 512 bytes of a token. The way to
    # the first column, 42 cycles, is in it, and what follows the last one, 46, is not; the stand-in counts rows alone.
    assert found["attacc: labels of 8"]["cycles"] == 64 * 232 + 42 - 46
    assert found["attacc: labels of 8"]["relative_cycles"] == pytest.approx(0.25, rel=1e-3)
    assert all(row["bus_cycles"] < row["cycles"] < row["score_cycles"] for row in found.values())
    assert found["attacc: labels of 8"]["byte_share"] == 16 / 512
    assert {row["provenance"]["class"] for row in found.values()} == {"formula-rtl"}
    assert {row["bus_provenance"]["class"] for row in found.values()} == {"modelled"}


def test_csv_and_figure(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    kinds = {"selection": rows, "balance": balance_rows(0), "label scan": label_rows(rows)}
    read = list(csv.DictReader(io.StringIO(to_csv(csv_rows(kinds)))))
    assert len(read) == len(rows) + 6 + 6
    assert {row["kind"] for row in read} == set(kinds)
    assert read[0]["policy"] == ""
    files = [tmp_path / "one.png", tmp_path / "two.png"]
    for file in files:
        selection_figure(rows, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    with pytest.raises(ValueError, match="rows must not be empty"):
        selection_figure([row for row in rows if row["pattern"] == "all"], files[0])


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr(selection, "_measured", _counted)
    assert main(["study", "selection", "--json", "--seed", "3", "--csv", str(tmp_path / "rows.csv")]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert (len(record["rows"]), len(record["balance"]), len(record["label_scan"])) == (33, 6, 6)
    assert record["manifest"]["seed"] == 3
    assert err.count("cycles\n") == 33
    assert (tmp_path / "rows.csv").read_text().startswith("kind,name,preset")
    assert main(["study", "selection"]) == 0
    assert "1/32 context runs" in capsys.readouterr().out
    assert main(["study", "selection", "--seed", "-1"]) == 2
    assert "--seed must be an integer from 0 to 999999999999, not '-1'" in capsys.readouterr().err
