"""Organisations and timings of memories, each number with its source; made into checked objects at import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from hw.memory.complete import Complete
from hw.memory.organisation import Organisation
from hw.memory.timing import DramTiming
from hw.presets.value import Deviation, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DRAM_ORGANISATIONS", "DRAM_TIMINGS", "DramPreset"]

_T = TypeVar("_T", bound=Complete)

_PAM = "arXiv:2602.11521, section 7.1"
_PAM_TABLE = "arXiv:2602.11521, table 1"
_ATTACC = "scale-snu/attacc_simulator c600051, HBM3-PIM.cpp, preset HBM3_5.2Gbps"
_ATTACC_FREE = f"{_ATTACC}_NPC (no power constraint)"
_ATTACC_CODE = "scale-snu/attacc_simulator c600051, HBM3-PIM.cpp"
_RAM2 = "CMU-SAFARI/ramulator2 c5b1c3a, HBM2.py, preset HBM2_2000Mbps"
_RAM2_RULE = "CMU-SAFARI/ramulator2 c5b1c3a, HBM2.py"
_HBM2 = "CMU-SAFARI/ramulator2 c5b1c3a, HBM2.py, organisation HBM2_8Gb"
_RAM2_DDR4 = "CMU-SAFARI/ramulator2 c5b1c3a, DDR4.py, preset DDR4_3200AC"
_RAM2_DDR4_RULE = "CMU-SAFARI/ramulator2 c5b1c3a, DDR4.py"
_FIM = "Lee et al., ISCA 2021 (HBM2-PIM): a unit for two banks, here one bank of twice the rows"


@dataclass(frozen=True)
class DramPreset(Generic[_T]):
    """One organisation or timing.

    Parameters
    ----------
    name, description : str
        Name and what it is.
    fields : mapping of str to Value
        Every number.
    spec : Organisation or DramTiming
        The object made of them, checked.
    deviations : tuple of Deviation
        Printed numbers that were not used.
    """

    name: str
    description: str
    fields: Mapping[str, Value]
    spec: _T
    deviations: tuple[Deviation, ...] = ()


def _preset(
    spec: type[_T], name: str, description: str, fields: dict[str, Value], *deviations: Deviation
) -> DramPreset[_T]:
    """Return the preset of ``fields``, refused unless they are complete and possible."""
    made = spec.from_mapping({key: value.value for key, value in fields.items()})
    return DramPreset(name, description, fields, made, deviations)


def _cycles(source: str, **numbers: int) -> dict[str, Value]:
    """Return numbers of cycles that share one source."""
    return {name: Value(number, "cycles", source) for name, number in numbers.items()}


_PRINTED_PAM = _cycles(
    _PAM, n_rp=19, n_rcdrd=19, n_rcdwr=19, n_ras=45, n_rrdl=4, n_ccds=2, n_ccdl=4, n_wr=21, n_refi=5070, n_faw=39
)

_HBM3_5200 = {
    "clock_ns": Value(0.769, "ns", f"{_ATTACC}: 4 bits a pin and clock"),
    **_cycles(_ATTACC, n_rcdrd=19, n_rcdwr=19, n_rp=19, n_ras=45, n_rc=63, n_wr=21, n_rtps=6, n_rtpl=8),
    **_cycles(_ATTACC, n_cl=19, n_cwl=6, n_bl=2, n_ccds=2, n_ccdl=4, n_ccdab=6, n_rrds=2, n_rrdl=4),
    **_cycles(_ATTACC, n_wtrs=8, n_wtrl=11, n_faw=39, n_refi=5070),
    **_cycles(f"{_ATTACC_CODE}: n_cl + n_bl + 2 - n_cwl between RD and WR", n_rtw=17),
    **_cycles(f"{_ATTACC_CODE}: 350 ns for 8 Gb a channel, rounded to cycles as JEDEC does", n_rfc=456),
}

_RTW = Deviation(
    field="n_rtw",
    printed="3",
    used="17",
    reason="no rule of AttAcc's controller uses the 3 of its table, and a write 3 cycles after a read would meet the "
    "read's data on the pins; 17 is what the controller enforces",
)

_RC = Deviation(
    field="n_rc",
    printed="63",
    used="as printed",
    reason="less than n_ras + n_rp = 64, as each was rounded from ns by itself; a row cycle lasts 64, by the other two",
)

_BL = Deviation(
    field="n_bl",
    printed="4",
    used="2",
    reason="32 B over the 32 pins of a pseudo-channel last 2 clocks at 4 bits a pin and clock; with 4 bursts would "
    "collide at the printed n_ccds of 2",
)

_ROWS = Deviation(
    field="rows",
    printed="none",
    used="16384",
    reason="the paper gives 16 GB a stack and the counts down to the bank; 1 KB rows as in AttAcc leave 16384 of them",
)

_HBM2_ROWS = Deviation(
    field="rows",
    printed="65536",
    used="32768 a bank",
    reason="with 16 banks a pseudo-channel and 1 KB rows these make the 8 Gb a channel that the same entry names",
)

_HBM2_64CH = {
    "channels": Value(64, "1", "4 stacks of 8 channels; a pseudo-channel is taken as a channel, as PIMSimulator does"),
    "pseudochannels": Value(1, "1", "see channels"),
    "ranks": Value(1, "1", _HBM2),
    "bankgroups": Value(4, "1", _HBM2),
    "banks": Value(4, "1", _HBM2),
    "rows": Value(32768, "1", f"{_HBM2}: what 8 Gb a channel make"),
    "columns": Value(32, "1", f"{_HBM2}: 128 of 8 B, four a burst"),
    "dq_bits": Value(64, "bits", _HBM2),
    "burst_length": Value(4, "bits", "JEDEC JESD235: HBM2 in pseudo-channel mode"),
    "column_bytes": Value(32, "bytes", "JEDEC JESD235: 256 bits an access"),
    "capacity_bytes": Value(32 << 30, "bytes", "4 stacks of 8 GB"),
}

DRAM_ORGANISATIONS = {
    preset.name: preset
    for preset in (
        _preset(
            Organisation,
            "hbm2-64ch",
            "HBM2 of 8 Gb a channel, 64 pseudo-channels taken as channels",
            _HBM2_64CH,
            _HBM2_ROWS,
        ),
        _preset(
            Organisation,
            "hbm2-64ch-pairs",
            "the same with two banks taken as one, for units that two banks share",
            _HBM2_64CH | {"banks": Value(2, "1", _FIM), "rows": Value(65536, "1", _FIM)},
            _HBM2_ROWS,
        ),
        _preset(
            Organisation,
            "hbm3-16gb",
            "HBM3 stack of 16 GB, 8 high, as PAM and AttAcc use it",
            {
                "channels": Value(16, "1", _PAM_TABLE),
                "pseudochannels": Value(2, "1", f"{_PAM_TABLE}: a channel"),
                "ranks": Value(2, "1", f"{_PAM_TABLE}: a pseudo-channel"),
                "bankgroups": Value(4, "1", f"{_PAM_TABLE}: a rank"),
                "banks": Value(4, "1", f"{_PAM_TABLE}: a bank group"),
                "rows": Value(16384, "1", f"{_ATTACC_CODE}, organisation HBM3_8Gb_2R"),
                "columns": Value(32, "1", f"{_ATTACC_CODE}, organisation HBM3_8Gb_2R"),
                "dq_bits": Value(32, "bits", f"{_ATTACC_CODE}, organisation HBM3_8Gb_2R"),
                "burst_length": Value(8, "bits", f"{_ATTACC_CODE}: prefetch of 8 bits a pin"),
                "column_bytes": Value(32, "bytes", f"{_PAM_TABLE}: 256-bit units take one column"),
                "capacity_bytes": Value(16 << 30, "bytes", f"{_PAM_TABLE}: 16 GB a stack, read as 2^34 bytes"),
            },
            _ROWS,
        ),
    )
}
"""Organisations by name."""

DRAM_TIMINGS = {
    preset.name: preset
    for preset in (
        _preset(DramTiming, "hbm3-5200", "HBM3 at 5.2 Gb/s a pin, power limited, of AttAcc", _HBM3_5200, _RTW, _RC),
        _preset(
            DramTiming,
            "hbm3-5200-unlimited",
            "HBM3 at 5.2 Gb/s a pin without the limit of power, of AttAcc",
            _HBM3_5200 | _cycles(_ATTACC_FREE, n_ccdab=4),
            _RTW,
            _RC,
        ),
        _preset(
            DramTiming,
            "hbm3-5200-pam",
            "HBM3 at 5.2 Gb/s a pin of PAM; what it does not print is AttAcc's",
            _HBM3_5200 | _PRINTED_PAM,
            _BL,
            _RTW,
            _RC,
        ),
        _preset(
            DramTiming,
            "hbm2-2000",
            "HBM2 at 2 Gb/s a pin, 8 Gb a channel, of ramulator2",
            {
                "clock_ns": Value(1.0, "ns", _RAM2),
                **_cycles(_RAM2, n_rcdrd=14, n_rcdwr=12, n_rp=14, n_ras=34, n_rc=48, n_wr=16, n_rtpl=5),
                **_cycles(_RAM2, n_cl=14, n_cwl=5, n_bl=2, n_ccds=2, n_ccdl=4, n_wtrs=6, n_wtrl=8),
                **_cycles(f"{_RAM2}: n_rtpl; no shorter one is given", n_rtps=5),
                **_cycles("no limit of power is published: n_ccdl", n_ccdab=4),
                **_cycles("n_cl + n_bl + 2 - n_cwl, as AttAcc's controller has it", n_rtw=13),
                **_cycles(f"{_RAM2_RULE}: the larger of 4 clocks and 4 ns", n_rrds=4, n_rrdl=4),
                **_cycles(f"{_RAM2_RULE}: the larger of 8 clocks and 15 ns", n_faw=15),
                **_cycles(f"{_RAM2_RULE}: 350 ns for 8 Gb", n_rfc=350),
                **_cycles(f"{_RAM2_RULE}: 3900 ns", n_refi=3900),
            },
        ),
        _preset(
            DramTiming,
            "ddr4-3200",
            "DDR4-3200 of PAM; what it does not print is ramulator2's",
            {
                "clock_ns": Value(0.625, "ns", "JEDEC JESD79-4, DDR4-3200"),
                **_cycles(_PAM_TABLE, n_rcdrd=24, n_rcdwr=24, n_rp=24, n_rc=76, n_cl=24, n_bl=4, n_ccds=4, n_ccdl=8),
                **_cycles(_PAM_TABLE, n_rrds=4, n_rrdl=6, n_faw=26),
                **_cycles(_RAM2_DDR4, n_ras=52, n_wr=24, n_cwl=16, n_wtrs=4, n_wtrl=12, n_rtpl=12),
                **_cycles(f"{_RAM2_DDR4}: n_rtp; DDR4 has one", n_rtps=12),
                **_cycles("no limit of power is published: n_ccdl", n_ccdab=8),
                **_cycles("n_cl + n_bl + 2 - n_cwl, as AttAcc's controller has it", n_rtw=14),
                **_cycles(f"{_RAM2_DDR4_RULE}: 350 ns for 8 Gb, rounded to cycles as JEDEC does", n_rfc=560),
                **_cycles(f"{_RAM2_DDR4_RULE}: 7800 ns", n_refi=12480),
            },
        ),
    )
}
"""Timings by name."""
