"""Organisations of PAM's DIMM and drive, each number with its source."""

from __future__ import annotations

from hw.memory.address_maps import DimmOrganisation, DriveOrganisation
from hw.presets.dram import DramPreset
from hw.presets.value import Deviation, Value

__all__ = ["DIMM_ORGANISATIONS", "DRIVE_ORGANISATIONS"]

_PAM_TABLE = "arXiv:2602.11521, table 1"
_JEDEC = "JEDEC JESD79-4: 8-pin chips have 1 KB rows and bursts of 8"
_MQSIM = "CMU-SAFARI/MQSim 7ec40e3, ssdconfig.xml"

_DIMM = {
    "ranks": Value(2, "1", f"{_PAM_TABLE}: a DIMM"),
    "chips": Value(8, "1", f"{_PAM_TABLE}: a rank"),
    "bankgroups": Value(2, "1", f"{_PAM_TABLE}: a chip"),
    "banks": Value(4, "1", f"{_PAM_TABLE}: a bank group"),
    "rows": Value(262144, "1", f"what 32 GB a DIMM ({_PAM_TABLE}) leave at 1 KB rows"),
    "columns": Value(128, "1", f"{_JEDEC}: 1024 / 8"),
    "column_bytes": Value(8, "bytes", f"{_PAM_TABLE}: 64-bit units take one burst of a chip"),
}

_DRIVE = {
    "channels": Value(8, "1", f"{_PAM_TABLE}: a drive"),
    "dies": Value(4, "1", f"{_PAM_TABLE}: a channel"),
    "planes": Value(2, "1", f"{_MQSIM}: planes a die; the paper gives none"),
    "blocks": Value(3725, "1", "what 10^12 bytes a drive leave, rounded down"),
    "pages": Value(256, "1", f"{_MQSIM}: pages a block; the paper gives none"),
    "page_bytes": Value(16384, "bytes", f"{_PAM_TABLE}: 16 KB page"),
}

DIMM_ORGANISATIONS = {
    "ddr4-32gb": DramPreset(
        "ddr4-32gb",
        "DDR4 DIMM of 32 GB whose chips are addressed one by one, as PAM uses it",
        _DIMM,
        DimmOrganisation.from_mapping({name: value.value for name, value in _DIMM.items()}),
        (
            Deviation(
                field="rows",
                printed="none",
                used="262144",
                reason="the paper's 128 banks a DIMM are half of what 8 Gb chips have, so each has twice the rows",
            ),
        ),
    )
}
"""DIMMs by name."""

DRIVE_ORGANISATIONS = {
    "nvme-1tb": DramPreset(
        "nvme-1tb",
        "drive of 10^12 bytes as PAM uses it",
        _DRIVE,
        DriveOrganisation.from_mapping({name: value.value for name, value in _DRIVE.items()}),
    )
}
"""Drives by name."""
