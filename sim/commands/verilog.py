"""``nearkv verilog``: Verilog of units and devices, a manifest and a FuseSoC core file each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from hw.presets import DEFAULT_UNIT_PRESET
from sim.commands.names import hardware
from sim.commands.options import add_command, add_json
from sim.errors import ConfigError
from sim.manifest import manifest
from sim.report import print_tables, to_json

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_DETAILS = """\
Units have the sizes of a unit preset; a device, named by its preset, is one channel's logic up to the pins of its
banks, and its share of the logic die. Models of memory and benches are for simulation and are not written.

examples:
  nearkv verilog
  nearkv verilog pam -o rtl
  nearkv verilog processing reduction --preset pam-ddr -o rtl --json"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "verilog", "write the Verilog of units and devices", _DETAILS, run)
    parser.add_argument("units", nargs="*", metavar="UNIT", help="units and devices to write (default: all)")
    parser.add_argument("--preset", metavar="P", help=f"sizes of the units (default: {DEFAULT_UNIT_PRESET})")
    parser.add_argument(
        "-o", "--output", default="build/verilog", metavar="DIR", help="folder to write to (default: %(default)s)"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write units and devices, print what was written and return 0."""
    # Amaranth is loaded here only: no other command needs it.
    from hw import device_verilog, verilog

    names, devices = hardware(arguments.units, arguments.preset, verilog.UNITS, device_verilog.SIMULATION_ONLY)
    preset = arguments.preset or DEFAULT_UNIT_PRESET
    directory = Path(arguments.output)
    units: list[verilog.VerilogUnit] = []
    for name in names:
        print(f"generating {name} at the sizes of {preset}", file=sys.stderr, flush=True)
        units.append(verilog.generate(name, preset))
    for device in devices:
        print(f"generating the parts of device {device}", file=sys.stderr, flush=True)
        units += device_verilog.generate_device(device)
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
    table = Table(title="Verilog", title_justify="left")
    for column in ("unit", "preset", "file", "sha256", "ports", "latency", "interval"):
        table.add_column(column, justify="right" if column in ("ports", "latency", "interval") else "left")
    for unit, entry in zip(units, entries, strict=True):
        cycles = (str(unit.latency_cycles.cycles), str(unit.interval_cycles.cycles))
        table.add_row(unit.name, unit.preset, str(entry["file"]), unit.sha256[:16], str(len(unit.ports)), *cycles)
    print_tables(
        [
            table,
            "latency and interval in cycles, a device's in those of its memory; formulas stand in each file's manifest",
        ]
    )
    return 0
