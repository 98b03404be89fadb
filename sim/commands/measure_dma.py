"""What ``nearkv measure`` says of the rates of the DMA."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from hw.tables.dma import DmaPoint, DmaTable

__all__ = ["dma_entry", "dma_rates_table"]


def dma_entry(table: DmaTable) -> dict[str, Any]:
    """Return what ``--json`` says of the DMA."""
    return {
        "clock_ns": table.clock_ns,
        "points": [asdict(point) | {"share_of_peak": point.share_of_peak} for point in table.points],
        "verilog_sha256": table.verilog_sha256,
        "provenance": "measured-rtl",
        "versions": dict(table.versions),
    }


def dma_rates_table(table: DmaTable) -> Table:
    """Return the rates for people, both ends' shares of the link's peak beside each other."""
    shown = Table(title="rates of the DMA, share of the link's peak [measured-rtl]", title_justify="left")
    for column in ("moved", "direction", "memories"):
        shown.add_column(column)
    for column in ("link", "near sends", "far sends", "cycles a token", "rows a token", "lone token"):
        shown.add_column(column, justify="right")
    for point in table.points:
        shown.add_row(*_cells(point))
    return shown


def _cells(point: DmaPoint) -> list[str]:
    ways = 2 if point.direction == "both" else 1
    beats, cycles = point.link_beats
    return [
        point.name,
        point.direction,
        point.memories,
        f"{beats} of {cycles}",
        *("-" if share is None else f"{100 * share:.1f} %" for share in (point.near_share, point.far_share)),
        f"{point.cycles * ways / point.tokens:.1f}",
        f"{point.rows_opened * ways / point.tokens:.1f}" if point.rows_opened else "-",
        f"{point.lone_cycles} cycles",
    ]
