"""``nearkv compare attacc``: cycles of one stack, and decode steps, beside AttAcc's simulator."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sim.commands.options import add_command, add_json
from sim.comparisons.row import comparison_table
from sim.errors import SimError
from sim.manifest import host, manifest
from sim.report import print_tables, to_json

if TYPE_CHECKING:
    import argparse

    from sim.commands.options import Subparsers

__all__ = ["add_parser", "run"]


def add_parser(names: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the comparison."""
    summary = "64 heads on one HBM3 stack, and decode steps: AttAcc's simulator beside a Verilated channel and ours"
    add_json(add_command(names, "attacc", summary, "example: nearkv compare attacc --json", run))


def run(arguments: argparse.Namespace) -> int:
    """Print AttAcc's cycles and commands beside ours and return 0."""
    from hw.cosim import CosimError
    from hw.measure import channel_sha256
    from hw.presets.devices import DEVICE_PRESETS
    from hw.tables import TableError, load_table
    from hw.toolchain import ToolError
    from sim.comparisons import attacc
    from sim.comparisons.attacc_step import STEP_NOTES, STEP_TABLES, attacc_step_rows

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        for name in (*attacc.TABLES, *STEP_TABLES):
            say(f"table {name}: comparing its Verilog with today's")
            load_table(name).require_verilog(channel_sha256(DEVICE_PRESETS[name].channel))
        runs: dict[tuple[str, int], attacc.StackRun] = {}
        for preset, cycles in attacc.CYCLES.items():
            for tokens in cycles:
                say(f"{preset}: {tokens} tokens under Verilator (a first build takes a while)")
                runs[preset, tokens] = attacc.run_stack(preset, tokens)
    except (CosimError, TableError, ToolError) as error:
        raise SimError(str(error)) from None
    rows, steps, pace = attacc.attacc_rows(runs), attacc_step_rows(), attacc.pace(runs)
    if arguments.json:
        inputs = [channel_sha256(DEVICE_PRESETS[preset].channel) for preset in attacc.CYCLES]
        record = {"rows": [*rows, *steps], "manifest": manifest(inputs, seed=0), "host": host() | pace}
        sys.stdout.write(to_json(record))
    else:
        seconds = f"{pace['wall_s']:.2f} s of ours, data to states; AttAcc's whole process {pace['reference_wall_s']} s"
        rates = f"{pace['simulated_group_cycles_per_s']:,.0f} cycles/s of a simulated bank group"
        print_tables(
            [
                comparison_table("64 heads of d 128 on one HBM3 stack, refresh on", rows),
                f"{attacc.SYMMETRY}; {rates}",
                f"wall time at 2,048 tokens: {seconds}",
                "attacc-bankgroup: a unit at every bank group, which reads its four banks in turn",
                comparison_table("decode steps on 8 A100 with HBM3 [GPUs modelled, memories measured-rtl]", steps),
                *STEP_NOTES,
            ]
        )
    return 0
