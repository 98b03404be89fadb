"""What ``nearkv area`` says of a device: rows of modules, sums, and where the numbers come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from sim.manifest import manifest
from sim.provenance import Part, combine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hw.area_rows import AreaRow

__all__ = ["device_record", "device_tables"]

_SUMMED = ("area_ge", "cells", "flip_flops", "memory_ge")


def device_record(
    device: str, rows: Mapping[str, Sequence[AreaRow]], hashes: Mapping[str, str], tools: Mapping[str, str]
) -> dict[str, Any]:
    """Return the record of a device.

    Parameters
    ----------
    device : str
        Name of its preset.
    rows : mapping of str to sequence of AreaRow
        What each of its parts is made of.
    hashes : mapping of str to str
        sha256 of each part's Verilog.
    tools : mapping of str to str
        ``library``, ``library_sha256``, ``yosys`` and ``script``.
    """
    parts: list[dict[str, Any]] = []
    for name, found in rows.items():
        modules = [
            {
                "module": row.name,
                "count": row.count,
                "each_ge": row.each_ge,
                "area_ge": row.total.area_ge,
                "area_um2": row.total.area_um2,
                "cells": row.total.cells,
                "flip_flops": row.total.flip_flops,
                "memory_ge": row.memory.area_ge,
            }
            for row in found
        ]
        parts.append({"name": name, **_sums(modules), "verilog_sha256": hashes[name], "modules": modules})
    provenance = combine(
        [
            *(
                Part(name, "measured-rtl", f"Yosys {tools['yosys']} netlists of Verilog {digest}, module by module")
                for name, digest in hashes.items()
            ),
            Part("cells", "literature", f"library {tools['library']}, sha256 {tools['library_sha256']}"),
            Part("wires", "modelled", "none: before layout, no wire loads, no clock tree"),
        ]
    )
    return {
        "device": device,
        **_sums(parts),
        **tools,
        "parts": parts,
        "provenance": provenance.to_dict(),
        "manifest": manifest({"device": device, "parts": parts, **tools}),
    }


def device_tables(record: Mapping[str, Any]) -> list[Table | str]:
    """Return the record as it is shown to people."""
    table = Table(title=f"one channel of {record['device']}, logic without its banks", title_justify="left")
    for column in ("part", "module", "count", "GE each", "GE", "of it arrays", "um2", "flip-flops"):
        table.add_column(column, justify="left" if column in ("part", "module") else "right")
    for part in record["parts"]:
        for row in part["modules"]:
            table.add_row(
                part["name"],
                row["module"].removeprefix("nearkv_"),
                f"{row['count']:,}",
                f"{row['each_ge']:,.0f}",
                *_shown(row),
            )
        table.add_row(part["name"], "all", "", "", *_shown(part), end_section=True)
    table.add_row("all", "", "", "", *_shown(record))
    lines = [
        f"{record['library']}, Yosys {record['yosys']}, script {record['script']}; before layout: no wires, no clocks",
        "arrays are flip-flops here; a module's row leaves out those inside it that have one; sums are up to 5 % more",
        "than of modules synthesised together",
    ]
    return [table, *lines]


def _shown(entry: Mapping[str, Any]) -> tuple[str, str, str, str]:
    um2 = "" if entry["area_um2"] is None else f"{entry['area_um2']:,.0f}"
    return f"{entry['area_ge']:,.0f}", f"{entry['memory_ge']:,.0f}", um2, f"{entry['flip_flops']:,}"


def _sums(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    um2 = [entry["area_um2"] for entry in entries if entry["area_um2"] is not None]
    return {key: sum(entry[key] for entry in entries) for key in _SUMMED} | {"area_um2": sum(um2) if um2 else None}
