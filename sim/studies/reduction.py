"""Exposed reduction of a stack over context, banks, cap and shared heads: cycles of Verilated channel and logic die.

A point is :func:`hw.measure_reduction.measure_reduction`: the part of attention's time between the last column of
values and the last beat of the root's last state. One stack, 64 query heads of d 128, refresh on. A curve is one
device; devices differ from a preset in one thing each (:func:`hw.presets.reduction.reduction_variant`).

Query heads that share keys and values (``group``) use a column in turn where the units hold their queries, and are
passes over the same rows elsewhere. Eight of them are 128 query heads, a KV head on each of the 16 channels.

Every point is kept in the build folder by the hash of its Verilog and its sizes: an interrupted study goes on.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hw.presets.reduction import reduction_variant
from hw.timing.logic_die import ReductionPoint
from sim.comparisons.reduction import below
from sim.parallel import spread
from sim.provenance import Part, combine
from sim.studies.kept import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hw.presets.devices import DevicePreset

__all__ = ["CONTEXTS", "CURVES", "Curve", "below_by_curve", "reduction_rows"]

CONTEXTS = tuple(256 << step for step in range(9))
"""Tokens of each head: 256 to 65,536."""

_HEADS, _HEAD_DIM, _SEED = 64, 128, 0
_STEP = 64


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One device and number of query heads that share keys and values.

    Parameters
    ----------
    preset : str
        Device preset that it differs from in one thing at the most.
    banks, bankgroups : int or None
        Banks of a group, groups of a rank; None is as the preset.
    capped : bool
        With the power cap of the preset.
    group : int
        Query heads that share keys and values.
    """

    preset: str
    banks: int | None = None
    bankgroups: int | None = None
    capped: bool = True
    group: int = 1

    @property
    def device(self) -> DevicePreset:
        """The device."""
        return reduction_variant(self.preset, banks=self.banks, bankgroups=self.bankgroups, capped=self.capped)

    @property
    def heads(self) -> int:
        """Query heads of the run: enough for a KV head on every channel."""
        return max(_HEADS, self.device.channels * self.group)

    @property
    def name(self) -> str:
        """Name of the device, and how many query heads share keys and values, if they do."""
        return self.device.name + (f", g = {self.group}" if self.group > 1 else "")


CURVES = (
    Curve(preset="pam"),
    Curve(preset="pam", capped=False),
    Curve(preset="pam-wide"),
    Curve(preset="pam-wide", capped=False),
    Curve(preset="attacc"),
    Curve(preset="attacc-unlimited"),
    Curve(preset="pam", banks=2),
    Curve(preset="pam", banks=8),
    Curve(preset="pam", bankgroups=2),
    Curve(preset="pam", bankgroups=8),
    Curve(preset="pam-wide", banks=2),
    Curve(preset="pam-wide", banks=8),
    Curve(preset="pam", group=8),
    Curve(preset="attacc-unlimited", group=8),
    Curve(preset="pam-wide", group=8),
    Curve(preset="pam-wide", capped=False, group=8),
)
"""What the study has: caps on and off, banks of a group, groups of a channel, heads that share keys and values."""


def reduction_rows(curves: Sequence[Curve], contexts: Sequence[int], *, jobs: int) -> list[dict[str, Any]]:
    """Return a row for every curve and context, and for those tried on the way to 1 %; progress on standard error.

    Parameters
    ----------
    curves : sequence of Curve
    contexts : sequence of int
        Tokens of each head, multiples of the parts that a channel deals them to.
    jobs : int
        Curves at a time.

    Returns
    -------
    list of dict
        By curve, then by context. ``below_one_percent`` is the fewest tokens, a multiple of 64 and of the parts, from
        which on the curve stays below a hundredth; None if the longest context does not.

    Raises
    ------
    ValueError
        If a context cannot be dealt out evenly.
    hw.cosim.CosimError, hw.toolchain.ToolError
        If a run fails, or a tool is missing.
    """
    found: dict[int, list[dict[str, Any]]] = {}
    for place, rows in spread(_curve_rows, [(curve, tuple(contexts)) for curve in curves], jobs=jobs):
        found[place] = rows
        _say(f"{curves[place].name}: done, {len(found)} of {len(curves)} curves")
    return [row for place in range(len(curves)) for row in found[place]]


def below_by_curve(rows: Sequence[dict[str, Any]]) -> dict[str, int | None]:
    """Return from how many tokens on each curve stays below 1 %."""
    return {row["curve"]: row["below_one_percent"] for row in rows}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _curve_rows(curve: Curve, contexts: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the rows of one curve."""
    from hw.measure_reduction import reduction_sha256

    device = curve.device
    _say(f"{curve.name}: making the Verilog")
    sha256 = reduction_sha256(device)
    points: dict[int, ReductionPoint] = {}

    def share(context: int) -> float:
        points[context] = _point(curve, device, sha256, context)
        _say(f"{curve.name}: {context:,} tokens, {points[context].exposed_share:.3%} exposed")
        return points[context].exposed_share

    known = {context: share(context) for context in contexts}
    fewest = below(share, known, step=math.lcm(_STEP, device.channel.parts))
    return [_row(curve, device, sha256, points[context]) | {"below_one_percent": fewest} for context in sorted(points)]


def _point(curve: Curve, device: DevicePreset, sha256: str, context: int) -> ReductionPoint:
    """Return one point, from the build folder where it was made before."""
    sizes = {"heads": curve.heads, "head_dim": _HEAD_DIM, "group": curve.group, "seed": _SEED}

    def make() -> bytes:
        from hw.measure_reduction import measure_reduction

        return json.dumps(asdict(measure_reduction(device, context, **sizes))).encode()

    return ReductionPoint(**json.loads(kept("reduction", (sha256, device.name, str(context), repr(sizes)), make)))


def _row(curve: Curve, device: DevicePreset, sha256: str, point: ReductionPoint) -> dict[str, Any]:
    channel = device.channel
    rtl = Part(f"cycles of {device.name}", "measured-rtl", f"Verilog sha256 {sha256}")
    return {
        "name": f"{curve.name}, {point.context:,} tokens",
        "curve": curve.name,
        "preset": curve.preset,
        "mapping": channel.mapping.value,
        "banks_per_group": channel.organisation.banks,
        "groups_per_channel": channel.groups,
        "cap_bytes_per_s": device.cap_bytes_per_s,
        "column_interval_cycles": channel.timing.n_ccdab,
        "group": point.group,
        "heads": point.heads,
        "head_dim": point.head_dim,
        "context": point.context,
        "exposed_cycles": point.exposed_cycles,
        "state_cycles": point.state_cycles,
        "attention_cycles": point.attention_cycles,
        "exposed_share": point.exposed_share,
        "late_cycles": point.late_cycles,
        "equal_to_golden": point.equal_to_golden,
        "clock_hz": 1e9 / channel.timing.clock_ns,
        "verilog_sha256": sha256,
        "provenance": combine([rtl]).to_dict(),
    }
