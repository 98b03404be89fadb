"""``nearkv measure``: the table it writes, what it says, and that an interrupted sweep goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hw.measure import Measured, RunSizes
from hw.presets.devices import DEVICE_PRESETS
from hw.tables import load_table, read_table
from hw.timing.tables import TablePoint
from sim import measure
from sim.cli import main

if TYPE_CHECKING:
    from pathlib import Path

LAW = load_table("attacc").cycles


class Channel:
    """Stands for the Verilated channel: answers by a law, remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[RunSizes] = []
        self.fails_at = -1
        self.late_beyond = 1 << 30

    def __call__(self, params, sizes: RunSizes, *, numbers, seed: int) -> Measured:
        if len(self.asked) == self.fails_at:
            raise KeyboardInterrupt
        self.asked.append(sizes)
        return Measured(tuple(self._point(sizes, number) for number in numbers), 1000, 0.002)

    def _point(self, sizes: RunSizes, number: int) -> TablePoint:
        cycles = LAW.cycles(sizes.head_dim, sizes.walk_tokens, number)
        late = cycles.last_column // 50 if sizes.walk_tokens > self.late_beyond else 0
        return TablePoint(
            head_dim=sizes.head_dim,
            walk_tokens=sizes.walk_tokens,
            operations=number,
            first_column=cycles.first_column,
            last_column=cycles.last_column + late,
            last_state=cycles.last_state + late,
        )


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Channel:
    made = Channel()
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(measure, "measure", made)
    monkeypatch.setattr(measure, "channel_sha256", lambda params: "ab" * 32)
    monkeypatch.setattr(measure, "tool_versions", lambda: {"verilator": "5"})
    return made


def test_the_table_and_what_is_said_of_it(channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "attacc", "-o", str(tmp_path), "--json"]) == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    (device,) = record["devices"]
    assert set(device) >= {"name", "preset", "points", "verilog_sha256", "cycles_per_s"}
    assert (device["name"], device["preset"], device["verilog_sha256"]) == ("attacc", "hbm3-5200", "ab" * 32)
    assert device["cycles_per_s"] == 500_000
    assert device["longest_tokens"] == 65536
    assert all(held["holds"] for held in device["held_out"])
    keys = {"head_dim", "walk_tokens", "operations", "queries", "first_column", "last_column", "last_state"}
    assert all(set(point) == keys for point in device["points"])
    assert "table written to" in captured.err
    table = read_table((tmp_path / "attacc.json").read_text())
    assert len(table.points) == len(device["points"])
    # Each number of columns a token has every rest of a row's tokens at four numbers of tiles, three of operations.
    assert len(table.points) == (32 + 16 + 10 + 8) * 4 * 3
    assert table.cycles.cycles(128, 777, 9) == LAW.cycles(128, 777, 9)


def test_same_file_and_no_run_the_second_time(
    channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for folder in ("one", "two"):
        assert main(["measure", "attacc", "-o", str(tmp_path / folder)]) == 0
        texts.append((tmp_path / folder / "attacc.json").read_bytes())
    assert texts[0] == texts[1]
    assert len(channel.asked) == len(set(channel.asked)) == (32 + 16 + 10 + 8) * 4 + 4 * 3 + 1
    out = capsys.readouterr().out
    assert "measured channels, without refresh [measured-rtl]" in out
    assert max(map(len, out.splitlines())) <= 120


def test_an_interrupted_sweep_goes_on(channel: Channel, tmp_path: Path) -> None:
    channel.fails_at = 40
    assert main(["measure", "attacc", "-o", str(tmp_path)]) == 130
    assert not (tmp_path / "attacc.json").exists()
    channel.fails_at = -1
    assert main(["measure", "attacc", "-o", str(tmp_path)]) == 0
    assert len(channel.asked) == len(set(channel.asked))


def test_a_law_that_does_not_hold_is_told(channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    channel.late_beyond = 1000
    assert main(["measure", "attacc", "-o", str(tmp_path), "--json"]) == 1
    captured = capsys.readouterr()
    (device,) = json.loads(captured.out)["devices"]
    assert [held["holds"] for held in device["held_out"]].count(False) == 1
    assert "the law must hold at the runs held out from it, it does not for attacc" in captured.err


def test_unknown_devices_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "attac"]) == 2
    assert "device must be a known name, not 'attac'; nearest: attacc" in capsys.readouterr().err


def test_tolerance_is_a_hundredth_or_a_row() -> None:
    params = DEVICE_PRESETS["attacc"].channel
    assert measure.tolerance_cycles(params, 100) == 19 + 31 * 6 + 8 + 19
    assert measure.tolerance_cycles(params, 100_000) == 1000


def test_sources_that_change_meanwhile_spoil_the_run(
    channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "channel_sha256", lambda params: str(len(channel.asked)) * 64)
    assert main(["measure", "attacc", "-o", str(tmp_path)]) == 2
    assert "Verilog of attacc must not change while it is measured, it did: start again" in capsys.readouterr().err
    assert not (tmp_path / "attacc.json").exists()
