"""Measured cycles of devices: a sweep over Verilated channels, runs beyond it for comparison, a table of all."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hw.measure import (
    RunSizes,
    channel_sha256,
    held_out,
    measure,
    run_numbers,
    sweep,
    tool_versions,
)
from hw.presets.devices import DEVICE_PRESETS
from hw.tables import DeviceTable, point_dict
from hw.timing.channel import row_cycles
from hw.timing.tables import TablePoint
from sim.errors import SimError
from sim.parallel import spread
from sim.studies.kept import kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.device_params import ChannelParams
    from hw.timing.tables import ChannelCycles

__all__ = ["HeldOut", "MeasuredDevice", "measure_device", "tolerance_cycles"]

_SEED = 0


@dataclass(frozen=True)
class HeldOut:
    """A run that the law was not laid through, beside what the law says."""

    measured: TablePoint
    predicted: ChannelCycles
    tolerance_cycles: float

    @property
    def error_cycles(self) -> int:
        """Largest difference of last column and last state."""
        names = ("last_column", "last_state")
        return max(abs(getattr(self.measured, name) - getattr(self.predicted, name)) for name in names)

    @property
    def holds(self) -> bool:
        """Whether the law is near enough."""
        return self.error_cycles <= self.tolerance_cycles


@dataclass(frozen=True)
class MeasuredDevice:
    """A device's table, the law at the runs held out, and the pace of the longest of them.

    Parameters
    ----------
    table : DeviceTable
    held_out : tuple of HeldOut
    cycles_per_s : float
        Cycles of a bank group and its memory that were simulated a second, in the longest run.
    longest_tokens : int
        Tokens of the bank group in that run.
    """

    table: DeviceTable
    held_out: tuple[HeldOut, ...]
    cycles_per_s: float
    longest_tokens: int


def tolerance_cycles(params: ChannelParams, cycles: int) -> float:
    """Return how far a prediction of ``cycles`` may be off: 1 %, or one row cycle of a full row if that is more."""
    return max(0.01 * cycles, row_cycles(params, params.organisation.columns))


def measure_device(name: str, *, jobs: int, progress: Callable[[str], None]) -> MeasuredDevice:
    """Measure a device preset.

    Every run is kept in the build folder by the hash of its Verilog and its sizes: an interrupted sweep goes on.

    Parameters
    ----------
    name : str
        Key of :data:`hw.presets.devices.DEVICE_PRESETS`.
    jobs : int
        Runs at a time.
    progress : callable
        Is told in words what is going on.

    Raises
    ------
    hw.cosim.CosimError, hw.toolchain.ToolError
        If a run fails, or a tool is missing.
    SimError
        If the sources change meanwhile.
    """
    preset = DEVICE_PRESETS[name]
    params = preset.channel
    progress(f"{name}: making the Verilog")
    sha256 = channel_sha256(params)
    versions = tool_versions()
    swept, beyond = sweep(params), held_out(params)
    progress(f"{name}: building the model and making the first of {len(swept) + len(beyond)} runs")
    # The first run builds what all others share; the longest one comes first of the rest.
    runs = [swept[0], *reversed(beyond), *swept[1:]]
    found = {runs[0]: _run(name, sha256, runs[0])}
    start = shown = time.monotonic()
    for place, result in spread(_run, [(name, sha256, sizes) for sizes in runs[1:]], jobs=jobs):
        found[runs[1 + place]] = result
        if time.monotonic() - shown > 5:
            shown = time.monotonic()
            progress(f"{name}: {len(found)} of {len(runs)} runs after {shown - start:.0f} s")
    table = DeviceTable(
        name=name,
        preset=preset.timing,
        clock_hz=1e9 / params.timing.clock_ns,
        points=tuple(point for sizes in swept for point in _points(found[sizes])),
        held_out=tuple(point for sizes in beyond for point in _points(found[sizes])),
        verilog_sha256=sha256,
        seed=_SEED,
        versions=versions,
    )
    longest = found[beyond[-1]]
    return MeasuredDevice(
        table,
        tuple(_held_out(table, point) for point in table.held_out),
        longest["cycles"] / longest["wall_s"],
        beyond[-1].walk_tokens * params.parts_per_group,
    )


def _held_out(table: DeviceTable, point: TablePoint) -> HeldOut:
    predicted = table.cycles.cycles(point.head_dim, point.walk_tokens, point.operations, queries=point.queries)
    return HeldOut(point, predicted, tolerance_cycles(DEVICE_PRESETS[table.name].channel, point.last_column))


def _points(run: dict[str, Any]) -> list[TablePoint]:
    return [TablePoint(**point) for point in run["points"]]


def _run(name: str, sha256: str, sizes: RunSizes) -> dict[str, Any]:
    """Return points, simulated cycles and seconds of one run, from the build folder where it was made before."""
    params = DEVICE_PRESETS[name].channel
    numbers = run_numbers(sizes)

    def make() -> bytes:
        measured = measure(params, sizes, numbers=numbers, seed=_SEED)
        if channel_sha256(params) != sha256:
            raise SimError(f"Verilog of {name} must not change while it is measured, it did: start again")
        result = {
            "points": [point_dict(point) for point in measured.points],
            "cycles": measured.cycles,
            "wall_s": measured.wall_s,
        }
        return json.dumps(result).encode()

    return json.loads(kept("measure", (sha256, repr(sizes), repr(numbers), str(_SEED)), make))
