"""``nearkv compare energy``: energy of a step and of a run by published simulators beside ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sim.commands.options import add_command, add_json
from sim.comparisons.energy import NOTES, attacc_energy_rows, ispass_rows, read_ispass
from sim.comparisons.row import comparison_table
from sim.comparisons.vllm import RUNS, read_recording
from sim.energy.costs import cost_values
from sim.manifest import manifest
from sim.provenance import Part, combine
from sim.report import print_tables, to_json

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_DETAILS = """\
--data names the folder of LLMServingSim's figures and recordings; without it AttAcc's steps stand alone.

examples:
  nearkv compare energy
  nearkv compare energy --data validation --json"""


def add_parser(names: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the comparison."""
    parser = add_command(
        names, "energy", "joules of a step and of a token by two simulators beside ours", _DETAILS, run
    )
    parser.add_argument("--data", metavar="DIR", help="folder of the figures and recordings")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the rows and return 0."""
    rows = attacc_energy_rows()
    if arguments.data is not None:
        folder = Path(arguments.data)
        rows += ispass_rows(read_ispass(folder), read_recording(folder / RUNS[0].file)[0])
    if arguments.json:
        parts = [Part(name, "literature", value.source) for name, value in cost_values()]
        parts.append(Part("counts", "modelled", "sim/energy/activity.py"))
        sys.stdout.write(to_json({"rows": rows, "provenance": combine(parts).to_dict(), "manifest": manifest(rows)}))
    else:
        print_tables([comparison_table("energy [modelled]", rows), *NOTES])
    return 0
