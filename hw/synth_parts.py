"""Area of a design module by module: alike ones are synthesised once, memories apart from the logic around them.

Every module goes through the flow of :mod:`hw.synth` by itself, the modules inside it being boxes, and what is alike is
counted (:mod:`hw.verilog_modules`). So a channel of 64 processing units takes a minute, not a day, and an area says
where it lies. What that loses is logic that synthesis would share or drop across a module's borders: parts sum to 1 to
4 % more than the unit flattened (``tests/hw/test_synth_parts.py`` holds 5 %). The memory of a module is its arrays,
with their address decoders, read multiplexers and registers of read ports; it is made of flip-flops.

Results are kept by the text of the module, the library, the flow and the tool.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hw.abc_scripts import SCRIPTS
from hw.builds import build_root, digest, replace_text
from hw.synth import SynthesisError, run_yosys, yosys_version
from hw.verilog_modules import VerilogModules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hw.liberty import Library

__all__ = ["CellArea", "ModuleArea", "module_areas", "placed_modules", "sum_areas"]

_FLOW = """\
read_verilog -sv unit.v
synth -noabc -run begin:fine
setattr -set submod "memory" t:$mem_v2
submod
synth -noabc -run fine:check
dfflibmap -liberty cells.lib
abc -liberty cells.lib -script commands.abc
opt_clean
write_json netlist.json
"""


@dataclass(frozen=True)
class CellArea:
    """Cells of a library.

    Parameters
    ----------
    area_ge : float
        Area over that of the library's smallest two-input NAND.
    area_um2 : float or None
        Area in the library's unit; None for a library of gate equivalents.
    cells, flip_flops : int
        Cells in all, and those of them that are flip-flops.
    """

    area_ge: float
    area_um2: float | None
    cells: int
    flip_flops: int

    def times(self, count: int) -> CellArea:
        """Return ``count`` times these cells."""
        area_um2 = None if self.area_um2 is None else count * self.area_um2
        return CellArea(count * self.area_ge, area_um2, count * self.cells, count * self.flip_flops)


def sum_areas(areas: Iterable[CellArea]) -> CellArea:
    """Return all cells together; of none, no cells and no um2."""
    found = list(areas)
    known = [area.area_um2 for area in found if area.area_um2 is not None]
    return CellArea(
        sum(area.area_ge for area in found),
        sum(known) if known else None,
        sum(area.cells for area in found),
        sum(area.flip_flops for area in found),
    )


@dataclass(frozen=True)
class ModuleArea:
    """A module where it stands in a design, those inside it left out.

    Parameters
    ----------
    path : str
        Instances from the top to it, each behind a ``/``; empty for the top itself.
    module : str
        Name of the module.
    logic, memory : CellArea
        Everything but its memories; its memories.
    """

    path: str
    module: str
    logic: CellArea
    memory: CellArea


def module_areas(verilog: str, top: str, library: Library, *, script: str = "quick") -> list[ModuleArea]:
    """Return the area of every module of a design, as often as it stands there, those above before those inside.

    Parameters
    ----------
    verilog : str
        Complete Verilog text as :func:`hw.verilog.convert` writes it.
    top : str
        Name of its top module.
    library : Library
        Cells.
    script : str
        Key of :data:`hw.abc_scripts.SCRIPTS`.

    Raises
    ------
    SynthesisError
        If Yosys refuses the Verilog, or a module is not there.
    ToolError
        If ``pyosys`` is not installed.
    ValueError
        If there is no such script, or two modules have one name.
    """
    if script not in SCRIPTS:
        raise ValueError(f"script must be one of {', '.join(SCRIPTS)}, not {script!r}")
    modules = VerilogModules.parse(verilog)
    placed = placed_modules(modules, top)
    kinds = {modules.kind(name): name for _, name in placed}
    causes = _causes(library, script)
    found = {kind: build_root() / "synth-parts" / f"{kind}-{causes[:16]}.json" for kind in kinds}
    missing = {kind: kinds[kind] for kind, path in found.items() if not path.exists()}
    for kind, area in _synthesise(modules, missing, library, script).items():
        found[kind].parent.mkdir(parents=True, exist_ok=True)
        replace_text(found[kind], json.dumps([asdict(part) for part in area]))
    areas = {kind: tuple(CellArea(**part) for part in json.loads(path.read_text())) for kind, path in found.items()}
    return [ModuleArea(path, name, *areas[modules.kind(name)]) for path, name in placed]


def placed_modules(modules: VerilogModules, top: str) -> list[tuple[str, str]]:
    """Return path and name of every module from ``top`` on, those above before those inside."""
    found: list[tuple[str, str]] = []

    def visit(path: str, name: str) -> None:
        if name not in modules.texts:
            raise SynthesisError(f"{top} can't be synthesised: module {name} is not part of the design")
        found.append((path, name))
        for instance, child in modules.instances(name):
            visit(f"{path}/{instance}", child)

    visit("", top)
    return found


def _causes(library: Library, script: str) -> str:
    """Return the hash of everything but the module that its area follows from."""
    program = (Path(__file__).parent / module for module in ("synth_parts.py", "verilog_modules.py"))
    return digest(library.sha256, yosys_version(), _FLOW, *SCRIPTS[script], *(path.read_text() for path in program))


def _synthesise(
    modules: VerilogModules, kinds: Mapping[str, str], library: Library, script: str
) -> dict[str, tuple[CellArea, CellArea]]:
    """Return logic and memory of one module of each kind, all synthesised in one run."""
    if not kinds:
        return {}
    texts, stubs = [], {}
    for kind, name in kinds.items():
        # Ports of alike modules may be numbered: each module inside has a box of its own.
        inside = dict.fromkeys(child for _, child in modules.instances(name))
        names = {child: f"box_{kind}_{number}" for number, child in enumerate(inside)}
        stubs |= {called: modules.stub(child, called) for child, called in names.items()}
        texts.append(modules.with_names(name, names | {name: f"part_{kind}"}))
    files = {
        "unit.v": "".join([*stubs.values(), *texts]),
        "cells.lib": library.text,
        "commands.abc": "\n".join(SCRIPTS[script]) + "\n",
    }
    document = run_yosys(f"{len(kinds)} modules", _FLOW, files)
    return {
        kind: (
            _cells(document, f"part_{kind}", library, {*stubs, f"part_{kind}_memory"}),
            _cells(document, f"part_{kind}_memory", library, set()),
        )
        for kind in kinds
    }


def _cells(document: Mapping[str, Any], module: str, library: Library, boxes: set[str]) -> CellArea:
    """Return the cells of a module of what Yosys wrote, without boxes; none if it is not there."""
    kinds = Counter(cell["type"] for cell in document["modules"].get(module, {"cells": {}})["cells"].values())
    area, cells, flip_flops = 0.0, 0, 0
    for kind, count in kinds.items():
        if kind in boxes or kind == "$scopeinfo":
            continue
        if kind not in library.cells:
            raise SynthesisError(f"{module} can't be mapped: library {library.name} has no cell for {kind}")
        area += count * library.cells[kind].area
        cells += count
        flip_flops += count * (library.cells[kind].flip_flop is not None)
    return CellArea(area / library.gate_area, None if library.relative else area, cells, flip_flops)
