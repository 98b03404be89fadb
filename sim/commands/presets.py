"""``nearkv presets``: every preset, each number with unit, source and deviation."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sim.catalogue import catalogue
from sim.commands.options import add_command, add_json
from sim.manifest import manifest
from sim.report import print_tables, to_json

if TYPE_CHECKING:
    import argparse

    from rich.table import Table

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_DETAILS = """\
examples:
  nearkv presets
  nearkv presets --json"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    add_json(add_command(commands, "presets", "every preset, with unit and source of each number", _DETAILS, run))


def run(arguments: argparse.Namespace) -> int:
    """Print all presets and return 0."""
    entries = [entry.to_dict() for entry in catalogue()]
    if arguments.json:
        sys.stdout.write(to_json({"presets": entries, "manifest": manifest(entries)}))
        return 0
    tables: list[Table | str] = []
    for entry in catalogue():
        tables += entry.tables()
    print_tables(tables)
    return 0
