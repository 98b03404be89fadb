"""Processing near LPDDR memory: capacity, rates and links of a device that keeps KV and index keys."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hw.presets.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PNM_PRESETS", "PnmDevice"]


@dataclass(frozen=True, kw_only=True)
class PnmDevice:
    """One device.

    Parameters
    ----------
    name, description : str
        Name and what it is.
    capacity_bytes, channels : Value
        Memory.
    bytes_per_s : Value
        Rate of its memory, all channels.
    fp8_flops, bf16_flops : Value
        Peak of its cores.
    cores, core_clock_hz : Value
        Cores and their clock.
    link_bytes_per_s, link_round_trip_s : Value
        Link to the switch, one direction, and the round trip through it.
    tdp_w : Value
        Design power.
    """

    name: str
    description: str
    capacity_bytes: Value
    channels: Value
    bytes_per_s: Value
    fp8_flops: Value
    bf16_flops: Value
    cores: Value
    core_clock_hz: Value
    link_bytes_per_s: Value
    link_round_trip_s: Value
    tdp_w: Value

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number by its name."""
        for item in fields(self):
            if item.name not in ("name", "description"):
                yield item.name, getattr(self, item.name)


_KARAT = "arXiv:2608.03555, section on the device"

PNM_PRESETS = {
    preset.name: preset
    for preset in (
        PnmDevice(
            name="karat-pnm",
            description="KARAT's device: LPDDR5X-9600, 18 cores beside it",
            capacity_bytes=Value(512 << 30, "bytes", f"{_KARAT}: 512 GB"),
            channels=Value(64, "1", _KARAT),
            bytes_per_s=Value(1.2e12, "bytes/s", _KARAT),
            fp8_flops=Value(250e12, "FLOP/s", _KARAT),
            bf16_flops=Value(125e12, "FLOP/s", _KARAT),
            cores=Value(18, "1", _KARAT),
            core_clock_hz=Value(1.83e9, "Hz", _KARAT),
            link_bytes_per_s=Value(16e9, "bytes/s", f"{_KARAT}: PCIe5/CXL x4"),
            link_round_trip_s=Value(600e-9, "s", f"{_KARAT}: through the switch"),
            tdp_w=Value(175.0, "W", _KARAT),
        ),
    )
}
"""Devices by name."""
