"""All memories that compute attention, by name."""

from __future__ import annotations

from hw.presets.pam import DDR_PIM, HBM_PIM, SSD_PIM

__all__ = ["MEMORY_PRESETS"]

MEMORY_PRESETS = {device.name: device for device in (HBM_PIM, DDR_PIM, SSD_PIM)}
"""Memory devices by name."""
