"""Published areas beside ours: rows from areas made up, whose shares and ratios can be counted by hand; the command."""

from __future__ import annotations

import json

import pytest

from hw.area_rows import AreaRow
from hw.area_split import AreaSplit
from hw.synth_parts import CellArea
from sim.cli import main
from sim.comparisons import area, area_units

ROW_KEYS = {"name", "reference", "ours", "ours_default", "ratio", "unit", "source", "within", "fit", "note"}


def cells(area_ge: float, *, um2: bool = False) -> CellArea:
    return CellArea(area_ge, 7.0 * area_ge if um2 else None, int(area_ge), 0)


def made_up(*, um2: bool = False) -> area.Areas:
    def split(*areas: float) -> AreaSplit:
        return AreaSplit(*(cells(each, um2=um2) for each in areas))

    return area.Areas(
        splits={
            ("pam", "processing"): split(67, 11, 22),
            ("pam-hbm", "processing"): split(50, 45, 5),
            ("pam-hbm", "reduction"): split(90, 10, 20),
            ("pam-ddr", "processing"): split(50, 0, 0),
            ("pam-ddr", "reduction"): split(40, 0, 0),
        },
        softmax=cells(30_000, um2=um2),
        finish=cells(20_000, um2=um2),
        parts={"channel": [AreaRow("nearkv_unit", 64, cells(6400), cells(0))]},
        library="made_up",
    )


def test_rows_by_hand() -> None:
    rows = {row["name"] + ", " + row["unit"]: row for row in area.area_rows(made_up())}
    assert all(row.keys() == ROW_KEYS for row in rows.values())
    for kind, share in (("datapath", 0.67), ("buffer", 0.11), ("control", 0.22)):
        row = rows[f"PU of pam: {kind}, of its area"]
        assert (row["reference"], row["ours"], row["within"], row["note"]) == (share, share, True, "")
    assert rows["PU of pam-hbm: buffer, of its area"]["ratio"] == pytest.approx(0.45 / 0.11)
    assert rows["RU of pam-hbm: compute, of its area"]["ours"] == pytest.approx(90 / 120)
    assert rows["RU over PU of pam-hbm, 1"]["reference"] == pytest.approx(18 / 13)
    assert rows["RU over PU of pam-hbm, 1"]["ours"] == pytest.approx(1.2)
    assert rows["RU over PU of pam-ddr, 1"]["reference"] == pytest.approx(68 / 46)
    # 64 units and 16 of 1.2 units' area; PAM's 11.2 mm2 are 86.2 of its units.
    assert rows["channel of 64 PU and 16 RU, PUs"]["ours"] == pytest.approx(64 + 16 * 1.2)
    assert rows["channel of 64 PU and 16 RU, PUs"]["reference"] == pytest.approx(11.2 / 0.13)
    assert rows["channel of 64 PU and 16 RU, mm2"]["reference"] == pytest.approx(11.2)
    assert rows["channel of 64 PU and 16 RU, mm2"]["ours"] is None
    assert rows["softmax of a PU and finish unit, GE"]["ours"] == 50_000


def test_every_difference_over_a_fifth_is_explained() -> None:
    for row in area.area_rows(made_up(um2=True)):
        assert row["within"] == (abs(row["ours"] / row["reference"] - 1) <= 0.2)
        assert row["within"] or len(row["note"]) > 20, row["name"]


def test_square_millimetres_of_a_library_that_has_them() -> None:
    (row,) = (row for row in area.area_rows(made_up(um2=True)) if row["unit"] == "mm2")
    assert row["ours"] == pytest.approx((64 * 100 + 16 * 120) * 7 / 1e6)


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = {"pam channel": "c0ffee"}
    monkeypatch.setattr(area_units, "measure_areas", lambda library, say: (made_up(), hashes))
    assert main(["compare", "area", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["rows"]) == len(area.area_rows(made_up()))
    assert record["splits"][0] == {
        "preset": "pam",
        "unit": "processing",
        "area_ge": 100,
        "area_um2": None,
        "flip_flops": 0,
        "datapath_ge": 67,
        "buffer_ge": 11,
        "control_ge": 22,
    }
    assert record["device"]["area_ge"] == 6400
    assert record["library"] == "nearkv_generic"
    assert "c0ffee" in json.dumps(record["provenance"])
    assert main(["compare", "area"]) == 0
    out = capsys.readouterr().out
    assert "channel of pam: 6,400 GE a channel: 64 unit of 100" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 120


def test_a_library_that_cannot_be_read_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "area", "--liberty", "nowhere.lib"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("nearkv: error: ")
    assert captured.err.count("\n") == 1
