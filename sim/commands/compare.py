"""``nearkv compare``: a published or peer result beside ours."""

from __future__ import annotations

import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.commands import compare_attacc, compare_energy, compare_fidelity, compare_genz, compare_vllm
from sim.commands.options import Subparsers, add_command, add_json
from sim.commands.study import add_measuring_options, measured_rows
from sim.comparisons.row import comparison_table
from sim.errors import SimError
from sim.manifest import manifest
from sim.provenance import Part, combine
from sim.report import print_tables, to_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from rich.table import Table

    from hw.timing.gemv import GemvPoint
    from hw.timing.logic_die import ReductionPoint

__all__ = [
    "add_parser",
    "run_area",
    "run_exp_anchors",
    "run_exp_seed",
    "run_gemv",
    "run_karat_paper",
    "run_reduction",
]

_DETAILS = """\
examples:
  nearkv compare exp-seed
  nearkv compare exp-anchors --liberty cells.lib --json
  nearkv compare attacc
  nearkv compare genz
  nearkv compare gemv
  nearkv compare reduction
  nearkv compare area
  nearkv compare energy
  nearkv compare vllm --data validation
  nearkv compare fidelity --trace conversation.csv
  nearkv compare karat-paper"""


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
    summary = "a matrix times a vector on HBM2-PIM: two simulators beside a Verilated channel"
    add_json(add_command(names, "gemv", summary, "example: nearkv compare gemv --json", run_gemv))
    summary = "the part of attention's time that a stack's reduction leaves exposed, over context and devices"
    add_json(add_command(names, "reduction", summary, "example: nearkv compare reduction --json", run_reduction))
    summary = "bytes and intensities of sparse attention as arXiv:2608.03555 prints them"
    add_json(add_command(names, "karat-paper", summary, "example: nearkv compare karat-paper --json", run_karat_paper))
    entry = add_command(
        names,
        "area",
        "areas of PAM and SoftEx beside ours",
        "example: nearkv compare area --liberty cells.lib",
        run_area,
    )
    entry.add_argument("--liberty", metavar="FILE", help="cell library, plain or gzipped (default: our own)")
    add_json(entry)
    compare_attacc.add_parser(names)
    compare_energy.add_parser(names)
    compare_genz.add_parser(names)
    compare_fidelity.add_parser(names)
    compare_vllm.add_parser(names)


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


def run_gemv(arguments: argparse.Namespace) -> int:
    """Print cycles of two simulators beside ours and return 0."""
    from hw.cosim import CosimError
    from hw.measure_gemv import gemv_sha256, measure_gemv
    from hw.presets.gemv import GEMV_PRESETS
    from hw.toolchain import ToolError
    from sim.comparisons import gemv

    points: list[GemvPoint] = []
    try:
        for (name, preset), kind, (outputs, inputs) in product(GEMV_PRESETS.items(), gemv.KINDS, gemv.SIZES):
            text = f"{name}: {outputs} x {inputs} by {kind.name.lower()} under Verilator (a first build takes a while)"
            print(text, file=sys.stderr, flush=True)
            points.append(measure_gemv(preset, kind, outputs, inputs))
        hashes = {name: gemv_sha256(preset) for name, preset in GEMV_PRESETS.items()}
    except (CosimError, ToolError) as error:
        raise SimError(str(error)) from None
    rows = gemv.gemv_rows(points)
    if arguments.json:
        record = {
            "rows": rows,
            "points": [gemv.gemv_record(point) for point in points],
            "provenance": _measured(hashes),
            "manifest": manifest(hashes, seed=0),
        }
        sys.stdout.write(to_json(record))
    else:
        title = "fp16 matrix times vector on HBM2 with units at its banks [measured-rtl]"
        print_tables([comparison_table(title, rows), *gemv.NOTES])
    return 0


def _measured(hashes: Mapping[str, str]) -> dict[str, Any]:
    """Return the class of cycles measured on the Verilog of these hashes, by device."""
    return combine(
        Part(f"cycles of {name}", "measured-rtl", f"Verilog sha256 {digest}") for name, digest in hashes.items()
    ).to_dict()


