"""``nearkv study policies``: what each policy makes of requests whose tokens lie mostly outside HBM."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sim.commands.options import Subparsers, add_command, add_json, natural
from sim.errors import UnknownNameError
from sim.manifest import manifest
from sim.report import print_tables, to_csv, to_json, write_text

if TYPE_CHECKING:
    import argparse

__all__ = ["add_policies", "run"]

_DETAILS = """\
Every policy serves the same requests, which come at once: three loads on PAM, of which one reaches the drives. Then
single tokens of a few requests are followed, with two seeds and three localities of reads, of which the predictive
policy knows one; and one step is counted with whole tokens placed beside each layer and head of them placed by itself,
as RTL and DMA see them. --fit searches the ratio of policy pam instead and prints it beside that of
sim/calibration.toml, which it leaves alone.

examples:
  nearkv study policies --plot policies.png --csv policies.csv
  nearkv study policies --load drives --json
  nearkv study policies --fit"""


def add_policies(studies: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the study."""
    parser = add_command(studies, "policies", "policies that move tokens between memories", _DETAILS, run)
    parser.add_argument("--load", action="append", metavar="NAME", help="drives, dram or small model (default: all)")
    parser.add_argument("--fit", action="store_true", help="search x and y of policy pam")
    parser.add_argument("--seed", type=natural("--seed"), default=0, metavar="N", help="of all draws (default: 0)")
    add_json(parser)
    parser.add_argument("--csv", metavar="FILE", help="also write the rows as CSV")
    parser.add_argument("--plot", metavar="FILE", help="also draw the rows; the suffix decides the format")


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of the study and return 0."""
    from sim.calibration import factors
    from sim.plots_policies import policies_figure
    from sim.studies.policies import LOADS, policy_rows, read_rows
    from sim.studies.policies_fit import best_ratio, ratio_rows
    from sim.studies.policies_granularity import granularity_rows
    from sim.studies.policies_tables import csv_rows, fit_table, granularity_tables, policy_tables

    names = arguments.load or list(LOADS)
    for name in names:
        if name not in LOADS:
            raise UnknownNameError("load", name, LOADS)
    loads = {name: LOADS[name] for name in names}

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if arguments.fit:
        kinds = {"ratio": ratio_rows(loads, seed=arguments.seed, progress=say)}
        best = best_ratio(kinds["ratio"])
        used = {name: factors()[name].value for name in ("pam_x", "pam_y")}
        record = {"rows": kinds["ratio"], "best": best, "used": used}
        shown = [*fit_table(kinds["ratio"], best), f"in use: {used['pam_x']:g} : {used['pam_y']:g} : 1"]
    else:
        rows = policy_rows(loads, seed=arguments.seed, progress=say)
        reads = read_rows(seeds=(arguments.seed, arguments.seed + 1))
        placed = granularity_rows(loads, seed=arguments.seed)
        kinds = {"policy": rows, "reads": reads, "granularity": placed}
        record = {"rows": rows, "reads": reads, "granularity": placed}
        shown = [*policy_tables(rows, reads), *granularity_tables(placed)]
        if arguments.plot is not None:
            policies_figure(rows, Path(arguments.plot))
    if arguments.csv is not None:
        write_text(Path(arguments.csv), to_csv(csv_rows(kinds)))
    if arguments.json:
        sys.stdout.write(to_json({**record, "manifest": manifest(record, seed=arguments.seed)}))
    else:
        print_tables(shown)
    return 0
