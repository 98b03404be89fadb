"""Area of processing and reduction units beside what PAM and SoftEx print.

Reference: table 2 and section 7.5 of arXiv:2602.11521, Synopsys Design Compiler, units of HBM and DDR in DRAM
processes; SoftEx as its RTL was synthesised with the flow of this project's exponential study. Ours are Yosys netlists
before layout, each distinct module synthesised by itself. Shares and ratios of units can be compared across libraries
and processes; square millimetres can't, and stand beside only where a library has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hw.synth_parts import sum_areas
from sim.comparisons.row import comparison_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hw.area_rows import AreaRow
    from hw.area_split import AreaSplit
    from hw.synth_parts import CellArea

__all__ = ["TOLERANCE", "Areas", "area_lines", "area_rows", "splits_record"]

TOLERANCE = 0.2
"""Relative difference above which a row's note says why."""

_PAM = "arXiv:2602.11521, table 2 and section 7.5"
_SPLIT = {"datapath": 0.67, "buffer": 0.11, "control": 0.22}
_PU_MM2, _RU_MM2 = 0.13, 0.18
_DDR_PU_MM2, _DDR_RU_MM2 = 0.46, 0.68
_UNITS, _MERGERS = 64, 16
_SOFTEX_GE = 98_100.0
_SOFTEX = "belanoa/softex 77f219db, softex_datapath of 8 lanes in IHP sg13g2, synthesised here"

_FLIP_FLOPS = "arrays are flip-flops and multiplexers here, no memory cells, and hold fp32 sums"
_WHY_SPLIT = {
    "datapath": "what buffer and control leave of the area, see there",
    "buffer": _FLIP_FLOPS,
    "control": "pipeline registers count as datapath here, and a channel's rows are walked by one sequencer, not in "
    "every unit",
}


@dataclass(frozen=True)
class Areas:
    """What was synthesised.

    Parameters
    ----------
    splits : mapping of (str, str) to AreaSplit
        By preset and unit: ``processing`` of the device ``pam``, ``processing`` and ``reduction`` of ``pam-hbm`` and
        ``pam-ddr``.
    softmax, finish : CellArea
        The softmax of the processing unit of ``pam-hbm``, and its finish unit.
    parts : mapping of str to sequence of AreaRow
        Parts of the device ``pam``.
    library : str
        Cells.
    """

    splits: Mapping[tuple[str, str], AreaSplit]
    softmax: CellArea
    finish: CellArea
    parts: Mapping[str, Sequence[AreaRow]]
    library: str

    def unit(self, preset: str, unit: str) -> CellArea:
        """Return the area of a unit."""
        return self.splits[preset, unit].total


def area_rows(areas: Areas) -> list[dict[str, Any]]:
    """Return the rows of the comparison."""
    rows = [
        _row(f"PU of {preset}: {kind}", share, areas.splits[preset, "processing"].share(kind), "of its area", why)
        for preset in ("pam", "pam-hbm")
        for (kind, share), why in zip(_SPLIT.items(), _WHY_SPLIT.values(), strict=True)
    ]
    reduction = areas.splits["pam-hbm", "reduction"]
    rows.append(_row("RU of pam-hbm: compute", 0.83, reduction.share("datapath"), "of its area", _FLIP_FLOPS))
    why = "PAM's RU has 4 exponential units and a logarithm, ours one exponential, and the root alone divides; "
    for preset, unit_mm2, merger_mm2 in (
        ("pam-hbm", _PU_MM2, _RU_MM2),
        ("pam-ddr", _DDR_PU_MM2, _DDR_RU_MM2),
    ):
        ratio = areas.unit(preset, "reduction").area_ge / areas.unit(preset, "processing").area_ge
        lanes = "its RU has 16 lanes, ours 4" if preset == "pam-ddr" else "our PU's fp32 buffers are flip-flops"
        rows.append(_row(f"RU over PU of {preset}", merger_mm2 / unit_mm2, ratio, "1", why + lanes))
    channel = sum_areas(
        [areas.unit("pam-hbm", "processing").times(_UNITS), areas.unit("pam-hbm", "reduction").times(_MERGERS)]
    )
    rows.append(
        _row(
            f"channel of {_UNITS} PU and {_MERGERS} RU",
            (_UNITS * _PU_MM2 + _MERGERS * _RU_MM2) / _PU_MM2,
            channel.area_ge / areas.unit("pam-hbm", "processing").area_ge,
            "PUs",
            "as RU over PU",
        )
    )
    rows.append(
        _row(
            f"channel of {_UNITS} PU and {_MERGERS} RU",
            _UNITS * _PU_MM2 + _MERGERS * _RU_MM2,
            None if channel.area_um2 is None else channel.area_um2 / 1e6,
            "mm2",
            f"another process: theirs one of DRAM, ours {areas.library}, before layout",
        )
    )
    both = areas.softmax.area_ge + areas.finish.area_ge
    rows.append(
        comparison_row(
            "softmax of a PU and finish unit",
            _SOFTEX_GE,
            both,
            unit="GE",
            source=_SOFTEX,
            within=_near(both / _SOFTEX_GE),
            note=f"theirs takes 8 bf16 scores a cycle; of ours the softmax, one fp32 score a cycle, has "
            f"{areas.softmax.area_ge:,.0f} GE, the finish unit with its 16 fp32 lanes {areas.finish.area_ge:,.0f}",
        )
    )
    return rows


def area_lines(areas: Areas) -> list[str]:
    """Return what stands under the rows: our own channel, of which nothing is published."""
    lines: list[str] = []
    for part, rows in areas.parts.items():
        total = sum(row.total.area_ge for row in rows)
        listed = ", ".join(f"{row.count} {row.name.removeprefix('nearkv_')} of {row.each_ge:,.0f}" for row in rows)
        lines.append(f"{part} of pam: {total:,.0f} GE a channel: {listed}")
    return [*lines, f"areas with {areas.library}, before layout; 'holds' is a difference of at most {TOLERANCE:.0%}"]


def splits_record(areas: Areas) -> list[dict[str, Any]]:
    """Return the splits as they stand in the JSON."""
    return [
        {
            "preset": preset,
            "unit": unit,
            "area_ge": split.total.area_ge,
            "area_um2": split.total.area_um2,
            "flip_flops": split.total.flip_flops,
            **{f"{kind}_ge": getattr(split, kind).area_ge for kind in _SPLIT},
        }
        for (preset, unit), split in areas.splits.items()
    ]


def _row(name: str, reference: float, ours: float | None, unit: str, why: str) -> dict[str, Any]:
    """Return a row whose note gives the reason where the numbers are far apart."""
    near = ours is not None and _near(ours / reference)
    note = "a library without um2: take one with --liberty" if ours is None else "" if near else why
    return comparison_row(name, reference, ours, unit=unit, source=_PAM, within=near, note=note)


def _near(ratio: float) -> bool:
    return abs(ratio - 1) <= TOLERANCE
