"""Measures the cycles in which a device streams a matrix past its units: a matrix times a vector (GEMV)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.channel_run import run_channel
from hw.measure import RunSizes, channel_sha256, column_read_cycles, command_counts, random_operations
from hw.native_arithmetic import NATIVE
from hw.timing.gemv import GemvPoint
from hw.timing.operation import OperationKind

if TYPE_CHECKING:
    from hw.channel_operation import ChannelOperation
    from hw.presets.devices import DevicePreset

__all__ = ["GEMV_ROWS", "gemv_operations", "gemv_sha256", "gemv_sizes", "measure_gemv"]

GEMV_ROWS = 512
"""Rows of every bank that have cells: 8 MiB of the matrix in a channel of 16 banks."""


def gemv_sizes(preset: DevicePreset, kind: OperationKind, outputs: int, inputs: int) -> RunSizes:
    """Return the operations that read every column of a matrix once.

    Parameters
    ----------
    preset : DevicePreset
        A device whose banks hold whole rows of the matrix.
    kind : OperationKind
        Scores: a unit's rows of the matrix are keys. Attention: one half of them, the other half are values.
    outputs, inputs : int
        Rows and columns of the matrix. The rows are dealt to the units of all channels, to each as many, of attention
        an even number.

    Returns
    -------
    RunSizes
        One operation for each tile of the vector, the largest that the units hold.

    Raises
    ------
    ValueError
        If rows or columns cannot be dealt out evenly.
    """
    channel = preset.channel
    units = preset.channels * channel.parts
    kinds, what = (1, "") if kind is OperationKind.SCORE else (2, "twice ")
    require_int("outputs", outputs, kinds * units)
    if outputs % (kinds * units):
        raise ValueError(f"outputs must be a multiple of {what}the {units} units, not {outputs!r}")
    require_int("inputs", inputs, 1)
    tile = min(inputs, channel.head_dim)
    if inputs % tile:
        raise ValueError(f"inputs must be a multiple of {tile}, what a unit holds of the vector, not {inputs!r}")
    return RunSizes(head_dim=tile, walk_tokens=outputs // (kinds * units), operations=inputs // tile)


def gemv_operations(
    preset: DevicePreset, kind: OperationKind, outputs: int, inputs: int, *, seed: int = 0
) -> list[ChannelOperation]:
    """Return random operations of :func:`gemv_sizes`; of scores at a scale of 1, without values."""
    operations = random_operations(preset.channel, gemv_sizes(preset, kind, outputs, inputs), seed=seed)
    if kind is OperationKind.ATTENTION:
        return operations
    return [replace(operation, kind=kind, values=(), scale=1.0) for operation in operations]


def measure_gemv(preset: DevicePreset, kind: OperationKind, outputs: int, inputs: int, *, seed: int = 0) -> GemvPoint:
    """Stream a matrix through one Verilated channel, refresh included, the first due after n_refi.

    The vector goes out by tiles as q. Scores are the product, one fp32 sum for each output and tile, as they leave the
    bank groups: those of the tiles are for the host to add, the bus that all groups share is not in it. Attention
    instead reads half of the matrix as keys and half as values: as many columns, but of its states nobody can tell the
    product.

    Parameters
    ----------
    preset, kind, outputs, inputs
        See :func:`gemv_sizes`.
    seed : int
        Seed of the random elements, which change no cycle.

    Raises
    ------
    ValueError
        If rows or columns cannot be dealt out evenly.
    hw.cosim.CosimError
        If a rule of the memory was broken, or units lost something.
    """
    channel = preset.channel
    operations = gemv_operations(preset, kind, outputs, inputs, seed=seed)
    run = run_channel(channel, operations, first_refresh_cycles=channel.timing.n_refi, rows=GEMV_ROWS, platform=NATIVE)
    results = run.scores[0] if kind is OperationKind.SCORE else run.bodies[0]
    return GemvPoint(
        device=preset.name,
        kind=kind,
        outputs=outputs,
        inputs=inputs,
        last_column=int(column_read_cycles(run)[-1]),
        last_result=int(results.cycles[-1]),
        counts=command_counts(run),
    )


def gemv_sha256(preset: DevicePreset) -> str:
    """Return the hash of the Verilog that is measured, as gates."""
    return channel_sha256(preset.channel, GEMV_ROWS)
