"""The three memories of PAM (arXiv:2602.11521, table 1 and section 7.1)."""

from __future__ import annotations

from hw.presets.memory_device import MemoryDevice, PageTiming
from hw.presets.value import Deviation, Value

__all__ = ["DDR_PIM", "HBM_PIM", "SSD_PIM"]

_TABLE = "arXiv:2602.11521, table 1"
_TIMING = "arXiv:2602.11521, section 7.1"
_ATTACC = "scale-snu/attacc_simulator c600051, HBM3_5.2Gbps preset"
_MQSIM = "CMU-SAFARI/MQSim 7ec40e3"
_GIB = 1 << 30
_HBM_TCK_S = 0.769e-9
_DDR_TCK_S = 0.625e-9


def _cycles(source: str, **timings: int) -> dict[str, Value]:
    """Return timing parameters in device clock cycles that share one source."""
    return {name: Value(value, "cycles", source) for name, value in timings.items()}


_BINARY = Deviation(
    field="capacity_bytes",
    printed="GB",
    used="GiB (2^30 bytes)",
    reason="the paper's 2304 GB of KV (OPT-175B, 256 requests of 2048 tokens) is 2304 * 2^30 bytes exactly, and DRAM "
    "densities are powers of two",
)

_CAP = Deviation(
    field="cap_bytes_per_s",
    printed="compute per device, in FLOPS",
    used="the same number in bytes/s, and the FLOPS as the other kind of cap",
    reason="fp16 attention without shared KV heads does 1 FLOP a byte; the DDR number is then 8 times the DIMM's pins "
    "and the SSD number its page reads",
)

HBM_PIM = MemoryDevice(
    name="hbm3-pim",
    description="HBM3 stack with a processing unit at every bank",
    kind="hbm",
    unit_preset="pam-hbm",
    merge_preset="pam-hbm",
    channel_preset="pam",
    capacity_bytes=Value(16 * _GIB, "bytes", f"{_TABLE}: 16 GB a stack"),
    channels=Value(16, "1", f"{_TABLE}: 16 channels a stack"),
    units_per_channel=Value(64, "1", f"{_TABLE}: 64 banks (2 pseudo-channels, 2 ranks, 4 groups, 4 banks)"),
    units_per_group=Value(4, "1", f"{_TABLE}: 4 banks a bank group"),
    merge_units_per_channel=Value(8, "1", f"{_TABLE}: 128 reduction units on the logic die, over 16 channels"),
    unit_clock_hz=Value(666e6, "Hz", f"{_TABLE}: processing unit clock"),
    merge_clock_hz=Value(666e6, "Hz", "that of the processing units; the paper gives none for the logic die"),
    external_bytes_per_s=Value(665.6e9, "bytes/s", f"{_TABLE}: 1024 pins of 5.2 Gb/s"),
    unit_column_bytes=Value(32, "bytes", f"{_TABLE}: 256-bit units take one column"),
    unit_column_s=Value(4 * _HBM_TCK_S, "s", f"{_TIMING}: tCCD_L 4; tCK 0.769 ns from {_ATTACC}"),
    access_s=Value(38 * _HBM_TCK_S, "s", f"{_TIMING}: tRCD 19; tCL 19 and tCK 0.769 ns from {_ATTACC}"),
    cap_bytes_per_s=Value(1.6e12, "bytes/s", f"{_TABLE}: 1.6 TFLOPS a stack under the power limit, at 1 FLOP a byte"),
    cap_flops_per_s=Value(1.6e12, "FLOP/s", f"{_TABLE}: 1.6 TFLOPS a stack under the power limit"),
    timing=_cycles(_TIMING, tRP=19, tRCD=19, tRAS=45, tRRD_L=4, tCCD_S=2, tCCD_L=4, tWR=21, tREFI=5070, tFAW=39)
    | _cycles(_ATTACC, tBL=2, tCL=19, tRC=63, tRTP_S=6, tRTP_L=8, tCCD_AB=6, tRFC_SB=260)
    | {"tCK": Value(_HBM_TCK_S, "s", f"{_ATTACC}: tREFI 5070 cycles are 3.9 us")},
    deviations=(
        _BINARY,
        _CAP,
        Deviation(
            field="timing.tBL",
            printed="4",
            used="2",
            reason="a 32 B column of a 32-pin pseudo-channel lasts 2 clocks at 1.3 GHz; every other number of the row "
            "is the AttAcc simulator's 5.2 Gb/s preset, which has 2",
        ),
    ),
)

