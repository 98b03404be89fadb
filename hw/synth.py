"""Synthesis with the Yosys of the ``pyosys`` wheel: area, cells, flip-flops and delay in any liberty library.

The flow is ``synth -flatten -noabc``, ``dfflibmap``, then abc with a script of :mod:`hw.abc_scripts`. It runs in a
process of its own, because the library prints and cannot be used twice at once. What it made is kept under the
build folder by the hash of Verilog, library, script and tool version, so that a second run takes milliseconds.

Two versions of Yosys differ by 3.5 % on the same unit: differences below 5 % are no evidence. Delays are those of
:mod:`hw.static_timing`, without wires.
"""

from __future__ import annotations

import functools
import gzip
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hw.abc_scripts import SCRIPTS
from hw.builds import build_root, digest, replace_text
from hw.liberty import Library, read_library
from hw.netlist import Netlist, NetlistError
from hw.static_timing import analyse
from hw.toolchain import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Synthesis",
    "SynthesisError",
    "kept_file",
    "mapped_netlist",
    "measure",
    "run_yosys",
    "synthesise",
    "yosys_version",
]

_FLOW = """\
read_verilog -sv unit.v
synth -flatten -noabc -top {top}
dfflibmap -liberty cells.lib
abc -liberty cells.lib -script commands.abc
opt_clean
write_json netlist.json
"""
_RUN = "import sys\nfrom pyosys import libyosys\nlibyosys.run_pass('script flow.ys', libyosys.Design())\n"


class SynthesisError(RuntimeError):
    """A unit can't be synthesised; the message is one line with the tool's complaint."""


