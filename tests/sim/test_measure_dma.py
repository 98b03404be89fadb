"""``nearkv measure dma``: the table it writes, what it says, and that an interrupted sweep goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hw.measure_dma import DmaCase, measured_cases
from hw.presets.dma_bench import DMA_BENCHES
from hw.tables.dma import DmaPoint, read_dma_table
from sim import measure_dma
from sim.cli import main

if TYPE_CHECKING:
    from pathlib import Path


class Bench:
    """Stands for the Verilated benches: a token takes as many beats as it has; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[DmaCase] = []
        self.fails_at = -1

    def __call__(self, case: DmaCase, *, seed: int) -> DmaPoint:
        if len(self.asked) == self.fails_at:
            raise KeyboardInterrupt
        self.asked.append(case)
        beats, cycles = case.link_beats
        ways = ("near", "far") if case.direction == "both" else ({"near to far": "near"}.get(case.direction, "far"),)
        shares = {name: 1.0 if name in ways else None for name in ("near", "far")}
        return DmaPoint(
            name=case.name,
            direction=case.direction,
            memories="immediate" if case.at_once else "open-row",
            slot_bytes=512,
            run_tokens=case.run_tokens,
            compressed=case.compressed,
            reorder=True,
            packing=True,
            reads_waiting=4,
            link_beats=case.link_beats,
            tokens=100 * len(ways),
            cycles=1600 * cycles // beats,
            offered_beats=1600 * len(ways),
            beat_bytes=32,
            near_share=shares["near"],
            far_share=shares["far"],
            rows_opened=0 if case.at_once else 400,
            lone_cycles=200 + seed,
        )


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    made = Bench()
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(measure_dma, "measure_case", made)
    monkeypatch.setattr(measure_dma, "bench_sha256", lambda name: name)
    monkeypatch.setattr(measure_dma, "dma_sha256", lambda: "cd" * 32)
    monkeypatch.setattr(measure_dma, "tool_versions", lambda: {"verilator": "5"})
    return made


def test_the_table_and_what_is_said_of_it(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "dma", "-o", str(tmp_path), "--json"]) == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert record["devices"] == []
    assert (record["dma"]["verilog_sha256"], record["dma"]["provenance"]) == ("cd" * 32, "measured-rtl")
    assert record["dma"]["clock_ns"] == 1.538
    assert "table written to" in captured.err
    table = read_dma_table((tmp_path / "dma.json").read_text())
    assert len(table.points) == len(record["dma"]["points"]) == len(measured_cases())
    for point, shown, case in zip(table.points, record["dma"]["points"], measured_cases(), strict=True):
        assert shown["share_of_peak"] == point.share_of_peak == 1.0
        assert (point.name, point.direction, point.link_beats) == (case.name, case.direction, case.link_beats)


def test_the_table_for_people(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for folder in ("one", "two"):
        assert main(["measure", "dma", "-o", str(tmp_path / folder)]) == 0
        texts.append((tmp_path / folder / "dma.json").read_bytes())
    assert texts[0] == texts[1]
    assert len(bench.asked) == len(set(bench.asked)) == len(measured_cases())
    out = capsys.readouterr().out
    assert "rates of the DMA, share of the link's peak [measured-rtl]" in out
    assert "measured channels" not in out
    assert max(map(len, out.splitlines())) <= 120


def test_an_interrupted_sweep_goes_on(bench: Bench, tmp_path: Path) -> None:
    bench.fails_at = 7
    assert main(["measure", "dma", "-o", str(tmp_path)]) == 130
    assert not (tmp_path / "dma.json").exists()
    bench.fails_at = -1
    assert main(["measure", "dma", "-o", str(tmp_path)]) == 0
    assert len(bench.asked) == len(set(bench.asked)) == len(measured_cases())


def test_sources_that_change_meanwhile_spoil_the_run(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_dma, "bench_sha256", lambda name: str(len(bench.asked)) * 64)
    assert main(["measure", "dma", "-o", str(tmp_path)]) == 2
    assert "Verilog of dma must not change while it is measured, it did: start again" in capsys.readouterr().err


def test_every_way_of_moving_is_measured() -> None:
    """Both directions over memories of either kind; every bench has a part."""
    cases = measured_cases()
    assert {case.bench for case in cases} == set(DMA_BENCHES)
    for name in {case.name for case in cases}:
        mine = [case for case in cases if case.name == name]
        # How many reads wait is no matter where memories take no time.
        assert {case.at_once for case in mine} == ({False} if mine[0].bench == "long-queues" else {True, False})
        assert {case.link_beats for case in mine if case.direction == "both"} >= {(2, 5)}