def run_reduction(arguments: argparse.Namespace) -> int:
    """Print exposed reduction beside published claims; return 1 if a root's state differs from its golden model."""
    from hw.cosim import CosimError
    from hw.measure_reduction import measure_reduction, reduction_sha256
    from hw.presets.devices import DEVICE_PRESETS
    from hw.toolchain import ToolError
    from sim.comparisons import reduction

    points: dict[tuple[str, int], ReductionPoint] = {}

    def share(preset: str, context: int) -> float:
        print(
            f"{preset}: {context:,} tokens under Verilator (a first build takes a while)", file=sys.stderr, flush=True
        )
        points[preset, context] = measure_reduction(DEVICE_PRESETS[preset], context)
        return points[preset, context].exposed_share

    try:
        below: dict[str, int | None] = {}
        for preset in reduction.PRESETS:
            known = {context: share(preset, context) for context in reduction.CONTEXTS}
            below[preset] = reduction.below(partial(share, preset), known)
        hashes = {preset: reduction_sha256(DEVICE_PRESETS[preset]) for preset in reduction.PRESETS}
    except (CosimError, ToolError) as error:
        raise SimError(str(error)) from None
    rows = reduction.reduction_rows(points)
    if arguments.json:
        record = {
            "rows": rows,
            "below_one_percent_tokens": below,
            "points": [reduction.point_record(points[key]) for key in sorted(points)],
            "provenance": _measured(hashes),
            "manifest": manifest(hashes, seed=0),
        }
        sys.stdout.write(to_json(record))
    else:
        title = "exposed reduction of one stack, 64 heads of d 128, refresh on [measured-rtl]"
        print_tables([comparison_table(title, rows), *reduction.below_lines(below), reduction.SYMMETRY])
    wrong = [f"{preset} at {context} tokens" for (preset, context), p in points.items() if not p.equal_to_golden]
    if wrong:
        print(f"the root's state must equal the golden model, it differs in {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def run_karat_paper(arguments: argparse.Namespace) -> int:
    """Print the paper's bytes and intensities beside ours; return 1 if one differs in the digits that it prints."""
    from sim.comparisons.karat_paper import karat_paper_rows

    rows = karat_paper_rows()
    if arguments.json:
        parts = [Part(str(row["name"]), "literature", str(row["source"])) for row in rows]
        sys.stdout.write(to_json({"rows": rows, "provenance": combine(parts).to_dict(), "manifest": manifest(rows)}))
    else:
        print_tables([comparison_table("sparse attention at 1M tokens, the paper's accounting [literature]", rows)])
    return 0 if all(row["within"] for row in rows) else 1


def run_area(arguments: argparse.Namespace) -> int:
    """Print published areas beside ours and return 0."""
    from hw.liberty import LibertyError, read_library
    from hw.synth import SynthesisError, yosys_version
    from hw.toolchain import ToolError
    from sim.comparisons import area
    from sim.comparisons.area_units import measure_areas
    from sim.device_area import device_record

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        library = read_library(None if arguments.liberty is None else Path(arguments.liberty))
        areas, hashes = measure_areas(library, say)
        tools = {"library": library.name, "library_sha256": library.sha256, "yosys": yosys_version(), "script": "quick"}
    except (LibertyError, SynthesisError, ToolError) as error:
        raise SimError(str(error)) from None
    rows = area.area_rows(areas)
    if arguments.json:
        device = device_record("pam", areas.parts, {part: hashes[f"pam {part}"] for part in areas.parts}, tools)
        record = {
            "rows": rows,
            "splits": area.splits_record(areas),
            "device": device,
            **tools,
            "provenance": combine(
                [
                    *(Part(name, "measured-rtl", f"netlists of Verilog {digest}") for name, digest in hashes.items()),
                    Part("cells", "literature", f"library {library.name}, sha256 {library.sha256}"),
                    Part("wires", "modelled", "none: before layout"),
                ]
            ).to_dict(),
            "manifest": manifest({**hashes, **tools}),
        }
        sys.stdout.write(to_json(record))
    else:
        title = "areas, module by module [measured-rtl; wires modelled: none]"
        print_tables([comparison_table(title, rows), *area.area_lines(areas)])
    return 0


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
