"""Links between memories: pins, rate of a pin, bytes a second in one direction, and flits where a standard has them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hw.presets.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LINK_PRESETS", "LinkPreset"]

_PAM_TABLE = "arXiv:2602.11521, table 1"
_KARAT = "arXiv:2608.03555, configuration of a KARAT device"
_PCIE = "PCI Express Base Specification 5.0"
_CXL = "Compute Express Link Specification 3.0, 68-byte flits"
_H100 = "NVIDIA H100 white paper"


@dataclass(frozen=True, kw_only=True)
class LinkPreset:
    """One instance of a link.

    Parameters
    ----------
    name, description : str
        Name and what it is.
    width_bits : Value
        Pins, or lanes, that move data in one direction.
    bits_per_s : Value
        Rate of one of them.
    bytes_per_s : Value
        Rate in one direction: ``width_bits * bits_per_s / 8``, or less where the source says less.
    flit_bytes, flit_payload_bytes : Value or None
        Bytes of a flit and those of them that are not check sum and header; None where the link has none.
    round_trip_s : Value or None
        There and back; None where no source gives it.

    Raises
    ------
    ValueError
        If the rate is more than the pins move, or a flit has more payload than bytes.
    """

    name: str
    description: str
    width_bits: Value
    bits_per_s: Value
    bytes_per_s: Value
    flit_bytes: Value | None = None
    flit_payload_bytes: Value | None = None
    round_trip_s: Value | None = None

    def __post_init__(self) -> None:
        pins = self.width_bits.integer * self.bits_per_s.number / 8
        # Rates are printed in decimal fractions.
        if self.bytes_per_s.number > pins * (1 + 1e-9):
            raise ValueError(f"bytes_per_s of {self.name} must be at most {pins:g}, not {self.bytes_per_s.number:g}")
        if (self.flit_bytes is None) != (self.flit_payload_bytes is None):
            raise ValueError(f"flit_payload_bytes of {self.name} must be given with flit_bytes, and only then")
        if self.flit_bytes and self.flit_payload_bytes and self.flit_payload_bytes.number > self.flit_bytes.number:
            raise ValueError(
                f"flit_payload_bytes of {self.name} must be at most {self.flit_bytes.integer}, "
                f"not {self.flit_payload_bytes.integer}"
            )

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number by its name."""
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Value):
                yield item.name, value


_PRESETS = (
    LinkPreset(
        name="in-package",
        description="HBM3 stack to the processor in its package",
        width_bits=Value(1024, "1", "JEDEC JESD238: 16 channels of 64 bits"),
        bits_per_s=Value(5.2e9, "bits/s", f"{_PAM_TABLE}: 5.2 Gb/s a pin"),
        bytes_per_s=Value(665.6e9, "bytes/s", f"{_PAM_TABLE}: 1024 pins of 5.2 Gb/s"),
    ),
    LinkPreset(
        name="memory-bus",
        description="DDR4-3200 channel of one DIMM",
        width_bits=Value(64, "1", "JEDEC JESD79-4: 64 data pins of a DIMM"),
        bits_per_s=Value(3.2e9, "bits/s", f"{_PAM_TABLE}: DDR4-3200"),
        bytes_per_s=Value(25.6e9, "bytes/s", f"{_PAM_TABLE}: 64 pins of 3.2 Gb/s"),
    ),
    LinkPreset(
        name="pcie5-x16",
        description="PCI Express 5.0 at 16 lanes",
        width_bits=Value(16, "1", f"{_PCIE}: lanes"),
        bits_per_s=Value(32e9, "bits/s", f"{_PCIE}: 32 GT/s a lane"),
        bytes_per_s=Value(
            64e9,
            "bytes/s",
            f"{_PCIE}: 16 lanes, half of the 128 GB/s that PCI-SIG prints for both directions; 128b/130b coding and "
            "packet headers not taken off",
        ),
    ),
    LinkPreset(
        name="nvme",
        description="host side of a drive",
        width_bits=Value(4, "1", "chosen: the lanes that drives of the forms M.2 and U.2 have; the paper gives none"),
        bits_per_s=Value(
            16e9,
            "bits/s",
            "PCI Express Base Specification 4.0: 16 GT/s a lane; chosen: of 4 lanes the slowest above the 5 GB/s",
        ),
        bytes_per_s=Value(5e9, "bytes/s", "arXiv:2602.11521: host side of a drive below 5 GB/s, taken as 5"),
    ),
    LinkPreset(
        name="cxl-x4",
        description="CXL over PCI Express 5.0 at 4 lanes, as KARAT's devices have it",
        width_bits=Value(4, "1", f"{_KARAT}: x4"),
        bits_per_s=Value(32e9, "bits/s", f"{_PCIE}: 32 GT/s a lane"),
        bytes_per_s=Value(16e9, "bytes/s", f"{_KARAT}: 16 GB/s"),
        flit_bytes=Value(68, "bytes", f"{_CXL}: 66 bytes of the link layer and 2 of the protocol's ID before them"),
        flit_payload_bytes=Value(
            64,
            "bytes",
            f"{_CXL}: four slots of 16 bytes beside 2 of CRC; in flits that are not data alone the first is a header",
        ),
        round_trip_s=Value(600e-9, "s", "arXiv:2608.03555: round trip over the switch"),
    ),
    LinkPreset(
        name="nvlink4",
        description="NVLink of an H100, all 18 links together",
        width_bits=Value(36, "1", f"{_H100}: 18 links, 2 differential pairs each in a direction"),
        bits_per_s=Value(100e9, "bits/s", f"{_H100}: 25 GB/s a link and direction over 2 pairs"),
        bytes_per_s=Value(
            450e9,
            "bytes/s",
            "NVIDIA H100 SXM data sheet: 900 GB/s, both directions together; copies from one to another were measured "
            "at 380 (NVIDIA/nccl, issue 1264)",
        ),
    ),
)

LINK_PRESETS = {preset.name: preset for preset in _PRESETS}
"""Links by name."""
