"""Area and delay of an exponential unit: as it stands, and pipelined for a clock."""

from __future__ import annotations

import hashlib
import inspect
import json
from importlib import metadata
from typing import TYPE_CHECKING, Any

from golden.exp.catalogue import LARGE_UNITS
from sim.studies.kept import kept

if TYPE_CHECKING:
    from pathlib import Path

    from golden.exp import ExpSpec
    from hw.liberty import Library

__all__ = ["CLOCKS_NS", "area_columns", "pipelines"]

CLOCKS_NS = (1.5, 3.0, 6.0)
"""Clock periods for which the smallest pipelined unit is looked for: 666 MHz, the processing unit's, and slower."""

_REFERENCE_NAND2_NS = 0.0553
"""NAND2 delay of IHP's sg13g2 at 1.2 V, typical, as :mod:`hw.liberty` finds it: what the clocks are in NAND2 delays
for a library that has no nanoseconds."""


_NOTHING: dict[str, Any] = dict.fromkeys(("registers", "flip_flops", "area_ge", "delay_nand2", "delay_ns"))


def area_columns(spec: ExpSpec, verilog: str, top: str, liberty: Path | None) -> dict[str, Any]:
    """Return the part of a row that synthesis gives.

    Parameters
    ----------
    spec : ExpSpec
        The unit.
    verilog, top : str
        Its Verilog and the name of its top module.
    liberty : Path or None
        Cell library; None is the technology-neutral one of the package, which knows neither um2 nor ns.

    Returns
    -------
    dict
        Area, cells, flip-flops and delay as synthesised, and results per time and area at that delay; ``pipelined`` as
        :func:`pipelines` gives it, with nothing found yet. ``abc_script`` is ``quick``, whose areas are 2 to 8 %
        larger, for :data:`golden.exp.catalogue.LARGE_UNITS`, else ``area``.
    """
    from hw.liberty import read_library
    from hw.synth import synthesise

    library = read_library(liberty)
    script = "quick" if spec.name in LARGE_UNITS else "area"
    found = synthesise(verilog, top, library, script=script)
    results = 1.0 / (found.delay_nand2 * spec.interval_cycles * found.area_ge)
    return {
        "area_ge": found.area_ge,
        "area_um2": found.area_um2,
        "cells": found.cells,
        "flip_flops": found.flip_flops,
        "delay_ns": found.delay_ns,
        "delay_nand2": found.delay_nand2,
        "results_per_nand2_per_ge": results,
        "results_per_s_per_ge": None if found.nand2_ns is None else results / found.nand2_ns * 1e9,
        "pipelined": [_clock(library, clock) | _NOTHING for clock in CLOCKS_NS],
        "library": found.library,
        "library_sha256": found.library_sha256,
        "yosys": f"pyosys {found.yosys}",
        "abc_script": found.script,
    }


def pipelines(spec: ExpSpec, top: str, liberty: Path | None) -> list[dict[str, Any]]:
    """Return for each clock the smallest pipeline found of a combinational unit, at one result a cycle.

    Parameters
    ----------
    spec : ExpSpec
        The unit.
    top : str
        Name of its top module.
    liberty : Path or None
        Cell library; None is that of the package, whose clocks are in NAND2 delays.

    Returns
    -------
    list of dict
        ``clock_ns`` (None where the library has no nanoseconds), ``clock_nand2``, ``registers`` (stages),
        ``flip_flops``, ``area_ge`` with them, ``delay_nand2`` and ``delay_ns``; None in all these where none meets
        the clock.
    """
    from hw import verilog as texts
    from hw.liberty import read_library
    from hw.pipelining import PIPELINE_SCRIPTS, pipeline
    from hw.synth import SynthesisError, yosys_version
    from hw.units.exp import ExpUnit

    library = read_library(liberty)
    verilog = texts.convert_once(ExpUnit, spec, name=top)
    rows: list[dict[str, Any]] = []
    for clock_ns in CLOCKS_NS:
        clock = _clock(library, clock_ns)

        def run(period: float = clock["clock_nand2"]) -> bytes:
            try:
                made = pipeline(verilog, top, library, period_nand2=period)
            except SynthesisError:
                return json.dumps(_NOTHING).encode()
            found = made.synthesis.to_dict() | {"registers": made.registers}
            return json.dumps({key: found[key] for key in _NOTHING}).encode()

        causes = (verilog, library.sha256, yosys_version(), repr(clock), *PIPELINE_SCRIPTS, _flow_version())
        rows.append(clock | json.loads(kept("exp-pipeline", causes, run)))
    return rows


def _clock(library: Library, clock_ns: float) -> dict[str, Any]:
    nand2_ns = _REFERENCE_NAND2_NS if library.relative else library.nand2_delay * library.nanoseconds
    return {"clock_ns": None if library.relative else clock_ns, "clock_nand2": clock_ns / nand2_ns}


def _flow_version() -> str:
    """Return the hash of the sources that turn Verilog into a pipeline."""
    from hw import abc_scripts, cuts, liberty, netlist, pipelining, static_timing, synth

    text = metadata.version("numpy")
    for module in (abc_scripts, cuts, liberty, netlist, pipelining, static_timing, synth):
        text += inspect.getsource(module)
    return hashlib.sha256(text.encode()).hexdigest()
