"""A matrix times a vector in fp16 on HBM2 with units at its banks: cycles of two simulators beside those of our RTL.

PIMSimulator and UniNDP model Samsung's HBM2-PIM by its commands: 64 pseudo-channels at 1 ns, a unit of 16 lanes for
every two banks. Ours are cycles of a Verilated channel, from the start to the last score out of a bank group, with the
first refresh due after one interval.

Alike: 64 channels of 16 banks, 1 KB rows, 32 B columns, 1 ns, a column of all units every tCCD_L, so that as many
units read as many columns. Not alike: the other timings are ramulator2's of HBM2 at 2 Gb/s; two banks that share a unit
are one bank of twice the rows, whose rows are opened one after the other; a vector's tile of 256 elements lies at the
units, and goes out between the columns; sums of 16 lanes are added up, where theirs leave as they are. Counts of
theirs follow from the matrix: 8 accumulators at a unit, so that the vector comes anew for every 4,096 outputs, and a
barrier after every 8 columns, as its kernel asks for (PIMKernel::computeGemv of SAITPublic/PIMSimulator).

Two operations of ours stand beside theirs: scores alone, which are the product of a tile of the vector, and attention,
which reads one half of the matrix as keys and one as values (:func:`hw.measure_gemv.measure_gemv`). The fp32 sums on
their way from the bank groups to the pins, and the sum over tiles, are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hw.presets.gemv import GEMV_PRESETS
from hw.timing.gemv import gemv_cycles
from hw.timing.operation import OperationKind
from sim.comparisons.row import comparison_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hw.timing.gemv import GemvPoint

__all__ = ["KINDS", "NOTES", "REFERENCES", "SIZES", "gemv_record", "gemv_rows"]

REFERENCES = {
    "PIMSimulator": {(4096, 128): 750, (65536, 128): 7763, (4096, 1024): 3662, (4096, 4096): 13166},
    "UniNDP": {(4096, 128): 380.3, (65536, 128): 5774.6, (4096, 1024): 2897.6, (4096, 4096): 11528.4},
}
"""Cycles of each simulator by rows and columns of the matrix."""

SIZES = tuple(REFERENCES["UniNDP"])
"""Rows and columns of the matrices."""

_SOURCES = {
    "PIMSimulator": "SAITPublic/PIMSimulator b464dde, run with 64 channels, fp16 GEMV",
    "UniNDP": "thu-nics/UniNDP, HPCA 2025 artefact, run on its HBM-PIM with the same matrices",
}

_LANES = 16
_CHANNEL_UNITS = 8
_CHANNELS = 64
_ACCUMULATORS = 8
_BARRED = 8
_COLUMN_CYCLES = 4

_KIND_NAMES = {OperationKind.SCORE: "scores", OperationKind.ATTENTION: "attention"}

KINDS = tuple(_KIND_NAMES)
"""Operations that are measured."""

NOTES = (
    "cycles of 1 ns from start to last result, refresh on; 64 channels do the same, one bank group of one simulated",
    "hbm2-pairs: a unit for every two banks, like theirs; hbm2-banks: a unit at every bank, half the columns",
    "scores: the product, a sum for each output and tile of 256; attention: half of the matrix as keys, half as values",
    "left out: the sums' way from the bank groups to the pins, and adding those of the tiles",
    "x, y, barriers of theirs: columns of vector and results, 8 accumulators a unit; a barrier after every 8 columns",
)
"""What is compared, in a line each."""


def gemv_rows(points: Sequence[GemvPoint]) -> list[dict[str, Any]]:
    """Return the rows of the comparison.

    Parameters
    ----------
    points : sequence of GemvPoint
        Of matrices of :data:`SIZES` on devices of :data:`hw.presets.gemv.GEMV_PRESETS`.

    Returns
    -------
    list of dict
        Each simulator beside each of our points; ``within`` says that ours is not slower.
    """
    return [
        comparison_row(
            f"{point.device} {_KIND_NAMES[point.kind]}, {point.outputs} x {point.inputs}: {name}",
            references[point.outputs, point.inputs],
            point.last_result,
            unit="cycles",
            source=_SOURCES[name],
            within=point.last_result <= references[point.outputs, point.inputs],
            note=f"ours {_ours(point)}; theirs {_theirs(name, point.outputs, point.inputs)}",
        )
        for point in points
        for name, references in REFERENCES.items()
    ]


def _ours(point: GemvPoint) -> str:
    """Return what our cycles consist of, by counts of commands."""
    counts, channel = point.counts, GEMV_PRESETS[point.device].channel
    cycles = gemv_cycles(channel, counts)
    return (
        f"{cycles.columns:,} (MAC {counts['MAC']:,}) + {cycles.rows:,} (rows {counts['ACT']}) + {cycles.refreshes:,} "
        f"(refreshes {counts.get('REF', 0)}) + {point.last_result - cycles.total:,} (start, end, waits); "
        f"{counts['BROADCAST']} broadcasts between"
    )


def _theirs(name: str, outputs: int, inputs: int) -> str:
    """Return what the reference has beyond its MACs, whose number follows from the matrix and its units."""
    columns = outputs * inputs // (_CHANNELS * _CHANNEL_UNITS * _LANES)
    beyond = REFERENCES[name][outputs, inputs] - columns * _COLUMN_CYCLES
    text = f"{columns * _COLUMN_CYCLES:,} (MAC {columns:,}) + {beyond:,.0f}"
    if name == "PIMSimulator":
        passes = outputs // (_CHANNELS * _CHANNEL_UNITS * _ACCUMULATORS)
        text += (
            f" (x {passes * inputs // _LANES}, y {passes * _ACCUMULATORS}, barriers {columns // _BARRED}, and the rest)"
        )
    return text


def gemv_record(point: GemvPoint) -> dict[str, Any]:
    """Return a point as it stands in the JSON."""
    channel = GEMV_PRESETS[point.device].channel
    cycles = gemv_cycles(channel, point.counts)
    tiles = -(-point.inputs // channel.head_dim)
    return {
        "device": point.device,
        "operation": _KIND_NAMES[point.kind],
        "outputs": point.outputs,
        "inputs": point.inputs,
        "last_column_cycles": point.last_column,
        "last_result_cycles": point.last_result,
        "commands": dict(point.counts),
        "column_cycles": cycles.columns,
        "row_cycles": cycles.rows,
        "refresh_cycles": cycles.refreshes,
        "sums_left_out": tiles * point.outputs // GEMV_PRESETS[point.device].channels,
    }
