"""Named devices: memory, units, mapping of tokens and limit of power, each number with its source."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from hw.device_params import ChannelParams, Mapping
from hw.params import ProcessingParams, ReductionParams
from hw.presets.dram import DRAM_ORGANISATIONS, DRAM_TIMINGS
from hw.presets.value import Deviation, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEVICE_PRESETS", "DevicePreset"]

_PAM = "arXiv:2602.11521, table 1"
_ATTACC = "scale-snu/attacc_simulator c600051"
_OURS = "chosen here"


@dataclass(frozen=True, kw_only=True)
class DevicePreset:
    """One device: channels that are alike.

    Parameters
    ----------
    name, description : str
        Name and what it is.
    channel : ChannelParams
        One channel.
    organisation, timing : str
        Names of its memory presets.
    cap_bytes_per_s : float or None
        Power cap of the device that ``channel.column_period`` stands for.
    sources : dict of str to str
        Source of each number by its name.
    deviations : tuple of Deviation
        Printed numbers that were not used.
    """

    name: str
    description: str
    channel: ChannelParams
    organisation: str
    timing: str
    cap_bytes_per_s: float | None
    sources: dict[str, str]
    deviations: tuple[Deviation, ...] = ()

    @property
    def channels(self) -> int:
        """Channels of the device."""
        return self.channel.organisation.channels

    @property
    def buffer_bytes(self) -> int:
        """Bytes of q, o and scores at every unit, as elaborated: what the largest operation of each kind needs."""
        return self.channel.processing.buffer_bytes

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every number by its name, with unit and source."""
        channel = self.channel
        numbers: dict[str, tuple[float | str, str]] = {
            "organisation": (self.organisation, "name"),
            "timing": (self.timing, "name"),
            "mapping": (channel.mapping.value, "name"),
            "head_dim": (channel.head_dim, "1"),
            "tile_tokens": (channel.processing.tile_tokens, "1"),
            "queries": (channel.processing.queries, "1"),
            "buffer_bytes": (self.buffer_bytes, "bytes"),
            "logic_ratio": (float(channel.logic_ratio), "1"),
            "cap_bytes_per_s": ("none" if self.cap_bytes_per_s is None else self.cap_bytes_per_s, "bytes/s"),
            "column_period_cycles": (
                "none" if channel.column_period is None else float(channel.column_period),
                "cycles",
            ),
            "cap_burst_columns": (channel.cap_burst_columns, "1"),
        }
        for name, (value, unit) in numbers.items():
            yield name, Value(value, unit, self.sources.get(name, self.sources["other"]))


def _channel(
    mapping: Mapping,
    timing: str,
    *,
    head_dim: int,
    tile_tokens: int,
    queries: int = 1,
    query_beats: int | None = None,
    column_period: Fraction | None = None,
) -> ChannelParams:
    """Return a channel of the HBM3 stack whose units have 16 lanes."""
    organisation = DRAM_ORGANISATIONS["hbm3-16gb"].spec
    slices = organisation.banks if mapping is Mapping.SPLIT else 1
    sources = 1 if mapping is Mapping.GROUP else organisation.banks
    return ChannelParams(
        organisation=organisation,
        timing=DRAM_TIMINGS[timing].spec,
        mapping=mapping,
        processing=ProcessingParams(
            head_dim=head_dim // slices,
            tile_tokens=tile_tokens,
            slices=slices,
            queries=queries,
            query_beats=query_beats,
        ),
        reduction=ReductionParams(head_dim=head_dim, num_sources=sources),
        column_period=column_period,
    )


def _period(bytes_per_s: int, timing: str) -> Fraction:
    """Return the cycles a column of all banks of a channel for a cap of the whole stack."""
    organisation = DRAM_ORGANISATIONS["hbm3-16gb"].spec
    column_bytes = organisation.channels * organisation.banks_per_channel * organisation.column_bytes
    clock_ns = Fraction(str(DRAM_TIMINGS[timing].spec.clock_ns))
    return Fraction(column_bytes * 10**9, bytes_per_s) / clock_ns


_CAP = 1_600_000_000_000

_RATIO = Deviation(
    field="logic_ratio",
    printed="666 MHz",
    used="half the memory clock, 650 MHz",
    reason="one clock and an enable need no crossing; the units wait for the banks, not the banks for them",
)

_BUFFER = Deviation(
    field="buffer_bytes",
    printed="512 B",
    used="448 B: q in fp16 and o in fp32 of a slice of 32, scores of two rows in fp32",
    reason="sums are kept in fp32; a head dimension over 128 does not fit and takes pam-wide",
)

