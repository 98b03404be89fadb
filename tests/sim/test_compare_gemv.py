"""``nearkv compare gemv``: rows, what the notes count, the command."""

from __future__ import annotations

import json

import pytest

from hw.presets.gemv import GEMV_PRESETS
from hw.timing.gemv import GemvPoint
from hw.timing.operation import OperationKind
from sim.cli import main
from sim.comparisons import gemv

ROW_KEYS = {"name", "reference", "ours", "ours_default", "ratio", "unit", "source", "within", "fit", "note"}


def point(device: str, kind: OperationKind, outputs: int, inputs: int) -> GemvPoint:
    """Columns of 4 cycles, rows of 32 columns, two refreshes, 100 cycles besides."""
    columns = outputs * inputs // (64 * 16 * (8 if device == "hbm2-pairs" else 16))
    rows = -(-columns // 32)
    last = 4 * columns + 29 * rows + 700 + 100
    counts = {"MAC": columns, "ACT": rows, "PRE": rows, "REF": 2, "BROADCAST": inputs // 16}
    return GemvPoint(
        device=device,
        kind=kind,
        outputs=outputs,
        inputs=inputs,
        last_column=last - 60,
        last_result=last,
        counts=counts,
    )


def all_points() -> list[GemvPoint]:
    return [point(device, kind, *sizes) for device in GEMV_PRESETS for kind in OperationKind for sizes in gemv.SIZES]


def test_rows() -> None:
    rows = {row["name"]: row for row in gemv.gemv_rows(all_points())}
    assert len(rows) == 2 * 2 * 2 * 4
    assert all(set(row) == ROW_KEYS and row["source"] and not row["fit"] for row in rows.values())
    row = rows["hbm2-pairs scores, 4096 x 4096: PIMSimulator"]
    assert (row["reference"], row["ours"], row["within"]) == (13166, 8192 + 1856 + 800, True)
    assert row["ratio"] == pytest.approx(10848 / 13166)
    # A vector of 4,096 is 256 columns; 8 units of 8 accumulators in 64 channels hold all 4,096 outputs at once.
    assert row["note"] == (
        "ours 8,192 (MAC 2,048) + 1,856 (rows 64) + 700 (refreshes 2) + 100 (start, end, waits); "
        "256 broadcasts between; theirs 8,192 (MAC 2,048) + 4,974 (x 256, y 8, barriers 256, and the rest)"
    )
    # 65,536 outputs are 16 times as many: the vector's 8 columns come 16 times.
    assert "(x 128, y 128, barriers 128, and" in rows["hbm2-pairs scores, 65536 x 128: PIMSimulator"]["note"]
    row = rows["hbm2-pairs scores, 4096 x 128: UniNDP"]
    assert not row["within"]  # 256 + 58 + 800 beside 380.3
    assert row["note"].endswith("theirs 256 (MAC 64) + 124")
    assert "ours 4,096 (MAC 1,024)" in rows["hbm2-banks attention, 4096 x 4096: UniNDP"]["note"]


def test_the_record_of_a_point() -> None:
    record = gemv.gemv_record(point("hbm2-pairs", OperationKind.SCORE, 4096, 1024))
    assert record["column_cycles"] + record["row_cycles"] + record["refresh_cycles"] == 2048 + 464 + 700
    # 64 outputs a channel, each the sum of 4 tiles of the vector
    assert record["sums_left_out"] == 256


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hw.measure_gemv.measure_gemv", lambda preset, *given: point(preset.name, *given))
    monkeypatch.setattr("hw.measure_gemv.gemv_sha256", lambda preset: f"hash of {preset.name}")
    assert main(["compare", "gemv", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {key for row in record["rows"] for key in row} == ROW_KEYS
    keys = ("device", "operation", "outputs", "inputs")
    assert [tuple(entry[key] for key in keys) for entry in record["points"]] == [
        (device, operation, *sizes)
        for device in GEMV_PRESETS
        for operation in ("scores", "attention")
        for sizes in gemv.SIZES
    ]
    assert record["provenance"]["class"] == "measured-rtl"
    assert record["provenance"]["parts"][0]["source"] == "Verilog sha256 hash of hbm2-pairs"
    assert main(["compare", "gemv"]) == 0
    out = capsys.readouterr().out
    assert all(note in out for note in gemv.NOTES)
    assert max(map(len, out.splitlines())) <= 120
