"""Reads of a liberty file what area and delay need: cells, their functions, capacitances and timing tables.

The *gate equivalent* (GE) of a library is the area of its smallest two-input NAND. Its *NAND2 delay* is the
delay of that gate in an endless chain of its like in which each drives two inputs: input transitions are those
of the chain itself, and rising and falling outputs and both inputs are averaged. By the method of logical
effort that is 14/15 of a fan-out-of-four inverter (parasitic 2 and effort 2 * 4/3, against 1 and 4), so one
NAND2 delay of any library is about the FO4 of its process.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from hw.boolean import Function, parse_function
from hw.liberty_groups import Group, LibertyError, parse_groups
from hw.liberty_timing import Arc, read_arcs

__all__ = ["GENERIC", "Cell", "LibertyError", "Library", "read_library"]

GENERIC = Path(__file__).parent / "libraries" / "nearkv_generic.lib"
"""Our own library, for those who have no other: areas in gate equivalents, delays in NAND2 delays."""

_PICOSECONDS = {"ps": 1.0, "ns": 1e3, "us": 1e6}
_CHAIN_LOADS = 2
_CHAIN_STEPS = 40


@dataclass(frozen=True)
class Cell:
    """One cell.

    Parameters
    ----------
    name : str
        Name in netlists.
    area : float
        In the library's unit.
    capacitance : dict of str to float
        Load that each input pin is.
    functions : dict of str to Function
        Of output pins that have one; a flip-flop's name its internal state.
    arcs : dict of str to tuple of Arc
        By output pin; setup arcs by data pin.
    flip_flop : tuple of str or None
        State variable and its inverse, clock and next-state expression, for a flip-flop.
    sequential : bool
        Flip-flop, latch or clock gate.
    usable : bool
        Not marked ``dont_use``.
    """

    name: str
    area: float
    capacitance: dict[str, float] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    arcs: dict[str, tuple[Arc, ...]] = field(default_factory=dict)
    flip_flop: tuple[str, str, str, str] | None = None
    sequential: bool = False
    usable: bool = True

    @functools.cached_property
    def next_state(self) -> Function:
        """What a flip-flop takes over at its clock edge."""
        assert self.flip_flop is not None
        return parse_function(self.flip_flop[3])

    @property
    def is_nand2(self) -> bool:
        """Whether the cell's only output is the NAND of its only two inputs, however its function is written."""
        if self.sequential or len(self.functions) != 1 or len(self.capacitance) != 2:
            return False
        (function,) = self.functions.values()
        inputs = sorted(self.capacitance)
        return set(function.inputs) == set(inputs) and function.truth_table(inputs) == 0b0111


@dataclass(frozen=True)
class Library:
    """One liberty file.

    Parameters
    ----------
    name : str
        As the file calls itself.
    text : str
        The file, unpacked.
    sha256 : str
        Hash of ``text``; libraries of the same hash are the same.
    cells : dict of str to Cell
        All cells.
    relative : bool
        Areas are gate equivalents and times NAND2 delays; then there are no um2 and ns.
    nanoseconds : float
        The library's unit of time.
    nand2 : Cell
        The smallest NAND of two inputs: one gate equivalent.
    nand2_delay, nand2_slew : float
        Delay and output transition in a chain (see the module), in the library's unit of time.
    """

    name: str
    text: str = field(repr=False)
    sha256: str
    cells: dict[str, Cell] = field(repr=False)
    relative: bool
    nanoseconds: float
    nand2: Cell = field(repr=False)
    nand2_delay: float
    nand2_slew: float

    @property
    def gate_area(self) -> float:
        """Area of one gate equivalent, in the library's unit."""
        return self.nand2.area

    @property
    def chain_load(self) -> float:
        """Load of two inputs of the smallest NAND; what an output of a unit is taken to drive."""
        return _CHAIN_LOADS * max(self.nand2.capacitance.values())


