"""``nearkv area``: area, cells, flip-flops and delay of a unit or a device, synthesised to a liberty library."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.table import Table

from hw.presets import DEFAULT_UNIT_PRESET
from sim.commands.names import hardware
from sim.commands.options import add_command, add_json
from sim.device_area import device_record, device_tables
from sim.errors import ConfigError, UnknownNameError
from sim.manifest import manifest
from sim.provenance import Part, combine
from sim.report import print_tables, to_json, write_text

if TYPE_CHECKING:
    import argparse

    from hw.area_rows import AreaRow
    from hw.liberty import Library
    from sim.commands.options import Subparsers

__all__ = ["BASELINE_PRESET", "TOLERANCE", "add_parser", "run"]

BASELINE_PRESET = "tiny"
"""Sizes of the units whose figures are kept as a baseline."""

TOLERANCE = 0.005
"""Relative difference from the baseline that is no difference; the tool is pinned, so that any is unexpected."""

_BASELINE_KEYS = {"area_ge": "GE", "flip_flops": "1", "delay_nand2": "NAND2 delays"}
_DETAILS = """\
Areas are in gate equivalents (over the library's smallest two-input NAND) and um2, delays in NAND2 delays (of that
gate driving two of its like) and ns. The netlist is before layout: no wires, no clock tree. Figures of two libraries
agree within about 10 % as ratios of units, within 25 % as gate equivalents; of two versions of Yosys within 3.5 %.
Without --liberty a small library of no process is used, which has no um2 and no ns.

A device is one channel's logic, named by its preset. Its modules are synthesised each by itself, alike ones once, and
counted; no delay is given, and parts sum to up to 5 % more than units do whose parts are synthesised together.

