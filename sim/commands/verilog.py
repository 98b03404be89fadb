"""``nearkv verilog``: Verilog of the units, a manifest and a FuseSoC core file each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from hw.presets import DEFAULT_UNIT_PRESET, UNIT_PRESETS
from sim.commands.options import add_command, add_json
from sim.errors import ConfigError, UnknownNameError
from sim.manifest import manifest
from sim.report import print_tables, to_json

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_DETAILS = """\
examples:
  nearkv verilog
  nearkv verilog processing reduction --preset pam-ddr -o rtl --json"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "verilog", "write the Verilog of one or all units", _DETAILS, run)
    parser.add_argument("units", nargs="*", metavar="UNIT", help="units to write (default: all)")
    parser.add_argument("--preset", default=DEFAULT_UNIT_PRESET, metavar="P", help="unit preset (default: %(default)s)")
    parser.add_argument(
        "-o", "--output", default="build/verilog", metavar="DIR", help="folder to write to (default: %(default)s)"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the units, print what was written and return 0."""
    # Amaranth is loaded here only: no other command needs it.
    from hw import verilog

    if arguments.preset not in UNIT_PRESETS:
        raise UnknownNameError("preset", arguments.preset, UNIT_PRESETS)
    for name in arguments.units:
        if name not in verilog.UNITS:
            raise UnknownNameError("unit", name, verilog.UNITS)
    names = list(dict.fromkeys(arguments.units)) or list(verilog.UNITS)
    directory = Path(arguments.output)
    units: list[verilog.VerilogUnit] = []
    for name in names:
        print(f"generating {name} at the sizes of {arguments.preset}", file=sys.stderr)
        units.append(verilog.generate(name, arguments.preset))
    try:
        verilog.write(units, directory)
    except OSError as error:
        raise ConfigError(
            f"--output must be a folder that can be written to, not {directory}: {error.strerror}"
        ) from None
    entries = [unit.manifest() | {"file": str(directory / unit.file)} for unit in units]
    if arguments.json:
        sys.stdout.write(to_json({"units": entries, "manifest": manifest(entries)}))
        return 0
    table = Table(title=f"Verilog at the sizes of {arguments.preset}", title_justify="left")
    for column in ("unit", "file", "sha256", "ports", "latency", "interval"):
        table.add_column(column, justify="right" if column in ("ports", "latency", "interval") else "left")
    for unit, entry in zip(units, entries, strict=True):
        cycles = (str(unit.latency_cycles.cycles), str(unit.interval_cycles.cycles))
        table.add_row(unit.name, str(entry["file"]), unit.sha256[:16], str(len(unit.ports)), *cycles)
    print_tables([table, "latency and interval in cycles; the formulas stand in each file's manifest"])
    return 0
