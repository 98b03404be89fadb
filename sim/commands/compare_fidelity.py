"""``nearkv compare fidelity``: tokens counted by importance beside tokens followed one by one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sim.commands.options import add_command, add_json, natural, positive
from sim.comparisons.fidelity import NOTES, fidelity_rows
from sim.comparisons.row import comparison_table
from sim.errors import UnknownNameError
from sim.manifest import manifest
from sim.model_config import load_model
from sim.provenance import Part, combine
from sim.report import print_tables, to_json
from sim.system_config import load_system
from sim.tiering.policies import POLICIES
from sim.traces import read_trace

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_DETAILS = """\
example:
  nearkv compare fidelity --trace conversation.csv --trace conversation.jsonl --policy pam"""


def add_parser(names: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the comparison."""
    summary = "serving with tokens counted by importance beside single tokens, where most lie on drives"
    parser = add_command(names, "fidelity", summary, _DETAILS, run)
    parser.add_argument("--trace", required=True, action="append", metavar="FILE", help="requests; may be repeated")
    parser.add_argument("--policy", default="pam", help=f"{', '.join(POLICIES)} (default: %(default)s)")
    parser.add_argument("--model", default="llama-3.1-8b", help="model (default: %(default)s)")
    parser.add_argument(
        "--requests", type=positive("--requests"), default=200, metavar="N", help="of each trace (default: 200)"
    )
    parser.add_argument("--seed", type=natural("--seed"), default=0, metavar="N", help="of all draws (default: 0)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the rows and return 0: what misses its limit is said in its row."""
    if arguments.policy not in POLICIES:
        raise UnknownNameError("policy", arguments.policy, POLICIES)
    system, model = load_system("pam"), load_model(arguments.model)
    traces = [read_trace(Path(name)) for name in arguments.trace]
    rows = [
        row
        for trace in traces
        for row in fidelity_rows(
            system, model, trace, requests=arguments.requests, policy=arguments.policy, seed=arguments.seed
        )
    ]
    if arguments.json:
        origin = combine([Part("steps of both", "modelled", "sim/serving/token_store.py, sim/serving/bin_store.py")])
        record = {"rows": rows, "provenance": origin.to_dict(), "manifest": manifest(rows, seed=arguments.seed)}
        sys.stdout.write(to_json(record))
    else:
        outside = [f"{row['name']}: {row['outside_share']:.0%} of the tokens outside HBM" for row in rows[::4]]
        print_tables([comparison_table("two fidelities of serving [modelled]", rows), *NOTES, *outside])
    return 0
