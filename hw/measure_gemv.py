"""Measures the cycles in which a device streams a matrix past its units: a matrix times a vector (GEMV)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.checks import require_int
from hw.measure import RunSizes, channel_sha256, command_counts, measured_run
from hw.timing.gemv import GemvPoint

if TYPE_CHECKING:
    from hw.presets.devices import DevicePreset

__all__ = ["gemv_sha256", "gemv_sizes", "measure_gemv"]

_ROWS = 512
"""Rows of every bank that have cells: 8 MiB of the matrix in a channel of 16 banks."""


def gemv_sizes(preset: DevicePreset, outputs: int, inputs: int) -> RunSizes:
    """Return the operations that read every column of a matrix once.

    Parameters
    ----------
    preset : DevicePreset
        A device whose banks hold whole rows of the matrix.
    outputs, inputs : int
        Rows and columns of the matrix. The rows are dealt to the units of all channels, an even number each.

    Returns
    -------
    RunSizes
        One operation for each tile of the vector, the largest that the units hold; one half of a unit's rows of the
        matrix in the place of keys, the other in that of values.

    Raises
    ------
    ValueError
        If rows or columns cannot be dealt out evenly.
    """
    channel = preset.channel
    units = preset.channels * channel.parts
    require_int("outputs", outputs, 2 * units)
    if outputs % (2 * units):
        raise ValueError(f"outputs must be a multiple of twice the {units} units, not {outputs!r}")
    require_int("inputs", inputs, 1)
    tile = min(inputs, channel.head_dim)
    if inputs % tile:
        raise ValueError(f"inputs must be a multiple of {tile}, what a unit holds of the vector, not {inputs!r}")
    return RunSizes(head_dim=tile, walk_tokens=outputs // (2 * units), operations=inputs // tile)


def measure_gemv(preset: DevicePreset, outputs: int, inputs: int, *, seed: int = 0) -> GemvPoint:
    """Stream a matrix through one Verilated channel, refresh included, the first due after n_refi.

    No operation of a channel gives q . k out, so this runs attention, of which every column command serves: the vector
    goes out by tiles as q, half of the matrix is read as keys and half as values. Commands, their cycles and the
    units' pace are those of the RTL; a pass over keys alone would have the same rows, columns and broadcasts and would
    not wait for weights. Not in it: the fp32 sums on their way out, ``outputs / channels`` for each tile. In their
    place stand the states of the bank groups.

    Parameters
    ----------
    preset, outputs, inputs
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
    sizes = gemv_sizes(preset, outputs, inputs)
    channel = preset.channel
    measured = measured_run(channel, sizes, first_refresh_cycles=channel.timing.n_refi, seed=seed, rows=_ROWS)
    return GemvPoint(
        device=preset.name,
        outputs=outputs,
        inputs=inputs,
        last_column=int(measured.reads[-1]),
        last_state=int(measured.run.bodies[0].cycles[-1]),
        counts=command_counts(measured.run),
    )


def gemv_sha256(preset: DevicePreset) -> str:
    """Return the hash of the Verilog that is measured, as gates."""
    return channel_sha256(preset.channel, _ROWS)
