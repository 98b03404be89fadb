"""``nearkv study migration``: what moving tokens between memories costs, and what of it a decode step notices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.commands.options import Subparsers, add_command, add_json, natural
from sim.errors import ConfigError, SimError
from sim.manifest import manifest
from sim.report import print_tables, to_csv, to_json, write_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from sim.studies.migration_memory import BusShare
    from sim.studies.migration_rates import LinkShares

__all__ = ["add_migration", "run"]

_SYSTEM = "pam"
_DETAILS = """\
Rates of the DMA as nearkv measure dma found them; reads of flash by slots wanted of a page and by placement, writes by
how full it is; growth of the decode table's steps while 0.7 % of the tokens move, as PAM prints, in time that memories
and links have to spare; the host's way beside the DMA's. --area adds the DMA's gate equivalents beside those of
processing and reduction units, which takes a while the first time. What is asked and not reached is shown, and is no
failure.

examples:
  nearkv study migration --plot migration.png --csv migration.csv
  nearkv study migration --area --json"""


def add_migration(studies: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the study."""
    parser = add_command(
        studies, "migration", "tokens between memories: rates, flash, steps, host, area", _DETAILS, run
    )
    parser.add_argument("--seed", type=natural("--seed"), default=0, metavar="N", help="of all draws (default: 0)")
    parser.add_argument("--area", action="store_true", help="synthesise the DMA and the units beside it, too")
    parser.add_argument("--liberty", metavar="FILE", help="cell library of --area (default: our own)")
    add_json(parser)
    parser.add_argument("--csv", metavar="FILE", help="also write the rows as CSV")
    parser.add_argument("--plot", metavar="FILE", help="also draw the rows; the suffix decides the format")


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of the study and return 0."""
    from sim.studies.migration_tables import migration_tables

    if arguments.liberty is not None and not arguments.area:
        raise ConfigError("--liberty must go with --area")
    # A library that can't be read is refused before anything is counted.
    areas = _area_rows(arguments.liberty) if arguments.area else []
    rates, shares, bus, why_not_measured = _rates()
    rows = [*rates, *_rows(arguments.seed, shares, bus), *areas]
    if arguments.csv is not None:
        write_text(Path(arguments.csv), to_csv(_flat(rows)))
    if arguments.plot is not None:
        from sim.plots_migration import migration_figure

        migration_figure(rows, Path(arguments.plot))
    if arguments.json:
        record = {"rows": rows, "why_not_measured": why_not_measured, "manifest": manifest(rows, arguments.seed)}
        sys.stdout.write(to_json(record))
    else:
        print_tables(migration_tables(rows))
        if why_not_measured:
            print_tables([f"rates left out, links carry what their format leaves: {why_not_measured}"])
    return 0


def _rates() -> tuple[list[dict[str, Any]], LinkShares, BusShare | None, str]:
    """Return the rows of rates, what links and buses carry, and why nothing measured says so; empty where it does."""
    from hw.tables import TableError
    from hw.tables.dma import load_dma_table
    from sim.studies.migration_memory import measured_bus_share, memory_rows
    from sim.studies.migration_rates import format_shares, measured_shares, rate_rows

    try:
        table = load_dma_table()
    except TableError as error:
        return [], format_shares(), None, str(error)
    return [*rate_rows(table), *memory_rows(table)], measured_shares(table), measured_bus_share(table), ""


def _rows(seed: int, shares: LinkShares, bus: BusShare | None) -> list[dict[str, Any]]:
    """Return the rows of flash, of steps and of the host."""
    from sim.studies.migration_flash import amplification_rows, placement_rows, slots_of_page, write_rows
    from sim.studies.migration_host import host_rows
    from sim.studies.migration_step import step_rows
    from sim.system_config import load_system

    system = load_system(_SYSTEM)
    flash = system.tiers[-1]
    assert flash.device.page is not None
    slots = slots_of_page(flash.device.page)
    return [
        *amplification_rows(system, flash),
        *placement_rows(slots, seed),
        *write_rows(slots, seed),
        *step_rows(system, shares, bus),
        *host_rows(system, shares.raw, shares.part),
    ]


def _area_rows(liberty: str | None) -> list[dict[str, Any]]:
    """Return the rows of areas, with progress on standard error."""
    from hw.liberty import LibertyError, read_library
    from hw.synth import SynthesisError
    from hw.toolchain import ToolError
    from sim.studies.migration_area import area_rows, measure_areas

    try:
        library = read_library(None if liberty is None else Path(liberty))
    except LibertyError as error:
        raise ConfigError(f"--liberty: {error}") from None
    try:
        areas = measure_areas(library, lambda text: print(text, file=sys.stderr, flush=True))
    except (SynthesisError, ToolError) as error:
        raise SimError(str(error)) from None
    return area_rows(areas, f"{library.name}, sha256 {library.sha256}")


def _flat(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of single values, all with the keys of all; of a provenance the class alone."""
    keys = dict.fromkeys(
        key for row in rows for key, value in row.items() if key == "provenance" or not isinstance(value, dict | list)
    )
    return [{key: row[key]["class"] if key == "provenance" else row.get(key) for key in keys} for row in rows]
