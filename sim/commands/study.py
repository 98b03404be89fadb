"""``nearkv study``: a question over many points, answered with rows, tables and a figure."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.commands import study_reduction
from sim.commands.options import Subparsers, add_command, add_json, positive
from sim.commands.study_migration import add_migration
from sim.commands.study_policies import add_policies
from sim.commands.study_retrieval import add_retrieval
from sim.commands.study_selection import add_selection
from sim.manifest import manifest
from sim.report import print_tables, to_csv, to_json, write_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from golden.exp import ExpSpec

__all__ = ["add_measuring_options", "add_parser", "measured_rows", "run"]

_DETAILS = """\
examples:
  nearkv study exp --plot exp.png
  nearkv study reduction --plot reduction.png
  nearkv study migration --plot migration.png
  nearkv study retrieval --plot retrieval.png
  nearkv study exp --help"""

_EXP_DETAILS = """\
Each unit's Verilog runs under Verilator over all 65,536 operand codes and is compared with its golden model and with
the correctly rounded exponential; area and delay come from synthesis with the cell library named. Results are kept in
the build folder, so that a second run takes seconds and an interrupted one goes on. Exit code 1: a unit's RTL differs
from its golden model.

A file for --spec holds one table a unit: a family with all its parameters, or a unit of the default set and changes:

  [[unit]]
  name = "mine"
  base = "poly6"
  evaluation = "combinational"

examples:
  nearkv study exp --jobs 2 --plot exp.png --csv exp.csv
  nearkv study exp --spec units.toml --liberty cells.lib --json"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "study", "a question over many points: rows, tables, a figure", _DETAILS, run)
    studies = parser.add_subparsers(metavar="NAME", required=True)
    exp = add_command(studies, "exp", "exponential units: error over all codes, area and delay", _EXP_DETAILS, run)
    exp.add_argument("--spec", metavar="FILE", help="units to measure, a .toml file (default: the built-in set)")
    add_measuring_options(exp)
    add_json(exp)
    exp.add_argument("--csv", metavar="FILE", help="also write the rows as CSV")
    exp.add_argument("--plot", metavar="FILE", help="also draw the rows; the suffix decides the format")
    study_reduction.add_parser(studies)
    add_migration(studies)
    add_policies(studies)
    add_selection(studies)
    add_retrieval(studies)


def add_measuring_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how units are measured."""
    parser.add_argument(
        "--liberty", metavar="FILE", help="cell library (default: a technology-neutral one, in gate equivalents)"
    )
    parser.add_argument(
        "--jobs",
        type=positive("--jobs"),
        default=2,
        metavar="N",
        help="units measured at a time (default: %(default)s)",
    )


def measured_rows(
    units: list[ExpSpec],
    arguments: argparse.Namespace,
    pipelined: Callable[[Sequence[Mapping[str, Any]]], set[str]] = lambda rows: set(),
) -> list[dict[str, Any]]:
    """Return the rows of ``units`` as the options say, with progress on standard error.

    Parameters
    ----------
    units : list of ExpSpec
        With different names.
    arguments : Namespace
        Those of :func:`add_measuring_options`.
    pipelined : callable
        Names the rows to pipeline, as in :func:`sim.studies.exp.exp_rows`; none by default.

    Raises
    ------
    SimError
        If a tool is missing or fails, or the library can't be used.
    """
    from concurrent.futures import BrokenExecutor

    from hw.cosim import CosimError
    from hw.liberty import LibertyError, read_library
    from hw.synth import SynthesisError
    from hw.toolchain import ToolError
    from sim.errors import ConfigError, SimError
    from sim.studies.exp import exp_rows

    liberty = None if arguments.liberty is None else Path(arguments.liberty).absolute()
    try:
        # Before anything is measured.
        read_library(liberty)
        return exp_rows(
            units,
            liberty,
            jobs=arguments.jobs,
            progress=lambda text: print(text, file=sys.stderr, flush=True),
            pipelined=pipelined,
        )
    except LibertyError as error:
        raise ConfigError(f"--liberty: {error}") from None
    except (CosimError, SynthesisError, ToolError) as error:
        raise SimError(str(error)) from None
    except BrokenExecutor:
        raise SimError("a measuring process must live until it is done, one was ended; start again to go on") from None


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of the study; return 1 if a unit's RTL differs from its golden model, else 0."""
    from golden.exp.catalogue import DEFAULT_UNITS
    from sim.plots_exp import exp_figure
    from sim.studies.exp import combinational_units
    from sim.studies.exp_tables import csv_rows, study_tables
    from sim.studies.exp_targets import target_rows, target_units
    from sim.studies.exp_units import load_units

    if arguments.spec is None:
        rows = measured_rows(list(DEFAULT_UNITS.values()), arguments, target_units)
    else:
        rows = measured_rows(load_units(arguments.spec), arguments, combinational_units)
    targets = target_rows(rows)
    if arguments.csv is not None:
        write_text(Path(arguments.csv), to_csv(csv_rows(rows)))
    if arguments.plot is not None:
        exp_figure(rows, Path(arguments.plot))
    if arguments.json:
        inputs = [row["verilog_sha256"] for row in rows] + [rows[0]["library_sha256"]]
        sys.stdout.write(to_json({"rows": rows, "targets": targets, "manifest": manifest(inputs)}))
    else:
        print_tables(study_tables(rows, targets))
    wrong = [row["name"] for row in rows if not row["equal_to_golden"]]
    if wrong:
        print(f"RTL must equal the golden model, it differs in {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0
