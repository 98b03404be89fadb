"""``nearkv study reduction``: rows, where curves fall below 1 %, what is kept, the command and its figure."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from hw.timing.logic_die import ReductionPoint
from sim.cli import main
from sim.comparisons.reduction import below
from sim.plots_reduction import percent, reduction_figure
from sim.studies import reduction

if TYPE_CHECKING:
    from pathlib import Path

    from hw.presets.devices import DevicePreset

CURVES = (reduction.CURVES[0], reduction.CURVES[7], reduction.CURVES[11], reduction.CURVES[12])


class Runs:
    """Stands for the RTL: 300 cycles behind a last column in cycle 24 a token."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int]] = []
        self.equal = True

    def __call__(self, preset: DevicePreset, context: int, *, group: int, **sizes: int) -> ReductionPoint:
        self.asked.append((preset.name, context, group))
        column = 24 * context
        return ReductionPoint(
            device=preset.name,
            context=context,
            heads=sizes["heads"],
            head_dim=sizes["head_dim"],
            group=group,
            last_column=column,
            last_state=column + 50,
            last_root=column + 300,
            late_cycles=7,
            bank_bytes=1000,
            up_bytes=250,
            equal_to_golden=self.equal,
        )


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    made = Runs()
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr("hw.measure_reduction.measure_reduction", made)
    monkeypatch.setattr("hw.measure_reduction.reduction_sha256", lambda preset: f"hash of {preset.name}")
    monkeypatch.setattr(reduction, "CURVES", CURVES)
    return made


def test_the_curves_span_what_is_asked() -> None:
    assert reduction.CONTEXTS == (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
    shapes = {(c.device.channel.organisation.banks, c.device.channel.groups) for c in reduction.CURVES}
    assert shapes == {(4, 16), (2, 16), (8, 16), (4, 8), (4, 32)}
    assert {(curve.group, curve.heads) for curve in reduction.CURVES} == {(1, 64), (8, 128)}
    names = [curve.name for curve in reduction.CURVES]
    assert len(set(names)) == len(names)
    assert {
        "pam",
        "pam, no cap",
        "pam-wide, no cap",
        "pam, 8 banks a group",
        "pam, g = 8",
        "pam-wide, no cap, g = 8",
    } <= set(names)


def test_rows(runs: Runs) -> None:
    rows = reduction.reduction_rows(CURVES, (1024, 2048), jobs=1)
    by_name = {row["name"]: row for row in rows}
    row = by_name["pam, 8 banks a group, 1,024 tokens"]
    assert (row["exposed_cycles"], row["state_cycles"], row["attention_cycles"]) == (300, 50, 24 * 1024 + 301)
    assert row["exposed_share"] == pytest.approx(300 / (24 * 1024 + 301))
    assert (row["banks_per_group"], row["groups_per_channel"], row["mapping"], row["group"]) == (8, 16, "split", 1)
    assert (row["cap_bytes_per_s"], row["late_cycles"], row["heads"], row["head_dim"]) == (1.6e12, 7, 64, 128)
    assert row["verilog_sha256"] == "hash of pam, 8 banks a group"
    assert row["provenance"]["class"] == "measured-rtl"
    assert by_name["pam, g = 8, 1,024 tokens"]["group"] == 8
    # 300 of 24 n + 301 cycles is below a hundredth from n = 1,238 on: 20 steps of 64, or 10 of the 128 banks' 128.
    assert {row["below_one_percent"] for row in rows} == {1280}
    assert reduction.below_by_curve(rows) == dict.fromkeys((curve.name for curve in CURVES), 1280)
    # Those tried on the way stand among them, in order.
    assert [row["context"] for row in rows if row["curve"] == "pam"] == [1024, 1152, 1216, 1280, 1536, 2048]
    assert {context % 128 for name, context, _ in runs.asked if name == "pam-wide, 8 banks a group"} == {0}


def test_what_was_measured_is_kept(runs: Runs) -> None:
    first = reduction.reduction_rows(CURVES, (1024, 2048), jobs=1)
    asked = len(runs.asked)
    assert reduction.reduction_rows(CURVES, (1024, 2048), jobs=1) == first
    assert len(runs.asked) == asked
    reduction.reduction_rows(CURVES[:1], (1024, 2048, 4096), jobs=1)
    assert runs.asked[asked:] == [("pam", 4096, 1)]


def test_steps_of_other_sizes() -> None:
    def share(context: int) -> float:
        assert context % 128 == 0
        return 0.009 if context >= 700 else 0.011

    assert below(share, {256: share(256), 1024: share(1024)}, step=128) == 768


def test_the_command(runs: Runs, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("rows.csv", "rows.png", "again.png")]
    command = ["study", "reduction", "--jobs", "1", "--contexts", "2048,1024"]
    assert main([*command, "--json", "--csv", str(files[0]), "--plot", str(files[1])]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record["below_one_percent_tokens"]["pam-wide, 8 banks a group"] == 1280
    assert "pam: 1,024 tokens, 1.206% exposed" in err
    assert "4 of 4 curves" in err
    (flat, *_) = csv.DictReader(io.StringIO(files[0].read_text()))
    assert (flat["curve"], flat["context"], flat["provenance"]) == ("pam", "1024", "measured-rtl")
    assert len(files[0].read_text().splitlines()) == 1 + len(record["rows"])
    reduction_figure(record["rows"], files[2])
    assert files[1].read_bytes() == files[2].read_bytes()
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "1,280" in out
    assert max(map(len, out.splitlines())) <= 120
    assert main([*command, "--plot", str(tmp_path / "rows.txt")]) == 2
    assert "file must be of a format for figures" in capsys.readouterr().err


def test_a_root_that_differs_is_told(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.equal = False
    assert main(["study", "reduction", "--jobs", "1", "--contexts", "2048"]) == 1
    assert "must equal the golden model, it differs in pam, 2,048 tokens, pam, 8" in capsys.readouterr().err


@pytest.mark.parametrize("contexts", ["100", "256,256", "256,,512", "0", "x", "", "128,-128"])
def test_contexts_that_do_not_deal_out_are_refused(contexts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "reduction", "--contexts", contexts]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "--contexts must be" in err


def test_a_figure_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^rows must not be empty$"):
        reduction_figure([], tmp_path / "x.png")


def test_ticks_below_a_percent_keep_their_digits() -> None:
    assert [percent(10.0**-power) for power in range(5)] == ["100%", "10%", "1%", "0.1%", "0.01%"]
