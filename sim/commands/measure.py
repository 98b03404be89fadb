"""``nearkv measure``: cycles of devices and rates of the DMA from Verilated hardware, written as tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hw.presets.devices import DEVICE_PRESETS
from hw.tables import point_dict, table_folder, table_text
from hw.tables.dma import dma_table_text
from sim.commands.measure_dma import dma_entry, dma_rates_table
from sim.commands.options import add_command, add_json, positive
from sim.errors import SimError, UnknownNameError
from sim.manifest import host, manifest
from sim.report import print_tables, to_json, write_text

if TYPE_CHECKING:
    import argparse

    from hw.tables.dma import DmaTable
    from sim.commands.options import Subparsers
    from sim.measure import HeldOut, MeasuredDevice

__all__ = ["add_parser", "run"]

_DMA = "dma"
"""What stands for both ends of the DMA among the names of devices."""

_DETAILS = """\
Builds one channel of each device with Verilator and runs it over tokens, head dimensions and operations, without
refresh, which a formula adds. The table holds the runs that the law between them is laid through, and runs held out
from it, one over 64K tokens a bank group among them. Finished runs are kept in the build folder, so that an interrupted
sweep goes on. Exit code 1: the law is off by more than 1 % and a row cycle at a run held out.

"dma" is two ends of the DMA with their memories and a link between: tokens that lie together or not, of one head or of
eight, raw and in 8 bits, over memories that answer at once and memories with open rows. Every column that is written is
compared with its source.

examples:
  nearkv measure --jobs 2
  nearkv measure dma
  nearkv measure attacc -o tables --json"""


def add_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(commands, "measure", "measure cycles of devices and rates of the DMA", _DETAILS, run)
    parser.add_argument("devices", nargs="*", metavar="DEVICE", help="device presets, or dma (default: all)")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder to write to (default: that of the tables in use)")
    parser.add_argument(
        "--jobs", type=positive("--jobs"), default=1, metavar="N", help="runs at a time (default: %(default)s)"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, write the tables, print what was found; return 1 if the law does not hold at a run held out."""
    from concurrent.futures import BrokenExecutor

    from hw.cosim import CosimError
    from hw.toolchain import ToolError
    from sim.measure import measure_device
    from sim.measure_dma import measure_dma

    known = (*DEVICE_PRESETS, _DMA)
    for name in arguments.devices:
        if name not in known:
            raise UnknownNameError("device", name, known)
    directory = table_folder() if arguments.output is None else Path(arguments.output)
    measured: list[MeasuredDevice] = []
    rates: DmaTable | None = None
    for name in dict.fromkeys(arguments.devices or known):
        try:
            if name == _DMA:
                rates = measure_dma(jobs=arguments.jobs, progress=_say)
                text = dma_table_text(rates)
            else:
                measured.append(measure_device(name, jobs=arguments.jobs, progress=_say))
                text = table_text(measured[-1].table)
        except (CosimError, ToolError) as error:
            raise SimError(str(error)) from None
        except BrokenExecutor:
            raise SimError("a measuring process must live until it is done, one was ended; start again") from None
        write_text(directory / f"{name}.json", text)
        _say(f"{name}: table written to {directory / name}.json")
    if arguments.json:
        entries = [_entry(device) for device in measured]
        dma = {} if rates is None else {_DMA: dma_entry(rates)}
        inputs = [entry["verilog_sha256"] for entry in (*entries, *dma.values())]
        sys.stdout.write(to_json({"devices": entries} | dma | {"manifest": manifest(inputs, seed=0), "host": host()}))
    else:
        tables = [_summary(measured)] if measured else []
        tables += [_held_out_table(device) for device in measured]
        print_tables(tables if rates is None else [*tables, dma_rates_table(rates)])
    wrong = [device.table.name for device in measured if not all(held.holds for held in device.held_out)]
    if wrong:
        _say(f"the law must hold at the runs held out from it, it does not for {', '.join(wrong)}")
    return 1 if wrong else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _entry(device: MeasuredDevice) -> dict[str, Any]:
    """Return what ``--json`` says of a device."""
    table = device.table
    return {
        "name": table.name,
        "preset": table.preset,
        "clock_hz": table.clock_hz,
        "points": [point_dict(point) for point in table.points],
        "held_out": [
            point_dict(held.measured)
            | {"predicted_last_column": held.predicted.last_column, "predicted_last_state": held.predicted.last_state}
            | {"tolerance_cycles": held.tolerance_cycles, "holds": held.holds}
            for held in device.held_out
        ],
        "longest_tokens": device.longest_tokens,
        "verilog_sha256": table.verilog_sha256,
        "provenance": "measured-rtl",
        "versions": dict(table.versions),
        "cycles_per_s": device.cycles_per_s,
    }


def _summary(measured: list[MeasuredDevice]) -> Table:
    table = Table(title="measured channels, without refresh [measured-rtl]", title_justify="left")
    for column in ("device", "timing", "points", "tokens a group, up to", "law off by, at most", "cycles/s", "Verilog"):
        table.add_column(column, justify="left" if column in ("device", "timing", "Verilog") else "right")
    for device in measured:
        worst = max(device.held_out, key=lambda held: held.error_cycles / held.tolerance_cycles)
        table.add_row(
            device.table.name,
            device.table.preset,
            str(len(device.table.points)),
            f"{device.longest_tokens:,}",
            f"{worst.error_cycles} cycles of {worst.tolerance_cycles:,.0f}",
            f"{device.cycles_per_s:,.0f}",
            device.table.verilog_sha256[:16],
        )
    return table


def _held_out_table(device: MeasuredDevice) -> Table:
    table = Table(title=f"{device.table.name}: runs held out", title_justify="left")
    for column in ("head_dim", "tokens a part", "operations", "last column", "by law", "last state", "by law"):
        table.add_column(column, justify="right")
    for held in device.held_out:
        table.add_row(*_cells(held))
    return table


def _cells(held: HeldOut) -> list[str]:
    measured, predicted = held.measured, held.predicted
    numbers = (measured.head_dim, measured.walk_tokens, measured.operations)
    cycles = (measured.last_column, predicted.last_column, measured.last_state, predicted.last_state)
    return [f"{number:,}" for number in (*numbers, *cycles)]
