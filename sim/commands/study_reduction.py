"""``nearkv study reduction``: exposed reduction of a stack over context, banks, caps and shared heads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from sim.commands.options import add_command, add_json, positive
from sim.errors import ConfigError, SimError
from sim.manifest import manifest
from sim.report import print_tables, to_csv, to_json, write_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_DETAILS = """\
Each point runs a channel and its share of the logic die under Verilator: 64 query heads of d 128 on one stack, refresh
on; where 8 share keys and values, 128. Each device's model is built once, and points are kept in the build folder: an
interrupted study goes on, a second one makes nothing anew. Exit code 1: a root's state differs from its golden model.

examples:
  nearkv study reduction --jobs 2 --plot reduction.png --csv reduction.csv
  nearkv study reduction --contexts 256,4096 --json"""

_FLAT = ("name", "provenance")


def add_parser(studies: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the study."""
    summary = "the part of attention's time that a stack's reduction leaves exposed, over context, banks and caps"
    parser = add_command(studies, "reduction", summary, _DETAILS, run)
    parser.add_argument(
        "--contexts", type=_contexts, metavar="N,N,...", help="tokens of each head (default: 256 to 65536, doubling)"
    )
    parser.add_argument(
        "--jobs", type=positive("--jobs"), default=2, metavar="N", help="devices at a time (default: %(default)s)"
    )
    add_json(parser)
    parser.add_argument("--csv", metavar="FILE", help="also write the rows as CSV")
    parser.add_argument("--plot", metavar="FILE", help="also draw the rows; the suffix decides the format")


def _contexts(text: str) -> tuple[int, ...]:
    """Read contexts: different multiples of 128, which every device deals out evenly."""
    found = [positive("--contexts")(part) for part in text.split(",")]
    if any(context % 128 for context in found) or len(set(found)) != len(found):
        raise ConfigError(f"--contexts must be different multiples of 128 between commas, not {text!r}")
    return tuple(sorted(found))


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of the study; return 1 if a root's state differs from its golden model, else 0."""
    from concurrent.futures import BrokenExecutor

    from hw.cosim import CosimError
    from hw.toolchain import ToolError
    from sim.plots_reduction import reduction_figure
    from sim.studies import reduction

    contexts = arguments.contexts or reduction.CONTEXTS
    try:
        rows = reduction.reduction_rows(reduction.CURVES, contexts, jobs=arguments.jobs)
    except (CosimError, ToolError) as error:
        raise SimError(str(error)) from None
    except BrokenExecutor:
        raise SimError("a measuring process must live until it is done, one was ended; start again to go on") from None
    if arguments.csv is not None:
        write_text(Path(arguments.csv), to_csv([_flat(row) for row in rows]))
    if arguments.plot is not None:
        reduction_figure(rows, Path(arguments.plot))
    if arguments.json:
        hashes = sorted({row["verilog_sha256"] for row in rows})
        below = reduction.below_by_curve(rows)
        record = {"rows": rows, "below_one_percent_tokens": below, "manifest": manifest(hashes, seed=0)}
        sys.stdout.write(to_json(record))
    else:
        print_tables(_tables(rows))
    wrong = [row["name"] for row in rows if not row["equal_to_golden"]]
    if wrong:
        print(f"the root's state must equal the golden model, it differs in {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of single values."""
    return {key: value for key, value in row.items() if key not in _FLAT} | {"provenance": row["provenance"]["class"]}


def _tables(rows: Sequence[dict[str, Any]]) -> list[Table | str]:
    """Return one line a curve: exposed cycles, shares over context, and where they fall below 1 %."""
    by_curve: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        by_curve.setdefault(row["curve"], {})[row["context"]] = row
    first, *others = by_curve.values()
    contexts = [context for context in sorted(first) if all(context in points for points in others)]
    table = Table(title="exposed reduction, % of attention's time, by context [measured-rtl]", title_justify="left")
    table.add_column("device")
    for column in ("cycles", *(f"{context:,}" for context in contexts), "< 1 % from", "held up"):
        table.add_column(column, justify="right")
    for curve, points in by_curve.items():
        cycles = sorted({points[context]["exposed_cycles"] for context in contexts})
        fewest = points[contexts[0]]["below_one_percent"]
        table.add_row(
            curve,
            f"{cycles[0]}" if len(cycles) == 1 else f"{cycles[0]}-{cycles[-1]}",
            *(f"{100 * points[context]['exposed_share']:.2f}" for context in contexts),
            "-" if fewest is None else f"{fewest:,}",
            str(max(point["late_cycles"] for point in points.values())),
        )
    lines = [
        "64 query heads of d 128 on one stack, 128 where 8 share keys and values, refresh on; links and tree are",
        "simulated whole, one bank group's states stand for those of all others of its channel; held up: most cycles",
        "that a group waited for its link",
    ]
    return [table, *lines]
