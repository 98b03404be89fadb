"""``nearkv compare vllm``: three recorded runs of a real server beside ours."""

from __future__ import annotations

import sys
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.calibration import factors
from sim.commands.options import add_command, add_json
from sim.comparisons.row import comparison_table
from sim.comparisons.vllm import NOTES, RUNS, read_recording, simulate, vllm_rows
from sim.comparisons.vllm_fit import fit_factors
from sim.manifest import manifest
from sim.model_config import load_model
from sim.provenance import Part, combine
from sim.report import print_tables, to_json
from sim.serving.host import SERVER_FACTORS, calibrated_factors, default_factors

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_DETAILS = """\
The recordings are bench/examples of casys-kaist/LLMServingSim; --data names the folder that holds them.
--fit searches the server's factors anew and prints them beside those of sim/calibration.toml, which it leaves alone.

examples:
  nearkv compare vllm --data validation
  nearkv compare vllm --data validation --fit --json"""


def add_parser(names: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the comparison."""
    summary = "requests of a real vLLM on two GPUs: one run fitted to, two predicted"
    parser = add_command(names, "vllm", summary, _DETAILS, run)
    parser.add_argument("--data", required=True, metavar="DIR", help="folder of the recordings")
    parser.add_argument("--fit", action="store_true", help="fit the factors anew and print them")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the rows, or the factors; return 0: what misses its limit is said in its row."""
    recordings = {entry.name: read_recording(Path(arguments.data) / entry.file) for entry in RUNS}
    return _fit(arguments.json, recordings) if arguments.fit else _compare(arguments.json, recordings)


def _compare(as_json: bool, recordings: dict[str, Any]) -> int:
    calibrated, default = calibrated_factors(), default_factors()
    rows = vllm_rows(
        {entry.name: recordings[entry.name][1] for entry in RUNS},
        {entry.name: simulate(entry, recordings[entry.name][0], calibrated) for entry in RUNS},
        {entry.name: simulate(entry, recordings[entry.name][0], default) for entry in RUNS},
    )
    mixtures = [entry for entry in RUNS if load_model(entry.model).expert_skew]
    rows += vllm_rows(
        {entry.name: recordings[entry.name][1] for entry in mixtures},
        *(
            {entry.name: simulate(entry, recordings[entry.name][0], used, skewed=False) for entry in mixtures}
            for used in (calibrated, default)
        ),
        routing=", experts met uniformly",
    )
    if as_json:
        parts = [factors()[name].part for name in SERVER_FACTORS]
        parts.append(Part("steps of GPUs", "modelled", "sim/serving/gpu_model.py"))
        inputs = {"calibrated": asdict(calibrated), "default": asdict(default), "rows": rows}
        sys.stdout.write(to_json({"rows": rows, "provenance": combine(parts).to_dict(), "manifest": manifest(inputs)}))
        return 0
    table = comparison_table("vLLM on real GPUs, 300 requests [modelled, factors calibrated]", rows)
    lines = [
        f"{row['name']}: {row['ours_default']:.4g} {row['unit']} with all factors at their defaults, "
        f"{row['ours_default'] / row['reference']:.3f}"
        for row in rows
    ]
    print_tables([table, *lines, *NOTES])
    return 0


def _fit(as_json: bool, recordings: dict[str, Any]) -> int:
    entry = next(entry for entry in RUNS if entry.fit)
    found, left = fit_factors(entry, *recordings[entry.name], say=lambda text: print(text, file=sys.stderr, flush=True))
    values = dict(zip(SERVER_FACTORS, astuple(found), strict=True))
    if as_json:
        known = {name: {"fitted": value, "used": factors()[name].value} for name, value in values.items()}
        sys.stdout.write(to_json({"run": entry.name, "rms": left, "factors": known, "manifest": manifest(known)}))
    else:
        lines = [
            f"{name} = {value:.6g} (in use {factors()[name].value:.6g}, bounds {factors()[name].bounds})"
            for name, value in values.items()
        ]
        print_tables([f"every second request of {entry.name}: rms of logarithms {left:.5f}", *lines])
    return 0
