"""Promise: the study's amplifications, ratios and growths are those of hand counts and of a flash written down anew."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from golden.dma.frames import frame_bytes
from hw.presets.dma_bench import DMA_BENCHES
from hw.synth_parts import CellArea
from hw.tables import TableError
from hw.tables.dma import DmaTable
from sim.cli import main
from sim.plots_migration import migration_figure
from sim.provenance import Part
from sim.studies import migration_area
from sim.studies.migration_flash import amplification_rows, placement_rows, scattered_amplification, write_rows
from sim.studies.migration_host import PIECES, host_rows, host_seconds
from sim.studies.migration_rates import format_share, format_shares, link_decides, measured_shares, rate_rows
from sim.studies.migration_step import step_rows
from sim.system_config import load_system
from tests.helpers.dma_points import point
from tests.sim.test_cli import refused

if TYPE_CHECKING:
    from pathlib import Path

PAM = load_system("pam")
KEYS = {"kind", "name", "asked", "reached", "unit", "within", "note", "provenance"}


# Flash.


def test_reads_by_hand() -> None:
    rows = amplification_rows(PAM, PAM.tier("ssd-pim"))
    assert [(row["wanted_slots"], row["reached"]) for row in rows] == [
        (1, 32), (2, 16), (4, 8), (8, 4), (16, 2), (32, 1)
    ]  # fmt: skip
    assert rows[0]["note"] == "3.1% of a page is wanted"
    # 8 drives of 8 channels of 4 dies read 16 KB in 30 us each: 139.8 GB/s, of which one slot in 32 is wanted.
    inside = 256 * 16384 / 30e-6
    assert rows[0]["wanted_bytes_per_s"] == pytest.approx(inside / 32)
    assert rows[3]["wanted_bytes_per_s"] == pytest.approx(inside / 4)
    # From half a page on the drives' links of 5 GB/s are slower.
    assert [row["wanted_bytes_per_s"] for row in rows[4:]] == [40e9, 40e9]
    assert [row["bound"] for row in rows] == ["page reads"] * 4 + ["drives' links"] * 2


def test_placements_by_hand() -> None:
    rows = {(row["question"], row["placement"]): row["reached"] for row in placement_rows(32, 0)}
    # Pages of one token's slots: all wanted by a move, one in 32 by a head.
    assert rows["move scattered tokens", "by token"] == rows["move runs of 32 tokens", "by token"] == 1
    assert rows["attend to all of a head", "by token"] == rows["attend to 1/8 of a head", "by token"] == 32
    # Pages of one head's tokens: none of four tokens shares a page with another, runs fill them.
    assert rows["move scattered tokens", "packed"] == 32
    assert rows["move runs of 32 tokens", "packed"] == rows["attend to all of a head", "packed"] == 1
    # An eighth of the tokens touches nearly all pages: 1 - (7/8)^32 of them.
    assert rows["attend to 1/8 of a head", "packed"] == pytest.approx(scattered_amplification(1 / 8, 32), rel=0.02)
    assert scattered_amplification(1 / 8, 32) == pytest.approx(7.888, abs=1e-3)
    # Of n slots at random among 4,096 pages of 32, 4,096 (1 - (1 - 1/4096)^n) pages are touched.
    for question, slots in (("move runs of 32 tokens", 4096), ("attend to all of a head", 4096)):
        pages = 4096 * (1 - (1 - 1 / 4096) ** slots)
        assert rows[question, "at random"] == pytest.approx(32 * pages / slots, rel=0.03)


def test_scattered_amplification() -> None:
    assert scattered_amplification(1.0, 32) == 1.0
    assert scattered_amplification(1e-9, 32) == pytest.approx(32.0)
    assert scattered_amplification(0.25, 1) == 1.0
    rng = np.random.default_rng(1)
    wanted = rng.random((20_000, 32)) < 0.05
    assert scattered_amplification(0.05, 32) == pytest.approx(32 * wanted.any(1).sum() / wanted.sum(), rel=0.02)


def naive_programs(slots: int, blocks: int, pages: int, page_slots: int, halves: Any) -> int:
    """Count the pages that flash programs in the second half: lists of blocks, of pages, of slots, searched through."""
    flash: list[list[list[int]]] = [[] for _ in range(blocks)]
    newest: dict[int, tuple[int, int]] = {}
    free, opened, gathered, programs = list(range(1, blocks)), 0, dict[int, None](), 0

    def program(content: list[int]) -> None:
        nonlocal programs
        programs += 1
        flash[opened].append(content)
        newest.update({slot: (opened, len(flash[opened]) - 1) for slot in content})

    def valid(block: int) -> list[int]:
        return [s for number, page in enumerate(flash[block]) for s in page if newest[s] == (block, number)]

    for written in (range(slots), *halves):
        programs = 0
        for slot in written:
            gathered[int(slot)] = None
            if len(gathered) < page_slots:
                continue
            program(list(gathered))
            gathered.clear()
            if len(flash[opened]) < pages:
                continue
            opened = free.pop(0)
            if not free:
                victim = min((b for b in range(blocks) if b != opened), key=lambda b: (len(valid(b)), b))
                moved = valid(victim)
                for start in range(0, len(moved), page_slots):
                    program(moved[start : start + page_slots])
                flash[victim] = []
                free.append(victim)
    return programs


def test_write_amplification_of_another_flash() -> None:
    rows = write_rows(32, 5)
    assert [row["fill"] for row in rows] == [0.3, 0.5, 0.7, 0.8]
    amplifications = [row["reached"] for row in rows]
    assert 1.0 <= amplifications[0] < 1.3
    assert amplifications == sorted(amplifications)
    # 24 blocks of 8 pages of 32 slots, half of them in use; each slot overwritten twice, then twice more.
    slots = 24 * 8 * 32 // 2
    halves = np.random.default_rng(5).integers(0, slots, (2, 2 * slots))
    assert amplifications[1] == naive_programs(slots, 24, 8, 32, halves) * 32 / (2 * slots)


# The host.


def test_host_by_hand() -> None:
    # A MiB in pieces of 4 KiB at 10 GB/s and 20 GB/s, a microsecond a copy: out and back, read and written, 512 calls.
    seconds = host_seconds(1 << 20, 4096, pcie=10e9, memory=20e9, call_s=1e-6)
    assert seconds == pytest.approx(2 * 2**20 / 10e9 + 2 * 2**20 / 20e9 + 512e-6)
    rows = host_rows(PAM, 0.95, Part("share", "modelled", "made up"))
    found = {(row["memory_share"], row["call_us"], row["piece_bytes"]): row for row in rows}
    # One slot of 64 GB/s, 5 DIMMs of 25.6 GB/s behind it: (2/64 + 2/128) 64 * 0.95; the DIMMs keep up.
    assert all(found[1.0, 0.0, piece]["reached"] == pytest.approx(3 * 0.95) for piece in PIECES)
    assert all(found[0.1, 0.0, piece]["reached"] == pytest.approx(12 * 0.95) for piece in PIECES)
    assert found[1.0, 2.3, 512]["reached"] == pytest.approx((3 + 2 * 2.3e-6 / 512 * 64e9) * 0.95)
    # At the full rate of the link the DIMMs would be as slow, and no ratio is better.
    ideal = host_rows(PAM, 1.5, Part("share", "modelled", "made up"))
    assert ideal[0]["reached"] == pytest.approx(3)
    assert [row["within"] for row in rows if row["piece_bytes"] == 512] == [False, True, True] * 2
    assert {row["within"] for row in rows if row["piece_bytes"] > 512} == {None}
    # 2,048 pieces of a MiB, copied twice at 6 us each, and 2 MiB at 64 GB/s and at a tenth of 128.
    assert found[0.1, 6.0, 512]["mib_us"] == pytest.approx(4096 * 6 + 2**21 / 64e3 + 2**21 / 12.8e3)
    # The measurement that 2.3 us stand for: copies of 256 B reach 0.11 GB/s.
    measured = 256 / 2.3e-6 / 1e9
    assert measured == pytest.approx(0.11, abs=0.005)


# Rates.


TABLE = DmaTable(
    points=(
        point("contiguous", 0.951, run_tokens=8),
        point("contiguous", 0.949, run_tokens=8, memories="immediate"),
        point("contiguous", 0.8, run_tokens=8, link_beats=(1, 1)),
        point("scattered", 0.92),
        point("scattered", 0.91, link_beats=(1, 8)),
        point("scattered", 0.85, memories="immediate"),
        point("scattered", 0.6, memories="immediate", link_beats=(1, 1)),
        point("scattered", 0.7, direction="near to far", far_share=None),
        point("scattered, 8 bits", 1.748, compressed=True),
        point("scattered, 8 bits", 1.3, compressed=True, memories="immediate"),
        point("scattered, no reorder", 0.5, reorder=False),
    ),
    clock_ns=1.538,
    verilog_sha256="ab" * 32,
    seed=0,
    versions={},
)


def test_the_format_of_flits_by_hand() -> None:
    params = DMA_BENCHES["device"].near
    # Flits of 256 B with 248 of payload; frames have 8 B before a slot of 512 B, or before 8 blocks of 33 B.
    assert format_share(params, compressed=False) == pytest.approx(248 / 256 * 512 / 520)
    assert format_share(params, compressed=True) == pytest.approx(248 / 256 * 512 / 272)
    assert (frame_bytes(512), frame_bytes(8 * 33)) == (520, 272)


def test_the_format_bounds_what_was_not_measured() -> None:
    shares = format_shares()
    assert (shares.raw, shares.compressed) == (pytest.approx(0.95385, abs=1e-5), pytest.approx(1.82353, abs=1e-5))
    assert shares.part.kind == "modelled"


def test_links_decide_where_they_take_longer_than_the_ends() -> None:
    # A slot is 16.8 beats of a link; an end takes 17 cycles or more.
    assert not link_decides(point("x", 1.0, link_beats=(1, 1)))
    assert link_decides(point("x", 1.0, link_beats=(2, 5)))
    # 8.8 beats in 8 bits.
    assert not link_decides(point("x", 1.0, link_beats=(1, 1), compressed=True))
    assert link_decides(point("x", 1.0, link_beats=(1, 4), compressed=True))


def test_rates_by_hand() -> None:
    rows = rate_rows(TABLE)
    assert all(row.keys() >= KEYS for row in rows)
    assert {row["provenance"]["class"] for row in rows} == {"measured-rtl"}
    judged = [(row["point"], row["memories"], row["link_beats"], row["asked"], row["within"]) for row in rows]
    assert judged[:4] == [
        ("contiguous", "open-row", "1/4", 0.95, True),
        ("contiguous", "immediate", "1/4", 0.95, False),
        ("contiguous", "open-row", "1/1", None, None),
        ("scattered", "open-row", "1/4", 0.9, True),
    ]
    # One direction, 8 bits and what leaves a part out stand beside.
    assert [row["asked"] for row in rows[6:11]] == [None] * 5
    # 1.748 over 0.92 are 1.9, 1.3 over 0.85 are 1.53.
    assert [(row["reached"], row["asked"], row["within"]) for row in rows[11:]] == [
        (pytest.approx(1.9), 1.85, True),
        (pytest.approx(1.3 / 0.85), 1.85, False),
    ]
    assert len({row["name"] for row in rows}) == len(rows)


def test_shares_of_steps_are_the_least_of_scattered_tokens() -> None:
    shares = measured_shares(TABLE)
    assert (shares.raw, shares.compressed, shares.part.kind) == (0.85, 1.3, "measured-rtl")


# Steps.


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    return step_rows(PAM, measured_shares(TABLE))


def test_every_step_of_the_decode_table_is_there(steps: list[dict[str, Any]]) -> None:
    assert len({(row["model"], row["context"], row["batch"], row["keep"]) for row in steps}) == 16
    assert len({row["name"] for row in steps}) == len(steps)
    by_step: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in steps:
        by_step.setdefault((row["model"], row["context"], row["batch"], row["keep"]), []).append(row)
    for (model, context, batch, _), rows in by_step.items():
        kinds = [row["manner"] for row in rows]
        in_one = (model, context, batch) in {("llama-3.1-70b", 8192, 16), ("opt-175b", 512, 64)}
        on_flash = (model, context, batch) in {("llama-3.1-70b", 131072, 64), ("opt-175b", 2048, 256)}
        assert kinds == ["moved"] if in_one else kinds[:3] == ["moved", "each way", "8 bits"]
        # With tokens on flash the DIMMs are full, and have no room for copies.
        others = ["runs", "fast", "kept", "checks"] if on_flash else ["copies", "copies 8", "checks"]
        assert kinds[3:] == ([] if in_one else others)


def test_growths_by_hand(steps: list[dict[str, Any]]) -> None:
    found = {(row["model"], row["context"], row["batch"], row["keep"], row["manner"]): row for row in steps}
    row = found["llama-3.1-70b", 32768, 64, 1.0, "moved"]
    # 2,097,152 tokens, 0.35 % each way, of 80 layers of 8 heads of 512 B.
    assert row["swaps"] == [{"near": "hbm-pim", "far": "ddr-pim", "tokens": 7341}]
    assert row["moved_bytes"] == 2 * 7341 * 327_680
    assert (row["reached"], row["within"], row["asked"]) == (0.0, True, 0.01)
    # The DIMMs read, write and read back: 7.05 ms of 1.024 TB/s.
    assert row["unhidden_us"] == pytest.approx(3 * 7341 * 327_680 / 1.024e12 * 1e6)
    # Of the stacks' 0.27 ms the part in the products' time would come on top if their reads left no gaps.
    assert 0.0 < row["no_gaps"] * row["step_us"] < 3 * 7341 * 327_680 / 26.624e12 * 1e6 < 280
    swapped = found["llama-3.1-70b", 32768, 64, 1.0, "each way"]
    assert swapped["swaps"][0]["tokens"] == 14681
    assert (swapped["within"], swapped["reached"]) == (False, pytest.approx(swapped["exposed_us"] / row["step_us"]))
    # Copies below: the DIMMs read only. Checks at the banks: 8 times as fast as the pins, and a burst of 8 B a slot.
    copies, checks = (found["llama-3.1-70b", 32768, 64, 1.0, name] for name in ("copies", "checks"))
    assert copies["unhidden_us"] == pytest.approx(14681 * 327_680 / 1.024e12 * 1e6)
    assert checks["unhidden_us"] == pytest.approx((2 + 1 / 8 + 1 / 64) * 14681 * 327_680 / 1.024e12 * 1e6)
    assert "pcie down" not in copies["demands_us"]
    assert (copies["asked"], copies["reached"], checks["reached"]) == (None, 0.0, 0.0)
    flash = found["llama-3.1-70b", 131072, 64, 1.0, "moved"]
    # 8,388,608 tokens: 0.1 % leave flash, each alone in its pages, and as many come; 0.25 % above.
    assert [swap["tokens"] for swap in flash["swaps"]] == [20972, 8389]
    size = 8389 * 327_680
    pages_s = size * scattered_amplification(0.001, 32) / (256 * 16384 / 30e-6) + size / (256 * 16384 / 750e-6)
    assert flash["demands_us"]["ssd-pim"] == pytest.approx(pages_s * 1e6)
    assert flash["within"] is False
    kept = found["llama-3.1-70b", 131072, 64, 1.0, "kept"]
    assert kept["demands_us"]["ssd-pim"] == pytest.approx(size / (256 * 16384 / 30e-6) * 1e6)
    assert kept["reached"] < found["llama-3.1-70b", 131072, 64, 1.0, "fast"]["reached"] < flash["reached"]
    idle = found["opt-175b", 512, 64, 1.0, "moved"]
    assert (idle["reached"], idle["asked"], idle["within"], idle["moved_bytes"]) == (None, None, None, 0)


# Areas.


def test_areas_by_hand() -> None:
    def made_up(area: float) -> tuple[CellArea, CellArea, str]:
        return CellArea(area, None, int(area), 7), CellArea(area / 4, None, 1, 1), f"hash of {area:g}"

    areas = {"processing": made_up(100.0), "reduction": made_up(200.0), "dma": made_up(1600.0)}
    rows = migration_area.area_rows(areas, "made_up, sha256 0")
    assert all(row.keys() >= KEYS for row in rows)
    assert [row["reached"] for row in rows[:3]] == [100.0, 200.0, 1600.0]
    # 64 of 100 and 8 of 200 are 8,000.
    assert rows[3]["reached"] == pytest.approx(0.2)
    assert rows[3]["asked"] == pytest.approx(0.85 / 8.16)
    assert rows[3]["within"] is False
    assert rows[3]["provenance"]["class"] == "modelled"


# The command.


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count less."""
    monkeypatch.setattr("sim.studies.migration_flash._TOKENS", 512)
    monkeypatch.setattr("sim.studies.migration_flash.FILLS", (0.3, 0.5))
    monkeypatch.setattr("hw.tables.dma.load_dma_table", lambda: TABLE)


