"""Named sizes of units and memories, each number with its source; nothing here loads Amaranth.

A new unit preset is one entry in :mod:`hw.presets.units`; a new memory is one module like
:mod:`hw.presets.pam`, registered in :mod:`hw.presets.memory`; a new organisation or timing of a DRAM is an entry in
:mod:`hw.presets.dram`, of a DIMM or a drive in :mod:`hw.presets.organisations`; a link one in :mod:`hw.presets.links`.
"""

from hw.presets.dram import DRAM_ORGANISATIONS, DRAM_TIMINGS, DramPreset
from hw.presets.memory import MEMORY_PRESETS
from hw.presets.memory_device import MemoryDevice, PageTiming
from hw.presets.unit_preset import UnitPreset
from hw.presets.units import DEFAULT_UNIT_PRESET, UNIT_PRESETS
from hw.presets.value import Deviation, Value

__all__ = [
    "DEFAULT_UNIT_PRESET",
    "DRAM_ORGANISATIONS",
    "DRAM_TIMINGS",
    "MEMORY_PRESETS",
    "UNIT_PRESETS",
    "Deviation",
    "DramPreset",
    "MemoryDevice",
    "PageTiming",
    "UnitPreset",
    "Value",
]
