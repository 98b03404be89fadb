"""Promise: a table of the DMA's rates says what was counted, and speaks for its own parameters alone."""

from __future__ import annotations

import json

import pytest

from hw.tables import TableError
from hw.tables.dma import DmaPoint, DmaTable, dma_table_text, load_dma_table, read_dma_table

POINT = DmaPoint(
    name="scattered",
    direction="both",
    memories="open-row",
    slot_bytes=512,
    run_tokens=1,
    compressed=False,
    reorder=True,
    packing=True,
    reads_waiting=4,
    link_beats=(2, 5),
    tokens=1400,
    cycles=29000,
    offered_beats=23333,
    beat_bytes=32,
    near_share=0.9,
    far_share=0.95,
    rows_opened=7000,
    lone_cycles=250,
)
TABLE = DmaTable(points=(POINT,), clock_ns=1.538, verilog_sha256="ab" * 32, seed=0, versions={"verilator": "5"})


def test_the_share_is_of_what_was_counted() -> None:
    """1,400 tokens of 16 beats in 23,333 beats."""
    assert POINT.share_of_peak == pytest.approx(22400 / 23333, rel=1e-12)
    assert POINT.least_share == 0.9


def test_a_file_gives_the_table_back() -> None:
    assert read_dma_table(dma_table_text(TABLE)) == TABLE


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "params_sha256",
            "00",
            "table of the DMA must be of today's parameters, it is of others: run nearkv measure dma",
        ),
        ("points", [{"name": "x"}], "table of the DMA must be a file that nearkv measure wrote: 'link_beats'"),
        ("other", 1, "table of the DMA must be a file that nearkv measure wrote: .*other.*"),
    ],
)
def test_other_files_are_refused(key: str, value: object, message: str) -> None:
    entries = json.loads(dma_table_text(TABLE)) | {key: value}
    with pytest.raises(TableError, match=f"^{message}$"):
        read_dma_table(json.dumps(entries))


def test_a_way_that_is_none_is_refused() -> None:
    entries = json.loads(dma_table_text(TABLE))
    entries["points"][0]["direction"] = "up"
    with pytest.raises(TableError, match="direction must be one of near to far, far to near, both, not 'up'"):
        read_dma_table(json.dumps(entries))


def test_the_table_that_ships() -> None:
    """Every share follows from what was counted, and both ends' lie on either side of the whole."""
    points = load_dma_table().points
    assert {point.direction for point in points} == {"near to far", "far to near", "both"}
    for point in points:
        shares = [share for share in (point.near_share, point.far_share) if share is not None]
        assert len(shares) == (2 if point.direction == "both" else 1)
        assert min(shares) - 1e-9 <= point.share_of_peak <= max(shares) + 1e-9
        assert (point.rows_opened == 0) == (point.memories == "immediate")
        # A beat of the link carries a flit's 248 of 256 bytes; in 8 bits no more than twice of that.
        assert point.share_of_peak < 248 / 256 * (2 if point.compressed else 1)
