"""``nearkv study migration``: what memories with rows leave of the gain of 8 bits."""

from __future__ import annotations

from typing import Any

import pytest

from hw.tables.dma import DmaPoint, DmaTable
from sim.studies.migration_memory import measured_bus_share, memory_rows
from sim.studies.migration_rates import measured_shares
from sim.studies.migration_step import step_rows
from sim.system_config import load_system
from tests.helpers.dma_points import point

FORMAT_16, FORMAT_8 = 248 / 256 * 512 / 520, 248 / 256 * 512 / 272
FAR_BUS = (48 + 38 / 8) * 0.625 / 1.538
"""Counted in tests/hw/test_dma_memory.py."""


def _point(name: str, share: float, link: tuple[int, int], **changes: Any) -> DmaPoint:
    return point(name, share, compressed=name.endswith("8 bits"), link_beats=link, **changes)


def _table(*points: DmaPoint) -> DmaTable:
    return DmaTable(points=points, clock_ns=1.538, verilog_sha256="ab" * 32, seed=0, versions={})


def test_bounds_by_hand() -> None:
    rows = memory_rows(
        _table(
            _point("scattered", 0.4, (1, 1)),
            _point("scattered", 0.95, (2, 5)),
            _point("scattered", 0.95, (1, 8)),
            _point("scattered", 0.95, (1, 5)),
            _point("scattered, 8 bits", 0.5, (1, 1)),
            _point("scattered, 8 bits", 1.8, (1, 8)),
            _point("scattered, 8 bits", 1.78, (1, 5)),
            _point("scattered, 8 bits", 1.25, (2, 5)),
            _point("scattered, 8 bits", 1.7, (2, 5), memories="immediate"),
            _point("scattered, 8 bits", 1.5, (2, 5), direction="near to far", far_share=None),
        )
    )
    *others, bound, link = rows
    assert [row["link_beats"] for row in rows] == ["1/8", "1/5", "2/5", "1/5"]
    assert [row["reached"] for row in (*others, bound)] == [pytest.approx(FORMAT_8 / FORMAT_16)] * 3
    # 2 of 5 beats: the format lets 8 bits go every 22 cycles, the buses of the DIMMs every 21.4.
    assert bound["gain"] == pytest.approx(1.25 / 0.95)
    # 16 beats at 1.25 of 0.4 a cycle are 32 cycles.
    assert bound["far_bus"] == pytest.approx(FAR_BUS / 32)
    assert bound["near_bus"] == pytest.approx(14 / 32)
    # 1.78 of 0.95 are 1.87; a slot each way takes 32 cycles where the link does not matter, 1.85 times that in 16 bits.
    assert (link["reached"], link["unit"]) == (0.2, "beats a cycle")
    assert f"32.0 cycles for a slot each way, as long as 8 bits over {16 / 0.95 / 1.85 / 32:.2f} beats" in link["note"]
    assert {row["provenance"]["class"] for row in rows[:-1]} == {"modelled"}
    assert link["provenance"]["class"] == "measured-rtl"
    assert {row["asked"] for row in rows} == {None}


def test_buses_bound_what_the_format_would_let_through() -> None:
    """Three beats in seven cycles: 16 bits every 39.1 cycles, 8 bits every 20.5, were it not for the buses' 21.4."""
    bound, *_ = memory_rows(_table(_point("scattered", 0.9, (3, 7)), _point("scattered, 8 bits", 1.0, (3, 7))))
    assert bound["reached"] == pytest.approx(16 / FAR_BUS * 7 / 3 / FORMAT_16)
    assert bound["reached"] < 1.83


def test_steps_with_the_buses_share() -> None:
    """16 beats at 0.4 and at 0.5 of one a cycle are 40 and 32 cycles; moves take longer by what that leaves."""
    table = _table(
        _point("scattered", 0.4, (1, 1)),
        _point("scattered, 32 reads wait", 0.5, (1, 1)),
        _point("scattered", 0.9, (1, 1), memories="immediate"),
        *(_point(name, 0.9, (2, 5), memories="immediate") for name in ("scattered", "scattered, 8 bits")),
    )
    bus = measured_bus_share(table)
    assert bus is not None
    assert bus.share == pytest.approx(FAR_BUS / 32)
    assert measured_bus_share(_table(_point("scattered", 0.9, (2, 5)))) is None
    rows = {row["name"]: row for row in step_rows(load_system("pam"), measured_shares(table), bus)}
    name = "llama-3.1-70b, 131,072 x 16, keep 0.125"
    plain, slow = (rows[f"{name}: {manner}"] for manner in ("moved", "open rows"))
    assert slow["unhidden_us"] == pytest.approx(plain["unhidden_us"] / bus.share)
    # The same room hides it, and what is left over is waited for: above 1 % of this step.
    assert plain["within"] is True
    assert slow["within"] is False
    twice = rows[f"{name}: rows, each way"]
    assert twice["unhidden_us"] == pytest.approx(rows[f"{name}: each way"]["unhidden_us"] / bus.share)
    # Flash waits for programs, not for the buses.
    flash = "llama-3.1-70b, 131,072 x 64, keep 1"
    assert rows[f"{flash}: open rows"]["reached"] == pytest.approx(rows[f"{flash}: moved"]["reached"], rel=0.01)
