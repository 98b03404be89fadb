"""Verilog of every unit: the same text on every run and every machine.

:func:`hw.conversion.convert` turns any component into text. The catalogue :data:`UNITS` names the units that ship;
:func:`generate` makes one of them at a preset's size, with a manifest that says what a designer must
know to place it: ports, hash, latency and interval.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hw.builds import replace_text
from hw.conversion import convert, convert_once
from hw.params import ScoreAdderParams, StateJoinParams
from hw.presets import UNIT_PRESETS
from hw.timing.formulas import Formula, interval_formula, latency_formula

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hw.presets.unit_preset import UnitParams

__all__ = ["UNITS", "VerilogPort", "VerilogUnit", "convert", "convert_once", "generate", "write"]

UNITS = {
    "exp": ("hw.units.exp", "ExpUnit", "exponential of one 16-bit operand a cycle"),
    "processing": ("hw.units.processing", "ProcessingUnit", "attention of query heads over the tokens of one bank"),
    "reduction": ("hw.units.reduction", "ReductionUnit", "merge of partial states from several sources"),
    "finish": ("hw.units.finish", "FinishUnit", "division by the running sum at the root of the merge"),
    "score_adder": ("hw.units.score_adder", "ScoreAdder", "sum of the partial scores of units that share a token"),
    "state_join": ("hw.units.state_join", "StateJoin", "one state of those of units that share a token"),
    "index_score": ("hw.units.index_score", "IndexScore", "scores of index keys with all heads of a query"),
    "top_k_shard": ("hw.units.top_k_shard", "TopKShard", "scores of one range of ids, of which the largest are taken"),
    "top_k_merge": ("hw.units.top_k_merge", "TopKMerge", "the k-th largest score of all shards, from their counts"),
    "gather": ("hw.units.gather", "Gather", "bursts that read the rows of selected ids"),
    "dma": ("hw.interface.dma", "Dma", "one end of the DMA: tokens of a memory over a link, in both directions"),
    "dma_crossed": ("hw.interface.dma_crossed", "DmaCrossed", "one end of the DMA whose link has a clock of its own"),
}
"""Units by name: module, class and what the unit does."""

_PORT = re.compile(r"^\s*(input|output) (?:\[(\d+):0\] )?(\w+);$", re.MULTILINE)


@dataclass(frozen=True)
class VerilogPort:
    """One port of a generated top module."""

    name: str
    direction: str
    bits: int


@dataclass(frozen=True)
class VerilogUnit:
    """One generated unit, or part of a device.

    Parameters
    ----------
    kind : str
        ``unit`` or ``device``.
    name, preset : str
        Unit or part, and preset; the top module is called ``nearkv_<name>``.
    description : str
        What it does.
    text : str
        The Verilog.
    latency_cycles, interval_cycles : Formula
        Held equal to the RTL by the test suite.
    """

    kind: str
    name: str
    preset: str
    description: str
    text: str
    latency_cycles: Formula
    interval_cycles: Formula

    @property
    def top(self) -> str:
        """Name of the top module."""
        return f"nearkv_{self.name}"

    @functools.cached_property
    def ports(self) -> tuple[VerilogPort, ...]:
        """Ports of the top module, in the order of its text."""
        header = self.text[self.text.index(f"module {self.top}(") :]
        return tuple(
            VerilogPort(match[3], match[1], 1 + int(match[2] or 0))
            for match in _PORT.finditer(header[: header.index("endmodule")])
        )

    @property
    def file(self) -> str:
        """Name of the Verilog file."""
        return f"{self.top}_{self.preset.replace('-', '_')}.v"

    @property
    def sha256(self) -> str:
        """Hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def manifest(self) -> dict[str, Any]:
        """Return what ``nearkv verilog --json`` says of the unit."""
        return {
            "kind": self.kind,
            "name": self.name,
            "preset": self.preset,
            "description": self.description,
            "top": self.top,
            "file": self.file,
            "sha256": self.sha256,
            "ports": [{"name": p.name, "direction": p.direction, "bits": p.bits} for p in self.ports],
            "latency_cycles": self.latency_cycles.to_dict(),
            "interval_cycles": self.interval_cycles.to_dict(),
        }


def generate(unit: str, preset: str) -> VerilogUnit:
    """Return the Verilog of ``unit`` at the sizes of ``preset``.

    Parameters
    ----------
    unit : str
        A key of :data:`UNITS`.
    preset : str
        A key of :data:`hw.presets.UNIT_PRESETS`.

    Raises
    ------
    KeyError
        If there is no such unit or preset, or the preset has no such unit.
    """
    module, cls, description = UNITS[unit]
    params = UNIT_PRESETS[preset].units[unit]
    made = getattr(importlib.import_module(module), cls)
    return VerilogUnit(
        kind="unit",
        name=unit,
        preset=preset,
        description=description,
        text=convert_once(made, _argument(params), name=f"nearkv_{unit}"),
        latency_cycles=latency_formula(params),
        interval_cycles=interval_formula(params),
    )


def _argument(params: UnitParams) -> object:
    """Return what the class of a unit is made from."""
    if isinstance(params, ScoreAdderParams):
        return params.slices
    return params.processing if isinstance(params, StateJoinParams) else params


def write(units: Iterable[VerilogUnit], directory: Path) -> list[Path]:
    """Write Verilog, manifest and FuseSoC core file of each unit into ``directory``.

    Each file appears whole or not at all.

    Returns
    -------
    list of Path
        The files written, in order.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for unit in units:
        stem = Path(unit.file).stem
        for name, text in (
            (unit.file, unit.text),
            (f"{unit.file}.json", json.dumps(unit.manifest(), indent=2) + "\n"),
            (f"{stem}.core", _core_file(unit)),
        ):
            replace_text(directory / name, text)
            written.append(directory / name)
    return written


def _core_file(unit: VerilogUnit) -> str:
    """Return a FuseSoC core description (CAPI2)."""
    return f"""\
CAPI=2:
name: nearkv:{unit.kind}s:{Path(unit.file).stem}:0
description: {unit.description}
filesets:
  rtl:
    files: [{unit.file}]
    file_type: verilogSource
targets:
  default:
    filesets: [rtl]
    toplevel: {unit.top}
"""
