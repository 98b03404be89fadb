"""``nearkv study selection``: cycles of attention to a part of the tokens, where new ones go, and what scores cost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sim.commands.options import Subparsers, add_command, add_json, natural, positive
from sim.manifest import manifest
from sim.report import print_tables, to_csv, to_json, write_text

if TYPE_CHECKING:
    import argparse

__all__ = ["add_selection", "run"]

_DETAILS = """\
One channel of each device is run under Verilator over all tokens, an eighth and a thirty-second of them, chosen in five
ways. Banks are read in lock step: every part reads what any part wants, and takes its own. Results are kept in the
build folder, so that a second run takes seconds and an interrupted one goes on.

examples:
  nearkv study selection --jobs 2 --plot selection.png --csv selection.csv
  nearkv study selection --seed 3 --json"""


def add_selection(studies: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the study."""
    parser = add_command(studies, "selection", "attention to selected tokens: cycles, rows, balance", _DETAILS, run)
    parser.add_argument("--seed", type=natural("--seed"), default=0, metavar="N", help="of all draws (default: 0)")
    parser.add_argument(
        "--jobs", type=positive("--jobs"), default=1, metavar="N", help="points run at a time (default: %(default)s)"
    )
    add_json(parser)
    parser.add_argument("--csv", metavar="FILE", help="also write the rows as CSV")
    parser.add_argument("--plot", metavar="FILE", help="also draw the rows; the suffix decides the format")


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of the study; return 0."""
    from concurrent.futures import BrokenExecutor

    from hw.cosim import CosimError
    from hw.toolchain import ToolError
    from sim.errors import SimError
    from sim.plots_selection import selection_figure
    from sim.studies.selection import points, selection_rows
    from sim.studies.selection_balance import balance_rows
    from sim.studies.selection_labels import label_rows
    from sim.studies.selection_tables import csv_rows, selection_tables

    try:
        rows = selection_rows(
            points(arguments.seed),
            jobs=arguments.jobs,
            progress=lambda text: print(text, file=sys.stderr, flush=True),
        )
    except (CosimError, ToolError) as error:
        raise SimError(str(error)) from None
    except BrokenExecutor:
        raise SimError("a measuring process must live until it is done, one was ended; start again to go on") from None
    balance, labels = balance_rows(arguments.seed), label_rows(rows)
    if arguments.csv is not None:
        kinds = {"selection": rows, "balance": balance, "label scan": labels}
        write_text(Path(arguments.csv), to_csv(csv_rows(kinds)))
    if arguments.plot is not None:
        selection_figure(rows, Path(arguments.plot))
    if arguments.json:
        inputs = [row["verilog_sha256"] for row in rows]
        record = {"rows": rows, "balance": balance, "label_scan": labels}
        sys.stdout.write(to_json(record | {"manifest": manifest(inputs, arguments.seed)}))
    else:
        print_tables(selection_tables(rows, balance, labels))
    return 0