@pytest.mark.usefixtures("small")
def test_command_prints_writes_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = (tmp_path / name for name in ("rows.csv", "figure.png"))
    arguments = ["study", "migration", "--seed", "3", "--csv", str(table), "--plot", str(picture)]
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert all(row.keys() >= KEYS for row in record["rows"])
    kinds = ["rate", "memory bound", "flash read", "flash placement", "flash write", "step", "host"]
    assert list(dict.fromkeys(row["kind"] for row in record["rows"])) == kinds
    assert (record["manifest"]["seed"], record["why_not_measured"]) == (3, "")
    written = list(csv.DictReader(io.StringIO(table.read_text())))
    assert len(written) == len(record["rows"])
    assert {row["provenance"] for row in written} == {"measured-rtl", "modelled"}
    drawn = picture.read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert main(arguments) == 0
    assert picture.read_bytes() == drawn
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 120
    assert "rows reach what is asked for" in out


@pytest.mark.usefixtures("small")
def test_without_a_table_the_format_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused_table() -> DmaTable:
        raise TableError("table of the DMA must be there, it is not")

    monkeypatch.setattr("hw.tables.dma.load_dma_table", refused_table)
    picture = tmp_path / "figure.png"
    assert main(["study", "migration", "--plot", str(picture)]) == 0
    assert "links carry what their format leaves: table of the DMA must be there, it is not" in capsys.readouterr().out
    assert picture.exists()
    assert main(["study", "migration", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["why_not_measured"] == "table of the DMA must be there, it is not"
    assert "rate" not in {row["kind"] for row in record["rows"]}


@pytest.mark.usefixtures("small")
def test_a_seed_repeats_its_rows() -> None:
    assert placement_rows(32, 4) == placement_rows(32, 4)
    assert placement_rows(32, 4) != placement_rows(32, 5)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--liberty", "cells.lib"], "--liberty must go with --area"),
        (["--area", "--liberty", "no/such.lib"], "--liberty"),
        (["--seed", "x"], "--seed must be an integer"),
        (["--plot", "rows.txt"], "file must be of a format for figures"),
    ],
)
def test_bad_input(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert text in refused(capsys, "study", "migration", *arguments)


def test_a_figure_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^rows must not be empty$"):
        migration_figure([], tmp_path / "x.png")
