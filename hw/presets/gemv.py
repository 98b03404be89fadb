"""Devices that a matrix times a vector is measured on: HBM2 with units at its banks, each number with its source."""

from __future__ import annotations

from hw.device_params import ChannelParams, Mapping
from hw.params import ProcessingParams, ReductionParams
from hw.presets.devices import DevicePreset
from hw.presets.dram import DRAM_ORGANISATIONS, DRAM_TIMINGS

__all__ = ["GEMV_PRESETS"]

_TIMING = "hbm2-2000"
_HEAD_DIM = 256
_OURS = "chosen here"
_SOURCES = {
    "organisation": "the 64 channels that PIMSimulator and UniNDP were run with",
    "timing": "CMU-SAFARI/ramulator2 c5b1c3a: 1 ns, the clock that PIMSimulator and UniNDP count in",
    "mapping": f"{_OURS}: a row of the matrix whole in a bank, as in PIMSimulator",
    "head_dim": f"{_OURS}: elements of the vector that lie at a unit at a time, 512 B",
    "logic_ratio": f"{_OURS}: 500 MHz, so that a column every n_ccdl cycles is taken",
    "cap_bytes_per_s": "none is published for HBM2-PIM",
    "other": _OURS,
}


def _device(name: str, description: str, organisation: str) -> DevicePreset:
    memory = DRAM_ORGANISATIONS[organisation].spec
    return DevicePreset(
        name=name,
        description=description,
        channel=ChannelParams(
            organisation=memory,
            timing=DRAM_TIMINGS[_TIMING].spec,
            mapping=Mapping.WHOLE,
            processing=ProcessingParams(head_dim=_HEAD_DIM, tile_tokens=8),
            reduction=ReductionParams(head_dim=_HEAD_DIM, num_sources=memory.banks),
        ),
        organisation=organisation,
        timing=_TIMING,
        cap_bytes_per_s=None,
        sources=_SOURCES,
    )


GEMV_PRESETS = {
    preset.name: preset
    for preset in (
        _device("hbm2-pairs", "HBM2, a unit for every two banks, as in HBM2-PIM", "hbm2-64ch-pairs"),
        _device("hbm2-banks", "HBM2, a unit at every bank", "hbm2-64ch"),
    )
}
"""Devices by name; cycles of their channels are measured when they are asked for, so that they have no tables."""