_WIDE_BUFFER = Deviation(
    field="buffer_bytes",
    printed="512 B",
    used="6656 B: q in fp16 and o in fp32 of 1024 elements, scores of two rows of 8 queries in fp32",
    reason="a column is read once for all query heads that share it: 8 of 128 elements (6 KiB), 4 of 256, or fewer",
)

_SOURCES = {
    "mapping": f"{_ATTACC}, gen_trace_attacc_bank.py: the head dimension is cut over the four banks of a group",
    "logic_ratio": f"{_PAM}: 666 MHz",
    "column_period_cycles": "that of cap_bytes_per_s: 32 B of every bank",
    "cap_burst_columns": f"{_OURS}: a row, so that the cap holds over refresh intervals",
    "cap_bytes_per_s": f"{_PAM}: 1.6 TFLOPS a stack, at 1 FLOP a byte",
    "other": _OURS,
}

_BY_TURNS = f"{_ATTACC}, gen_trace_attacc_bg.py: rows of whole keys go to the banks of a group in turn"

DEVICE_PRESETS = {
    preset.name: preset
    for preset in (
        DevicePreset(
            name="attacc",
            description="HBM3 stack of AttAcc, units at the banks, columns spaced by its power limit",
            channel=_channel(Mapping.SPLIT, "hbm3-5200", head_dim=256, tile_tokens=32),
            organisation="hbm3-16gb",
            timing="hbm3-5200",
            cap_bytes_per_s=None,
            sources=_SOURCES | {"cap_bytes_per_s": f"{_ATTACC}: the limit stands in n_ccdab"},
        ),
        DevicePreset(
            name="attacc-unlimited",
            description="the same without the limit of power",
            channel=_channel(Mapping.SPLIT, "hbm3-5200-unlimited", head_dim=256, tile_tokens=32),
            organisation="hbm3-16gb",
            timing="hbm3-5200-unlimited",
            cap_bytes_per_s=None,
            sources=_SOURCES | {"cap_bytes_per_s": f"{_ATTACC}: none"},
        ),
        DevicePreset(
            name="attacc-bankgroup",
            description="the same stack with units at the bank groups, each of which reads its four banks in turn",
            channel=_channel(Mapping.GROUP, "hbm3-5200", head_dim=256, tile_tokens=8),
            organisation="hbm3-16gb",
            timing="hbm3-5200",
            cap_bytes_per_s=None,
            sources=_SOURCES
            | {
                "mapping": _BY_TURNS,
                "cap_bytes_per_s": f"{_ATTACC}: the limit stands in n_ccdab, which is its nCCDSB too",
            },
        ),
        DevicePreset(
            name="attacc-bankgroup-unlimited",
            description="the same without the limit of power",
            channel=_channel(Mapping.GROUP, "hbm3-5200-unlimited", head_dim=256, tile_tokens=8),
            organisation="hbm3-16gb",
            timing="hbm3-5200-unlimited",
            cap_bytes_per_s=None,
            sources=_SOURCES | {"mapping": _BY_TURNS, "cap_bytes_per_s": f"{_ATTACC}: none"},
        ),
        DevicePreset(
            name="pam",
            description="HBM-PIM stack of PAM: 512 B at every bank, columns limited to 1.6 TB/s",
            channel=_channel(
                Mapping.SPLIT,
                "hbm3-5200-pam",
                head_dim=128,
                tile_tokens=32,
                column_period=_period(_CAP, "hbm3-5200-pam"),
            ),
            organisation="hbm3-16gb",
            timing="hbm3-5200-pam",
            cap_bytes_per_s=float(_CAP),
            sources=_SOURCES,
            deviations=(_RATIO, _BUFFER),
        ),
        DevicePreset(
            name="pam-wide",
            description="HBM-PIM stack of PAM with tokens whole in a bank and buffers for query heads that share them",
            channel=_channel(
                Mapping.WHOLE,
                "hbm3-5200-pam",
                head_dim=256,
                tile_tokens=8,
                queries=8,
                query_beats=64,
                column_period=_period(_CAP, "hbm3-5200-pam"),
            ),
            organisation="hbm3-16gb",
            timing="hbm3-5200-pam",
            cap_bytes_per_s=float(_CAP),
            sources=_SOURCES
            | {"mapping": f"{_PAM} and section 5.2: the tokens of a group are spread over its banks, whole"},
            deviations=(_RATIO, _WIDE_BUFFER),
        ),
    )
}
"""Devices by name."""