DDR_PIM = MemoryDevice(
    name="ddr4-pim",
    description="DDR4-3200 DIMM with a processing unit at every bank of every chip",
    kind="ddr",
    unit_preset="pam-ddr",
    merge_preset="pam-hbm",
    capacity_bytes=Value(32 * _GIB, "bytes", f"{_TABLE}: 32 GB a DIMM"),
    channels=Value(1, "1", "a DIMM is one channel of processing units: its banks share one command stream"),
    units_per_channel=Value(128, "1", f"{_TABLE}: 128 PIM banks (2 ranks, 8 chips, 2 groups, 4 banks)"),
    units_per_group=Value(4, "1", f"{_TABLE}: 4 banks a bank group"),
    merge_units_per_channel=Value(4, "1", f"{_TABLE}: 4 reduction units at the DIMM's buffer"),
    unit_clock_hz=Value(500e6, "Hz", f"{_TABLE}: processing unit clock"),
    merge_clock_hz=Value(500e6, "Hz", "that of the processing units; the paper gives none for the buffer"),
    external_bytes_per_s=Value(25.6e9, "bytes/s", f"{_TABLE}: 64 pins of 3.2 Gb/s"),
    unit_column_bytes=Value(8, "bytes", f"{_TABLE}: 64-bit units take one burst of an 8-pin chip"),
    unit_column_s=Value(8 * _DDR_TCK_S, "s", f"{_TIMING}: tCCD_L 8; tCK 0.625 ns of DDR4-3200"),
    access_s=Value(48 * _DDR_TCK_S, "s", f"{_TIMING}: tRCD 24 and tCL 24; tCK 0.625 ns of DDR4-3200"),
    cap_bytes_per_s=Value(204.8e9, "bytes/s", f"{_TABLE}: 204 GFLOPS a DIMM, at 1 FLOP a byte: 8 times the pins"),
    cap_flops_per_s=Value(204.8e9, "FLOP/s", f"{_TABLE}: 204 GFLOPS a DIMM under the power limit"),
    timing=_cycles(_TIMING, tRC=76, tRCD=24, tCL=24, tRP=24, tBL=4, tCCD_S=4, tCCD_L=8, tRRD_S=4, tRRD_L=6, tFAW=26)
    | {"tCK": Value(_DDR_TCK_S, "s", "JEDEC JESD79-4, DDR4-3200")},
    deviations=(
        _BINARY,
        _CAP,
        Deviation(
            field="cap_flops_per_s",
            printed="204 GFLOPS",
            used="204.8 GFLOPS",
            reason="8 times 25.6 GB/s of pins; the paper prints whole numbers",
        ),
        Deviation(
            field="units_per_channel",
            printed="2 bank groups of 4 banks a chip",
            used="as printed",
            reason="an 8-pin DDR4 chip has 4 bank groups by JEDEC JESD79-4; the paper's count is kept because its 128 "
            "banks a DIMM and its area table rest on it",
        ),
        Deviation(
            field="timing.tRRD_L",
            printed="6 (and tFAW 26)",
            used="as printed",
            reason="JEDEC has 8 and 34 for 8-pin chips with 1 KB pages; rows are read whole, activations do not count",
        ),
    ),
)

SSD_PIM = MemoryDevice(
    name="ssd-pim",
    description="NVMe drive with processing units in its controller",
    kind="ssd",
    unit_preset="pam-ssd",
    merge_preset="pam-ssd",
    capacity_bytes=Value(10**12, "bytes", "arXiv:2602.11521, section 7.1: 8 TB in 8 drives"),
    channels=Value(8, "1", f"{_TABLE}: 8 channels a drive"),
    units_per_channel=Value(8, "1", f"{_TABLE}: 64 processing units a controller, over 8 channels"),
    units_per_group=Value(8, "1", f"{_TABLE}: 64 processing and 8 reduction units a controller"),
    merge_units_per_channel=Value(0, "1", f"{_TABLE}: 8 reduction units a controller, one a channel, none above them"),
    unit_clock_hz=Value(1e9, "Hz", f"{_TABLE}: processing unit clock"),
    merge_clock_hz=Value(1e9, "Hz", "that of the processing units; the paper gives none"),
    external_bytes_per_s=Value(5e9, "bytes/s", "arXiv:2602.11521: host side of a drive, printed as below 5 GB/s"),
    access_s=Value(0.0, "s", "contained in the page read"),
    cap_bytes_per_s=Value(18e9, "bytes/s", f"{_TABLE}: 18 GFLOPS a drive, at 1 FLOP a byte"),
    cap_flops_per_s=Value(18e9, "FLOP/s", f"{_TABLE}: 18 GFLOPS a drive"),
    page=PageTiming(
        page_bytes=Value(16384, "bytes", f"{_TABLE}: 16 KB page"),
        page_read_s=Value(30e-6, "s", f"{_TABLE}: tR 30 us"),
        page_program_s=Value(750e-6, "s", f"{_MQSIM}, default of its MLC flash: tPROG; the paper gives none"),
        block_erase_s=Value(3.8e-3, "s", f"{_MQSIM}, ssdconfig.xml: tBERS; the paper gives none"),
        pages_per_block=Value(256, "1", f"{_MQSIM}, ssdconfig.xml: Page_No_Per_Block; the paper gives none"),
        dies_per_channel=Value(4, "1", f"{_TABLE}: 4 dies a channel"),
        bus_bytes_per_s=Value(2.4e9, "bytes/s", f"{_TABLE}: 2400 MT/s, one byte wide"),
    ),
    deviations=(
        _CAP,
        Deviation(
            field="capacity_bytes",
            printed="256 GB a channel, 64 channels (16 TB), and 8 TB",
            used="8 TB in all, 10^12 bytes a drive; system pam-16tb has 16",
            reason="the two disagree, the smaller promises no room that is not there; drives come in powers of ten",
        ),
        Deviation(
            field="interface area share",
            printed="0.85 mm2 is 0.578 % and 8.16 mm2 is 7.592 % of the controller",
            used="none",
            reason="the two shares give controllers of 147 and 107.5 mm2; no area enters a latency",
        ),
    ),
)
