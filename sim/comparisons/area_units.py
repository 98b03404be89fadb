"""Synthesises the units and the device that :mod:`sim.comparisons.area` compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.comparisons.area import Areas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hw.area_rows import AreaRow
    from hw.liberty import Library
    from hw.synth_parts import CellArea, ModuleArea

__all__ = ["measure_areas"]

_UNITS = (
    ("pam-hbm", "processing"),
    ("pam-hbm", "reduction"),
    ("pam-ddr", "processing"),
    ("pam-ddr", "reduction"),
    ("pam-hbm", "finish"),
)


def measure_areas(library: Library, say: Callable[[str], None]) -> tuple[Areas, dict[str, str]]:
    """Return the areas, and the sha256 of the Verilog of each thing synthesised.

    Parameters
    ----------
    library : Library
        Cells.
    say : callable
        Told what is being synthesised.

    Raises
    ------
    hw.synth.SynthesisError, hw.toolchain.ToolError
        If a unit can't be synthesised.
    """
    from hw.area_split import split_area
    from hw.builds import digest
    from hw.device_verilog import device_parts
    from hw.synth_parts import module_areas, sum_areas
    from hw.verilog import generate

    def areas_of(name: str, text: str, top: str) -> list[ModuleArea]:
        say(f"synthesising {name}")
        hashes[name] = digest(text)
        return module_areas(text, top, library)

    def whole(found: Iterable[ModuleArea]) -> CellArea:
        return sum_areas(part for area in found for part in (area.logic, area.memory))

    hashes: dict[str, str] = {}
    parts = device_parts("pam")
    unit = parts[0].modules[0]
    found = {("pam", "processing"): areas_of("pam processing", unit.text(), unit.name)}
    for preset, name in _UNITS:
        source = generate(name, preset)
        found[preset, name] = areas_of(f"{preset} {name}", source.text, source.top)
    finish = found.pop(("pam-hbm", "finish"))
    softmax = [area for area in found["pam-hbm", "processing"] if "softmax" in area.path.split("/")]
    rows: dict[str, list[AreaRow]] = {}
    for part in parts:
        say(f"synthesising pam {part.name}")
        hashes[f"pam {part.name}"] = part.sha256()
        rows[part.name] = part.area_rows(library)
    splits = {key: split_area(areas, key[1]) for key, areas in found.items()}
    return Areas(splits, whole(softmax), whole(finish), rows, library.name), hashes
