"""Timing parameters of a DRAM in cycles of its own clock, complete and possible, or refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from golden.checks import require_int
from hw.memory.complete import Complete

__all__ = ["DramTiming", "jedec_cycles"]


@dataclass(frozen=True, kw_only=True)
class DramTiming(Complete):
    """Timing of one DRAM; names in ramulator2's spelling, ``n`` for cycles of the device clock.

    Nothing has a default: a missing number is refused, not guessed. Every one is at least 1.

    Parameters
    ----------
    clock_ns : float
        Period of the device clock tCK.
    n_rcdrd, n_rcdwr : int
        Activation to read, and to write.
    n_rp, n_ras, n_rc : int
        Precharge to activation, activation to precharge, activation to activation of a bank. ``n_rc`` may be less than
        ``n_ras + n_rp`` (published sets round each from ns): the sum then holds by the other two.
    n_wr : int
        End of a write's data to precharge.
    n_rtps, n_rtpl : int
        Read to precharge, short and long. The rules use the long one, which covers the short.
    n_cl, n_cwl, n_bl : int
        Read and write latency, and cycles that a column's data lasts on the pins.
    n_ccds, n_ccdl : int
        Column to column in a rank, and in a bank group.
    n_ccdab : int
        Multiply-accumulate to multiply-accumulate of all banks, or of one bank in every bank group: where a limit of
        power stands.
    n_rrds, n_rrdl : int
        Activation to activation in a rank, and in a bank group.
    n_wtrs, n_wtrl : int
        End of a write's data to a read in its rank, and in its bank group.
    n_rtw : int
        Read command to write command on the same pins.
    n_faw : int
        Window in which a rank may start four activations.
    n_rfc, n_refi : int
        Length of a refresh of all banks, and the interval at which one falls due.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer, less than 1, or contradicts another.
    """

    clock_ns: float
    n_rcdrd: int
    n_rcdwr: int
    n_rp: int
    n_ras: int
    n_rc: int
    n_wr: int
    n_rtps: int
    n_rtpl: int
    n_cl: int
    n_cwl: int
    n_bl: int
    n_ccds: int
    n_ccdl: int
    n_ccdab: int
    n_rrds: int
    n_rrdl: int
    n_wtrs: int
    n_wtrl: int
    n_rtw: int
    n_faw: int
    n_rfc: int
    n_refi: int

    def __post_init__(self) -> None:
        if isinstance(self.clock_ns, bool) or not isinstance(self.clock_ns, int | float):
            raise TypeError(f"clock_ns must be a number, not {self.clock_ns!r}")
        if not (math.isfinite(self.clock_ns) and self.clock_ns > 0):
            raise ValueError(f"clock_ns must be finite and above 0, not {self.clock_ns!r}")
        for item in fields(self):
            if item.name != "clock_ns":
                require_int(item.name, getattr(self, item.name), 1)
        for larger, smaller in (
            ("n_rc", "n_ras"),
            ("n_rfc", "n_rc"),
            ("n_rtpl", "n_rtps"),
            ("n_ccds", "n_bl"),
            ("n_ccdl", "n_ccds"),
            ("n_ccdab", "n_ccdl"),
            ("n_rrdl", "n_rrds"),
            ("n_wtrl", "n_wtrs"),
            ("n_faw", "n_rrds"),
        ):
            require_int(larger, getattr(self, larger), getattr(self, smaller))
        # Else the pins would carry a write's data before the read's are through.
        require_int("n_rtw", self.n_rtw, max(1, self.n_cl + self.n_bl - self.n_cwl))
        require_int("n_refi", self.n_refi, self.n_rfc + 1)


def jedec_cycles(time_ns: float, clock_ns: float) -> int:
    """Return the cycles that cover ``time_ns``, rounded as JEDEC's standards do.

    ``floor(time_ns / clock_ns + 0.974)``: up, except that 2.6 % of a cycle over a whole number is dropped, which is
    where the rounding of the clock period to whole picoseconds shows.

    Raises
    ------
    ValueError
        If either is not above 0.
    """
    if not (time_ns > 0 and clock_ns > 0):
        raise ValueError(f"time_ns and clock_ns must be above 0, not {time_ns!r} and {clock_ns!r}")
    return math.floor(time_ns / clock_ns + 0.974)