def read_library(path: Path | None = None) -> Library:
    """Return the library at ``path``, plain or gzipped; :data:`GENERIC` by default.

    Raises
    ------
    LibertyError
        If there is no such file, it is no liberty file, or it has no NAND of two inputs or no flip-flop. One line.
    """
    path = GENERIC if path is None else Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LibertyError(f"liberty file {path} can't be read: {error.strerror}") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise LibertyError(f"liberty file {path} can't be unpacked: {error}") from None
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n")
    try:
        return _library(text)
    except LibertyError as error:
        raise LibertyError(f"liberty file {path}: {error}") from None


@functools.lru_cache(maxsize=4)
def _library(text: str) -> Library:
    top = parse_groups(text)
    templates = {group.label: group for group in top.groups("lu_table_template")}
    default = float(top.attributes.get("default_input_pin_cap", 0.0))
    try:
        cells = {cell.name: cell for cell in (_cell(group, templates, default) for group in top.groups("cell"))}
    except LibertyError:
        raise
    except ValueError as error:
        raise LibertyError(f"a cell can't be read: {error}") from None
    nands = [cell for cell in cells.values() if cell.is_nand2 and cell.usable and cell.area > 0]
    if not nands:
        raise LibertyError(f"library {top.label} has no NAND of two inputs with an area, which gate equivalents need")
    if not any(cell.flip_flop and cell.usable for cell in cells.values()):
        raise LibertyError(f"library {top.label} has no flip-flop")
    nand2 = min(nands, key=lambda cell: (cell.area, cell.name))
    delay, slew = _chain(nand2)
    unit = re.fullmatch(r"([\d.]+)([a-z]+)", top.attributes.get("time_unit", "1ns"))
    if unit is None or unit[2] not in _PICOSECONDS:
        raise LibertyError(f"time_unit must be like 1ns, not {top.attributes['time_unit']!r}")
    return Library(
        name=top.label,
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        cells=cells,
        relative=top.attributes.get("relative_units") == "true",
        nanoseconds=float(unit[1]) * _PICOSECONDS[unit[2]] / 1e3,
        nand2=nand2,
        nand2_delay=delay,
        nand2_slew=slew,
    )


def _chain(nand2: Cell) -> tuple[float, float]:
    """Return delay and transition of the gate in a chain of its like; see the module."""
    (arcs,) = ([arc for arc in arcs if arc.kind == "combinational"] for arcs in nand2.arcs.values())
    if not arcs:
        raise LibertyError(f"cell {nand2.name} has no timing")
    load = _CHAIN_LOADS * max(nand2.capacitance.values())
    slew = delay = 0.0
    for _ in range(_CHAIN_STEPS):
        delays = [table.at(slew, load) for arc in arcs for table in (arc.rise, arc.fall)]
        slews = [table.at(slew, load) for arc in arcs for table in (arc.rise_slew, arc.fall_slew)]
        delay, slew = sum(delays) / len(delays), sum(slews) / len(slews)
    return delay, slew


def _cell(group: Group, templates: dict[str, Group], default_capacitance: float) -> Cell:
    capacitance: dict[str, float] = {}
    functions: dict[str, Function] = {}
    arcs: dict[str, tuple[Arc, ...]] = {}
    for pin in group.groups("pin"):
        for name in pin.labels:
            if pin.attributes.get("direction") == "input":
                capacitance[name] = float(pin.attributes.get("capacitance", default_capacitance))
            elif "function" in pin.attributes:
                functions[name] = parse_function(pin.attributes["function"])
            found = [arc for timing in pin.groups("timing") for arc in read_arcs(timing, templates)]
            if found:
                arcs[name] = tuple(found)
    flip_flop = None
    for kind in group.groups("ff"):
        state, inverse = (*kind.labels, "", "")[:2]
        flip_flop = (state, inverse, kind.attributes.get("clocked_on", ""), kind.attributes.get("next_state", ""))
    others = any(True for name in ("latch", "statetable", "ff_bank", "latch_bank") for _ in group.groups(name))
    return Cell(
        name=group.label,
        area=float(group.attributes.get("area", 0.0)),
        capacitance=capacitance,
        functions=functions,
        arcs=arcs,
        flip_flop=flip_flop,
        sequential=flip_flop is not None or others or "clock_gating_integrated_cell" in group.attributes,
        usable=group.attributes.get("dont_use") != "true",
    )
