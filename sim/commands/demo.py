"""``nearkv demo``: the whole path once, from Verilog to decode latency."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from golden.samples import load_layers
from hw.presets import UNIT_PRESETS
from sim import demo
from sim.commands.options import add_command
from sim.report import decode_row, print_tables, to_csv, to_json, write_text

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]

_PRESET = "pam-hbm"
_SYSTEM = "pam"
_QUERY = 108  # holds, in layer 0, the sample's largest score: 79

_DETAILS = """\
Generates the Verilog of the units of HBM-PIM, builds and runs it under Verilator on real tensors beside the golden
model, compares cycles with their formulas, and prints decode latencies of PAM. Nothing is fetched.

examples:
  nearkv demo
  nearkv demo -o results"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "demo", "the whole path once: Verilog, RTL runs, decode latency", _DETAILS, run)
    parser.add_argument(
        "-o", "--output", default="build/demo", metavar="DIR", help="folder to write to (default: %(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration; return 0 if RTL, golden model and formulas agree, else 1."""
    # Amaranth and matplotlib are loaded here only.
    from hw import verilog
    from hw.attend import attend
    from hw.cosim import run_streams
    from sim.plots import decode_figure

    directory = Path(arguments.output)
    say = _Progress()
    sizes = UNIT_PRESETS[_PRESET]

    say.step(f"Verilog of every unit of {_PRESET}")
    units: dict[str, verilog.VerilogUnit] = {}
    for name in sizes.units:
        say.detail(f"generating {name}")
        units[name] = verilog.generate(name, _PRESET)
    verilog.write(units.values(), directory / "verilog")

    say.step("exponential unit under Verilator: all 65,536 operands (a first build takes a while)")
    codes = np.arange(1 << 16, dtype=np.uint16)
    exp_run = run_streams(units["exp"].text, units["exp"].top, {"i": codes}, {"o": codes.size})
    results = np.array(exp_run.streams["o"].payloads, dtype=np.uint16)
    exp_row = demo.exp_row(_PRESET, codes, results)

    say.step("attention under Verilator on real tensors: processing, reduction and finish unit")
    texts = {name: (unit.text, unit.top) for name, unit in units.items()}
    attention_rows: list[dict[str, Any]] = []
    cycle_rows: list[dict[str, Any]] = []
    for tensors in load_layers():
        say.detail(
            f"layer {tensors.layer}: {len(tensors.k)} tokens over {sizes.reduction.num_sources} processing units"
        )
        rtl = attend(
            tensors.q[_QUERY],
            tensors.k,
            tensors.v,
            tensors.scale,
            splits=demo.splits(len(tensors.k), sizes.reduction.num_sources),
            params=(sizes.processing, sizes.reduction, sizes.finish),
            verilog=texts,
        )
        attention_rows.append(demo.attention_row(_PRESET, tensors, _QUERY, rtl))
        exp_cycles = int(exp_run.streams["o"].cycles[-1] - exp_run.streams["i"].cycles[0]) + 1
        cycle_rows = demo.cycle_rows(_PRESET, codes.size, exp_cycles, len(tensors.k), rtl)

    say.step(f"decode latency of {_SYSTEM}")
    records = list(demo.decode_records(_SYSTEM, say.detail))
    rows = [decode_row(record) for record in records]
    rtl_record = {
        "preset": _PRESET,
        "units": [unit.manifest() for unit in units.values()],
        "exp": exp_row,
        "attention": attention_rows,
        "cycles": cycle_rows,
    }
    write_text(directory / "rtl.json", to_json(rtl_record))
    write_text(directory / "decode.json", to_json({"records": records}))
    write_text(directory / "decode.csv", to_csv(rows))
    decode_figure(rows, directory / "decode.png")

    agrees = exp_row["equal_to_golden"] and all(row["equal_to_golden"] for row in attention_rows)
    agrees = agrees and all(row["measured_cycles"] == row["formula_cycles"] for row in cycle_rows)
    print_tables(
        [
            _accuracy_table(exp_row, attention_rows),
            _cycle_table(cycle_rows),
            _decode_table(rows),
            f"RTL, golden model and formulas {'agree' if agrees else 'DISAGREE'}",
            f"written to {directory}/: verilog/, rtl.json, decode.json, decode.csv, decode.png",
        ]
    )
    return 0 if agrees else 1


class _Progress:
    """Numbered steps with the time so far, on standard error."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._number = 0

    def step(self, text: str) -> None:
        self._number += 1
        print(f"[{self._number}/4, {time.monotonic() - self._start:3.0f} s] {text}", file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        print(f"      {text}", file=sys.stderr, flush=True)


def _table(title: str, columns: dict[str, str]) -> Table:
    table = Table(title=title, title_justify="left")
    for name, side in columns.items():
        table.add_column(name, justify="right" if side == "right" else "left")
    return table


def _accuracy_table(exp: dict[str, Any], attention: list[dict[str, Any]]) -> Table:
    table = _table(
        "RTL beside the golden model [measured-rtl]",
        {
            "what ran": "left",
            "bits equal": "left",
            "max error": "right",
            "rms error": "right",
            "max / fp16 reference": "right",
            "rms / fp16 reference": "right",
        },
    )
    table.add_row(
        f"exp, {exp['codes']:,} fp16 codes, relative",
        _yes(exp["equal_to_golden"]),
        f"{exp['max_relative_error']:.2e}",
        "",
        "",
        "",
    )
    for row in attention:
        table.add_row(
            f"attention, layer {row['layer']}, {row['tokens']} tokens",
            _yes(row["equal_to_golden"]),
            f"{row['max_error']:.2e}",
            f"{row['rms_error']:.2e}",
            f"{row['max_error_over_fp16_reference']:.2f}",
            f"{row['rms_error_over_fp16_reference']:.2f}",
        )
    return table


def _cycle_table(rows: list[dict[str, Any]]) -> Table:
    table = _table(
        "cycles of the Verilated units, no stalls",
        {"unit": "left", "work": "left", "measured": "right", "formula": "right", "equal": "left"},
    )
    for row in rows:
        measured, formula = row["measured_cycles"], row["formula_cycles"]
        table.add_row(row["unit"], row["work"], f"{measured:,}", f"{formula:,}", _yes(measured == formula))
    return table


def _decode_table(rows: list[dict[str, Any]]) -> Table:
    table = _table(
        f"one decode step on {_SYSTEM} [modelled; unit cycles formula-rtl]",
        {
            "model": "left",
            "context": "right",
            "batch": "right",
            "KV GiB": "right",
            "tokens HBM / DDR / SSD": "right",
            "step ms": "right",
            "GPU": "right",
            "tier": "right",
            "slowest": "left",
            "reduction": "right",
            "links": "right",
        },
    )
    for row in rows:
        tokens = [row[key] for key in row if key.endswith("_tokens")]
        step = row["step_us"]
        table.add_row(
            row["model"],
            f"{row['context']:,}",
            str(row["batch"]),
            f"{row['kv_bytes_total'] / 2**30:,.0f}",
            " / ".join(f"{count / max(1, sum(tokens)):.0%}" for count in tokens),
            f"{step / 1e3:,.2f}",
            f"{row['gpu_us'] / step:.1%}",
            f"{row['tier_us'] / step:.1%}",
            row["slowest_tier"],
            f"{row['reduction_us'] / step:.2%}",
            f"{row['link_us'] / step:.2%}",
        )
    return table


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"