@dataclass(frozen=True)
class Synthesis:
    """One synthesised unit.

    Parameters
    ----------
    top : str
        Module.
    area_ge : float
        Area over that of the library's smallest two-input NAND.
    area_um2 : float or None
        Area in the library's unit, um2 in all we know; None for a library of gate equivalents.
    cells, flip_flops : int
        Cells in all, and those of them that are flip-flops.
    flip_flop_ge : float
        Part of the area that is flip-flops.
    delay_nand2 : float
        Longest path (see :mod:`hw.static_timing`) in the library's NAND2 delays (see :mod:`hw.liberty`).
    delay_ns : float or None
        The same in nanoseconds; None for a library of NAND2 delays.
    nand2_ns : float or None
        One NAND2 delay.
    library, library_sha256 : str
        The library.
    yosys : str
        Version of ``pyosys``.
    script : str
        Key of :data:`hw.abc_scripts.SCRIPTS`.
    verilog_sha256 : str
        Hash of the Verilog.
    """

    top: str
    area_ge: float
    area_um2: float | None
    cells: int
    flip_flops: int
    flip_flop_ge: float
    delay_nand2: float
    delay_ns: float | None
    nand2_ns: float | None
    library: str
    library_sha256: str
    yosys: str
    script: str
    verilog_sha256: str

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name."""
        return asdict(self)


def synthesise(verilog: str, top: str, library: Library | Path | None = None, *, script: str = "area") -> Synthesis:
    """Synthesise a unit, or return what an earlier run found.

    Parameters
    ----------
    verilog : str
        Complete Verilog text.
    top : str
        Name of its top module.
    library : Library, Path or None
        Liberty file; :data:`hw.liberty.GENERIC` by default.
    script : str
        Key of :data:`hw.abc_scripts.SCRIPTS`.

    Raises
    ------
    LibertyError
        If the library can't be used.
    SynthesisError
        If Yosys refuses the Verilog, ends early, or leaves cells that the library does not have.
    ToolError
        If ``pyosys`` is not installed.
    ValueError
        If there is no such script.
    """
    library = library if isinstance(library, Library) else read_library(library)
    kept = kept_file(verilog, top, library, script, "synthesis")
    if kept.exists():
        return Synthesis(**json.loads(kept.read_text()))
    netlist = mapped_netlist(verilog, top, library, script=script)
    synthesis = measure(netlist, top, library, verilog=verilog, script=script)
    replace_text(kept, json.dumps(synthesis.to_dict()))
    return synthesis


def measure(netlist: Netlist, top: str, library: Library, *, verilog: str, script: str) -> Synthesis:
    """Return area and delay of a netlist that ``script`` made of ``verilog``, or that was made of that netlist."""
    try:
        delay = analyse(netlist, library).delay
    except NetlistError as error:
        raise SynthesisError(f"{top} can't be timed: {error}") from None
    area = netlist.area(library)
    flip_flops = sum(cell.area for _, cell in netlist.with_library(library) if cell.flip_flop)
    absolute = not library.relative
    return Synthesis(
        top=top,
        area_ge=area / library.gate_area,
        area_um2=area if absolute else None,
        cells=len(netlist.instances),
        flip_flops=netlist.flip_flops(library),
        flip_flop_ge=flip_flops / library.gate_area,
        delay_nand2=delay / library.nand2_delay,
        delay_ns=delay * library.nanoseconds if absolute else None,
        nand2_ns=library.nand2_delay * library.nanoseconds if absolute else None,
        library=library.name,
        library_sha256=library.sha256,
        yosys=yosys_version(),
        script=script,
        verilog_sha256=digest(verilog),
    )


def mapped_netlist(verilog: str, top: str, library: Library, *, script: str = "area") -> Netlist:
    """Return the netlist in cells of ``library``; parameters and errors as :func:`synthesise`."""
    kept = _folder(verilog, top, library, script) / "netlist.json.gz"
    if not kept.exists():
        netlist = _run(verilog, top, library, script)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
            file.write(gzip.compress(json.dumps(netlist.to_dict()).encode(), mtime=0))
        Path(file.name).replace(kept)
    return Netlist.from_dict(json.loads(gzip.decompress(kept.read_bytes())))


@functools.cache
def yosys_version() -> str:
    """Return the version of ``pyosys``.

    Raises
    ------
    ToolError
        If it is not installed.
    """
    if importlib.util.find_spec("pyosys") is None:
        raise ToolError("synthesis needs the Python package pyosys: pip install pyosys==0.70")
    return importlib.metadata.version("pyosys")


def kept_file(verilog: str, top: str, library: Library, script: str, *kind: str) -> Path:
    """Return where a result of that kind is kept; the name follows from the program that computes it, too."""
    return _folder(verilog, top, library, script) / f"{kind[0]}-{digest(_program(), *kind)[:16]}.json"


@functools.cache
def _program() -> str:
    """Return the hash of the modules that make figures of a netlist."""
    names = ("boolean", "cuts", "liberty", "liberty_timing", "netlist", "pipelining", "static_timing", "synth")
    return digest(*((Path(__file__).parent / f"{name}.py").read_text() for name in names))


def _folder(verilog: str, top: str, library: Library, script: str) -> Path:
    if script not in SCRIPTS:
        raise ValueError(f"script must be one of {', '.join(SCRIPTS)}, not {script!r}")
    key = digest(verilog, top, library.sha256, yosys_version(), _FLOW, *SCRIPTS[script])
    return build_root() / "synth" / key[:32]


def run_yosys(what: str, flow: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Run a script of Yosys in a folder of its own and return the ``netlist.json`` that it writes.

    Parameters
    ----------
    what : str
        What is synthesised, for the complaint.
    flow : str
        Commands.
    files : mapping of str to str
        Texts that they read, by name.

    Raises
    ------
    SynthesisError
        If it fails.
    """
    with tempfile.TemporaryDirectory(prefix="nearkv-synth-") as name:
        work = Path(name)
        for file, text in (*files.items(), ("flow.ys", flow)):
            (work / file).write_text(text)
        with (work / "log").open("w") as log:
            done = subprocess.run([sys.executable, "-c", _RUN], cwd=work, stdout=log, stderr=log, check=False)
        complaint = _complaint((work / "log").read_text(errors="replace"))
        netlist = work / "netlist.json"
        if done.returncode or not netlist.exists():
            raise SynthesisError(f"Yosys can't synthesise {what}: {complaint or f'it ended with {done.returncode}'}")
        return json.loads(netlist.read_text())


def _run(verilog: str, top: str, library: Library, script: str) -> Netlist:
    files = {"unit.v": verilog, "cells.lib": library.text, "commands.abc": "\n".join(SCRIPTS[script]) + "\n"}
    document = run_yosys(top, _FLOW.format(top=top), files)
    try:
        return Netlist.from_yosys(document, top, library)
    except NetlistError as error:
        raise SynthesisError(f"{top} can't be mapped: {error}") from None


def _complaint(log: str) -> str:
    """Return the line of the log that says what went wrong, or the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line]
    return (errors or lines or [""])[-1]