examples:
  nearkv area exp
  nearkv area finish --preset pam-hbm --liberty sg13g2_typ.lib --json
  nearkv area pam
  nearkv area --baseline tests/baselines/area.json -o build/area.json"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "area", "area and delay of a unit or a device in a cell library", _DETAILS, run)
    parser.add_argument("unit", nargs="?", metavar="UNIT", help="unit or device to synthesise")
    parser.add_argument("--preset", metavar="P", help=f"sizes of a unit (default: {DEFAULT_UNIT_PRESET})")
    parser.add_argument("--liberty", metavar="FILE", help="cell library, plain or gzipped (default: our own)")
    parser.add_argument(
        "--script", default="quick", metavar="S", help="abc script: area is smaller and slower (default: %(default)s)"
    )
    parser.add_argument(
        "--baseline", metavar="FILE", help="compare all units at the smallest sizes with FILE; exit 1 if any differs"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="with --baseline: write what was found, in its format")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Synthesise, print and return 0, or 1 where a baseline differs."""
    # Synthesis needs the Verilog, and with it Amaranth; no other part of the harness does.
    from hw import device_verilog, verilog

    if (arguments.unit is None) == (arguments.baseline is None):
        raise ConfigError("area must be given a UNIT or --baseline FILE, and not both")
    if arguments.output is not None and arguments.baseline is None:
        raise ConfigError("--output must go with --baseline")
    if arguments.baseline is not None:
        return _compare(arguments)
    _, devices = hardware([arguments.unit], arguments.preset, verilog.UNITS, device_verilog.SIMULATION_ONLY)
    if devices:
        return _show_device(arguments)
    preset = arguments.preset or DEFAULT_UNIT_PRESET
    record = _measure(arguments.unit, preset, arguments.liberty, arguments.script)
    if arguments.json:
        sys.stdout.write(to_json(record))
        return 0
    table = Table(title=f"{record['unit']} at the sizes of {record['preset']}", title_justify="left")
    for column in ("GE", "um2", "cells", "flip-flops", "NAND2 delays", "ns", "library", "Yosys", "script"):
        table.add_column(column, justify="left" if column in ("library", "Yosys", "script") else "right")
    table.add_row(
        f"{record['area_ge']:,.0f}",
        _shown(record["area_um2"], ",.0f"),
        f"{record['cells']:,}",
        f"{record['flip_flops']:,}",
        f"{record['delay_nand2']:.1f}",
        _shown(record["delay_ns"], ".2f"),
        str(record["library"]),
        str(record["yosys"]),
        str(record["script"]),
    )
    print_tables([table, "before layout: no wires, no clock tree; differences below 5 % are no evidence"])
    return 0


def _show_device(arguments: argparse.Namespace) -> int:
    from hw.device_verilog import device_parts
    from hw.synth import SynthesisError, yosys_version
    from hw.toolchain import ToolError

    library = _library(arguments.liberty, arguments.script)
    rows: dict[str, list[AreaRow]] = {}
    hashes: dict[str, str] = {}
    for part in device_parts(arguments.unit):
        print(f"{arguments.unit}: synthesising {part.name} to {library.name}", file=sys.stderr, flush=True)
        try:
            rows[part.name] = part.area_rows(library, script=arguments.script)
        except (SynthesisError, ToolError) as error:
            raise ConfigError(str(error)) from None
        hashes[part.name] = part.sha256()
    tools = {
        "library": library.name,
        "library_sha256": library.sha256,
        "yosys": yosys_version(),
        "script": arguments.script,
    }
    record = device_record(arguments.unit, rows, hashes, tools)
    if arguments.json:
        sys.stdout.write(to_json(record))
    else:
        print_tables(device_tables(record))
    return 0


def _library(liberty: str | None, script: str) -> Library:
    from hw.abc_scripts import SCRIPTS
    from hw.liberty import LibertyError, read_library

    if script not in SCRIPTS:
        raise UnknownNameError("script", script, SCRIPTS)
    try:
        return read_library(None if liberty is None else Path(liberty))
    except LibertyError as error:
        raise ConfigError(str(error)) from None


def _measure(unit: str, preset: str, liberty: str | None, script: str) -> dict[str, Any]:
    from hw import verilog
    from hw.synth import SynthesisError, synthesise
    from hw.toolchain import ToolError

    library = _library(liberty, script)
    print(f"synthesising {unit} at the sizes of {preset} to {library.name}", file=sys.stderr)
    source = verilog.generate(unit, preset)
    try:
        synthesis = synthesise(source.text, source.top, library, script=script)
    except (SynthesisError, ToolError) as error:
        raise ConfigError(str(error)) from None
    parts = (
        Part("logic", "measured-rtl", f"Yosys {synthesis.yosys} netlist of Verilog {source.sha256}"),
        Part("cells", "literature", f"library {library.name}, sha256 {library.sha256}"),
        Part("wires", "modelled", "none: before layout, no wire loads, no clock tree"),
    )
    inputs = {"unit": unit, "preset": preset, "synthesis": synthesis.to_dict()}
    return {
        "unit": unit,
        "preset": preset,
        **synthesis.to_dict(),
        "verilog_sha256": source.sha256,
        "provenance": combine(parts).to_dict(),
        "manifest": manifest(inputs),
    }


def _compare(arguments: argparse.Namespace) -> int:
    """Compare every unit at the smallest sizes, in our own library, with a baseline."""
    from hw import verilog

    path = Path(arguments.baseline)
    before = _read_baseline(path)
    rows: list[dict[str, Any]] = []
    for unit in verilog.UNITS:
        record = _measure(unit, BASELINE_PRESET, None, "quick")
        rows += [
            {"name": f"{unit} {BASELINE_PRESET} {key}", "unit": of, "value": record[key]}
            for key, of in _BASELINE_KEYS.items()
        ]
    if arguments.output is not None:
        output = Path(arguments.output)
        write_text(output, json.dumps(rows, indent=2) + "\n")
    table = Table(title=f"{BASELINE_PRESET} units beside {path}", title_justify="left")
    for column in ("name", "unit", "baseline", "now", "change"):
        table.add_column(column, justify="left" if column in ("name", "unit") else "right")
    differing = 0
    for row in rows:
        old, new = before.pop(row["name"], None), float(row["value"])
        same = old is not None and abs(new - old) <= TOLERANCE * abs(old)
        differing += not same
        mark = "new" if old is None else "" if same else f"{'▲' if new > old else '▼'} {new / old - 1:+.1%}"
        table.add_row(row["name"], row["unit"], _shown(old, ",.1f"), f"{new:,.1f}", mark)
    for name, old in before.items():
        differing += 1
        table.add_row(name, "", f"{old:,.1f}", "", "gone")
    if arguments.json:
        sys.stdout.write(to_json({"rows": rows, "differing": differing}))
    else:
        print_tables([table, f"{differing} of {table.row_count} differ by more than {TOLERANCE:.1%}"])
    return 1 if differing else 0


def _read_baseline(path: Path) -> dict[str, float]:
    try:
        document: Any = json.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"--baseline must be a file that can be read, not {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"--baseline must be JSON, and {path} is not: {error}") from None
    try:
        return {str(row["name"]): float(row["value"]) for row in cast("list[dict[str, Any]]", document)}
    except (TypeError, KeyError, ValueError):
        raise ConfigError(f"--baseline must be a list of name, unit and value, and {path} is not") from None


def _shown(value: Any, form: str) -> str:
    return "" if value is None else format(float(value), form)
