"""Area of one end of the DMA beside the units whose tokens it moves.

PAM prints 0.85 mm2 for its interface and 8.16 mm2 for the 64 processing and 8 reduction units of a drive's controller,
both in the same process of 14 nm: the ratio is what can be compared. Ours are Yosys netlists before layout, module by
module (:mod:`hw.synth_parts`); arrays are flip-flops, in the DMA and in the units alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.provenance import Part, combine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hw.liberty import Library
    from hw.synth_parts import CellArea

__all__ = ["PAM_RATIO", "UNITS", "area_rows", "measure_areas"]

UNITS = {"processing": ("pam-ssd", 64), "reduction": ("pam-ssd", 8), "dma": ("pam-root", 1)}
"""Units, each with its preset and how many a controller of PAM has."""

PAM_RATIO = 0.85 / 8.16
"""Interface over processing and reduction units of a controller, as PAM prints both."""

_SOURCE = "arXiv:2602.11521, section 7.5: 0.85 mm2 beside 8.16 mm2 of 64 PU and 8 RU, 14 nm"


def measure_areas(library: Library, say: Callable[[str], None]) -> dict[str, tuple[CellArea, CellArea, str]]:
    """Return of each unit its area, the part of it that is arrays, and the sha256 of its Verilog.

    Parameters
    ----------
    library : Library
        Cells.
    say : callable
        Told what is being synthesised; what was synthesised before is kept.

    Raises
    ------
    hw.synth.SynthesisError, hw.toolchain.ToolError
        If a unit can't be synthesised.
    """
    from hw.synth_parts import module_areas, sum_areas
    from hw.verilog import generate

    found: dict[str, tuple[CellArea, CellArea, str]] = {}
    for unit, (preset, _) in UNITS.items():
        say(f"area of {unit} at the sizes of {preset}")
        source = generate(unit, preset)
        areas = module_areas(source.text, source.top, library)
        memory = sum_areas(area.memory for area in areas)
        found[unit] = (sum_areas([*(area.logic for area in areas), memory]), memory, source.sha256)
    return found


def area_rows(areas: Mapping[str, tuple[CellArea, CellArea, str]], library: str) -> list[dict[str, Any]]:
    """Return the areas in gate equivalents, and the DMA over the units beside PAM's ratio.

    Parameters
    ----------
    areas : mapping
        As :func:`measure_areas` gives them.
    library : str
        Name and hash of the cells.
    """
    cells = Part("cells", "literature", f"library {library}")
    wires = Part("wires", "modelled", "none: before layout, no wire loads, no clock tree")
    parts = {
        unit: Part(unit, "measured-rtl", f"Yosys netlists of Verilog {sha256}, module by module")
        for unit, (_, _, sha256) in areas.items()
    }
    rows = [
        {
            "kind": "area",
            "name": f"{unit} of {UNITS[unit][0]}",
            "asked": None,
            "reached": area.area_ge,
            "unit": "GE",
            "within": None,
            "note": f"arrays {memory.area_ge:,.0f}, {area.flip_flops:,} flip-flops",
            "area_um2": area.area_um2,
            "provenance": combine([parts[unit], cells, wires]).to_dict(),
        }
        for unit, (area, memory, _) in areas.items()
    ]
    units = sum(UNITS[unit][1] * areas[unit][0].area_ge for unit in ("processing", "reduction"))
    ratio = areas["dma"][0].area_ge / units
    rows.append(
        {
            "kind": "area",
            "name": "DMA over 64 PU and 8 RU",
            "asked": PAM_RATIO,
            "reached": ratio,
            "unit": "1",
            "within": ratio <= PAM_RATIO,
            "note": f"{_SOURCE}; {units:,.0f} GE of units",
            "area_um2": None,
            "provenance": combine([*parts.values(), cells, wires]).to_dict(),
        }
    )
    return rows
