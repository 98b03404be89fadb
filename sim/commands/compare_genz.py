"""``nearkv compare genz``: decode steps of a roofline of GPUs beside ours."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sim.calibration import factors
from sim.commands.options import add_command, add_json
from sim.comparisons.genz import NOTES, genz_rows
from sim.comparisons.gpu_step import GPU_FACTORS
from sim.comparisons.row import comparison_table
from sim.manifest import manifest
from sim.provenance import Part, combine
from sim.report import print_tables, to_json

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]


def add_parser(names: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the comparison."""
    summary = "decode steps on A100 GPUs: GenZ beside ours, with our factors and with its inputs"
    add_json(add_command(names, "genz", summary, "example: nearkv compare genz --json", run))


def run(arguments: argparse.Namespace) -> int:
    """Print GenZ's decode steps beside ours and return 0."""
    rows = genz_rows()
    if arguments.json:
        parts = [factors()[name].part for name in GPU_FACTORS]
        parts.append(Part("steps of GPUs", "modelled", "sim/serving/gpu_model.py"))
        sys.stdout.write(to_json({"rows": rows, "provenance": combine(parts).to_dict(), "manifest": manifest(rows)}))
    else:
        print_tables([comparison_table("decode steps on A100 GPUs [modelled]", rows), *NOTES])
    return 0
