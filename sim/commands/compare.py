"""``nearkv compare``: a published or peer result beside ours."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sim.commands.options import Subparsers, add_command, add_json
from sim.commands.study import add_measuring_options, measured_rows
from sim.comparisons.row import comparison_table
from sim.manifest import manifest
from sim.report import print_tables, to_json

if TYPE_CHECKING:
    import argparse

    from rich.table import Table

__all__ = ["add_parser", "run_exp_anchors", "run_exp_seed"]

_DETAILS = """\
examples:
  nearkv compare exp-seed
  nearkv compare exp-anchors --liberty cells.lib --json"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "compare", "a published or peer result beside ours", _DETAILS, run_exp_seed)
    names = parser.add_subparsers(metavar="NAME", required=True)
    for name, summary, run in (
        ("exp-seed", "'6th-order polynomial, loss < 0.1 %, 40 % less area' against named baselines", run_exp_seed),
        ("exp-anchors", "published exponential units beside ours", run_exp_anchors),
    ):
        entry = add_command(names, name, summary, f"example: nearkv compare {name} --json", run)
        add_measuring_options(entry)
        add_json(entry)


def run_exp_seed(arguments: argparse.Namespace) -> int:
    """Print the seed's claim beside what was measured; return 1 if a unit's RTL differs from its golden model."""
    from golden.exp.catalogue import UNITS
    from sim.comparisons import exp_seed

    measured = measured_rows([UNITS[name] for name in exp_seed.wanted_units()], arguments)
    rows = exp_seed.seed_rows(measured)
    title = "the seed's claim about its exponential, in the same flow for all units"
    return _show(arguments, measured, rows, title, [*exp_seed.verdict(rows), *_baselines(exp_seed.BASELINES)])


def run_exp_anchors(arguments: argparse.Namespace) -> int:
    """Print published units beside ours; return 1 if a unit's RTL differs from its golden model."""
    from golden.exp.catalogue import UNITS
    from sim.comparisons import exp_anchors

    measured = measured_rows([UNITS[name] for name in exp_anchors.wanted_units()], arguments)
    rows = exp_anchors.anchor_rows(measured)
    return _show(arguments, measured, rows, "published exponential units beside ours", _sources(rows))


def _show(
    arguments: argparse.Namespace,
    measured: list[dict[str, object]],
    rows: list[dict[str, object]],
    title: str,
    lines: list[str],
) -> int:
    library = f"areas with {measured[0]['library']}, {measured[0]['yosys']}; every operand code through the RTL"
    if arguments.json:
        inputs = [row["verilog_sha256"] for row in measured] + [measured[0]["library_sha256"]]
        sys.stdout.write(to_json({"rows": rows, "manifest": manifest(inputs)}))
    else:
        tables: list[Table | str] = [comparison_table(title, rows), *lines, library]
        print_tables(tables)
    wrong = [str(row["name"]) for row in measured if not row["equal_to_golden"]]
    if wrong:
        print(f"RTL must equal the golden model, it differs in {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def _baselines(baselines: dict[str, str]) -> list[str]:
    return [f"{name}: {text}" for name, text in baselines.items()]


def _sources(rows: list[dict[str, object]]) -> list[str]:
    return [f"{row['name']}: {row['source']}" for row in rows]
