"""``nearkv study retrieval``: what selecting adds to scoring, and what methods of retrieval find, read and compute."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.commands.options import Subparsers, add_command, add_json, natural
from sim.manifest import manifest
from sim.report import print_tables, to_csv, to_json, write_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

__all__ = ["add_retrieval", "run"]

_DETAILS = """\
Cycles of SCORE and SELECT from 2K to a million tokens on a KARAT device, then recall, kept mass, bytes and operations
of every method at k from 16 to 256: over keys and queries of a generator that is fitted to a real model's statistics,
and over real tensors where --data names a folder of them (.npz with arrays q0, k0, v0 and so on).

examples:
  nearkv study retrieval --plot retrieval.png --csv retrieval.csv
  nearkv study retrieval --data shared/data --seed 3 --json"""

_DRAWN = {"requests": 4, "tokens": 8192, "steps": 8, "heads": 4}


def add_retrieval(studies: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the study."""
    parser = add_command(studies, "retrieval", "retrieval: cycles, recall, kept mass, bytes", _DETAILS, run)
    parser.add_argument("--seed", type=natural("--seed"), default=0, metavar="N", help="of all draws (default: 0)")
    parser.add_argument("--data", metavar="DIR", help="folder of real tensors, there or in tensors/ below it")
    add_json(parser)
    parser.add_argument("--csv", metavar="FILE", help="also write the rows as CSV")
    parser.add_argument("--plot", metavar="FILE", help="also draw the rows; the suffix decides the format")


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of the study; return 1 if scoring falls behind or selection adds more than its limit, else 0."""
    from sim.studies.retrieval_quality import drawn_samples, quality_rows, read_samples
    from sim.studies.retrieval_scan import scan_rows
    from sim.studies.retrieval_tables import retrieval_study_tables

    # What can't be read is refused before anything is drawn.
    real = [] if arguments.data is None else read_samples(Path(arguments.data))
    drawn = drawn_samples(**_DRAWN, seed=arguments.seed)
    scans, quality = scan_rows(), quality_rows([*drawn, *real])
    if arguments.csv is not None:
        kinds = [("scan", scans), ("quality", quality)]
        keys = dict.fromkeys(key for _, rows in kinds for row in rows for key in row)
        flat = [{"kind": kind, **{key: _flat(row, key) for key in keys}} for kind, rows in kinds for row in rows]
        write_text(Path(arguments.csv), to_csv(flat))
    if arguments.plot is not None:
        from sim.plots_retrieval import retrieval_figure

        retrieval_figure(scans, quality, Path(arguments.plot))
    if arguments.json:
        inputs = {"rows": scans, "quality": quality}
        sys.stdout.write(to_json({"rows": scans, "quality": quality, "manifest": manifest(inputs, arguments.seed)}))
    else:
        print_tables(retrieval_study_tables(scans, quality))
    over = [str(row["name"]) for row in scans if row["within"] is False]
    if over:
        print(f"selection must stay within its limit, it does not at {', '.join(over)}", file=sys.stderr)
    behind = [str(row["name"]) for row in scans if row["keeps_up"] is False]
    if behind:
        print(f"scoring must keep up with its keys, it does not at {', '.join(behind)}", file=sys.stderr)
    return 1 if over or behind else 0


def _flat(row: Mapping[str, Any], key: str) -> Any:
    """Return a single value: the class alone of a provenance."""
    return row[key]["class"] if key == "provenance" else row.get(key)
