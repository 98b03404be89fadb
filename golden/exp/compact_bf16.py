"""The smallest bf16 exponential: two table look-ups for log2(e), one subtraction for ``2^f``, and no rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.exp.spec import Evaluation, ExpSpec, Subnormals
from golden.formats import BF16, FloatFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CompactBf16Spec"]

_BITS = BF16.significand_bits
_TOP_EXPONENT = 6
"""Exponent of the largest operands with a finite, normal result."""
_LOWEST_EXPONENTS = (-7, -15)


@dataclass(frozen=True, kw_only=True)
class CompactBf16Spec(ExpSpec):
    """Exponential of a bf16 code by tables that stand in for its multiplications.

    Parameters
    ----------
    high : tuple of int
        ``log2(e)`` times the significand ``1.m`` with the lower bits of m zero, for every value of its upper bits, in
        units of ``2^-product_bits``.
    low : tuple of int
        ``log2(e)`` times the lower bits of m, in the same units.
    product_bits : int
        Fraction bits of their sum.
    frac_bits : int
        Fraction bits of ``t = x * log2(e)``.
    correction : tuple of int
        What f has above ``2^f - 1``, in units of ``2^-frac_bits``, for each of the equal pieces of [0, 1).
    rounding : int
        Added to f in the same units before it is cut, at most half a unit in the last place of the result. What it
        lacks of that half can be taken off the correction, as far as that stays above zero; so only operands whose t
        lies just above a whole number need it, and without it the subtraction is smaller.
    lowest_exponent : {-7, -15}
        Operands with a smaller exponent count as zero. Of those below ``2^-15`` t has no bit anyway; to drop those from
        there to ``2^-7`` as well costs one correctly rounded code in a hundred.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range; if the result would fall somewhere as x rises, or
        would be zero or infinite for an operand that has a normal one, or the reverse.

    Notes
    -----
    With ``A = frac_bits``, ``e`` the exponent of x, and all divisions by powers of two rounding down::

        p   = high[upper bits of m] + low[lower bits of m]      x * log2(e) = p * 2^(e - product_bits)
        t   = p * 2^(e - product_bits + A)                      of x < 0: ones' complement, -t - 1
        n,f = t >> A, t mod 2^A
        y   = f + rounding - correction[upper bits of f], cut to 7 fraction bits
        exp(x) = 2^n * (1 + y)

    Where the first 8 bits of f are ones the result is the next power of two; that is where operands just below zero
    get their 1, -0 included. Cutting a positive t and inverting it both round it down, so that one correction serves
    both signs.

    Seven eighths of the codes with a normal result have a magnitude so small that 1 is the right result, which tables
    of any size give; they are why the share of correctly rounded results looks high. A ``nonpositive`` unit takes
    every operand for negative. Subnormal results are flushed: +0 from an operand of -87.5 on.
    """

    fmt: FloatFormat = BF16
    subnormals: Subnormals = "flushed"
    evaluation: Evaluation = "combinational"
    high: tuple[int, ...]
    low: tuple[int, ...]
    product_bits: int = 14
    frac_bits: int = 8
    correction: tuple[int, ...]
    rounding: int = 0
    lowest_exponent: int = -7

    family: ClassVar[str] = "compact-bf16"
    formats: ClassVar[tuple[FloatFormat, ...]] = (BF16,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subnormals != "flushed":
            raise ValueError(f"subnormals must be flushed, not {self.subnormals!r}")
        require_int("frac_bits", self.frac_bits, _BITS + 1, 12)
        require_int("product_bits", self.product_bits, self.frac_bits, 20)
        require_int("rounding", self.rounding, 0, 1 << (self.frac_bits - _BITS - 1))
        if self.lowest_exponent not in _LOWEST_EXPONENTS:
            raise ValueError(f"lowest_exponent must be -7 or -15, not {self.lowest_exponent!r}")
        self._check_tables()
        self._check_range()
        values = self.evaluate_codes(_ascending(self.domain)).astype(np.int64)
        falls = np.flatnonzero(np.diff(values) < 0)
        if falls.size:
            x = float(BF16.from_codes(_ascending(self.domain)[falls[0] + 1]))
            raise ValueError(f"result must not fall as x rises, it does at x = {x}")

    def _check_tables(self) -> None:
        for name, table in (("high", self.high), ("low", self.low), ("correction", self.correction)):
            if not isinstance(table, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{name} must be a tuple, not {table!r}")
            if len(table) < 2 or len(table) & (len(table) - 1):
                raise ValueError(f"{name} must have a power of two of entries, not {len(table)}")
        if len(self.high) * len(self.low) != 1 << _BITS:
            raise ValueError(
                f"high and low must have {1 << _BITS} entries multiplied, not {len(self.high)} and {len(self.low)}"
            )
        if self.correction_bits > self.frac_bits:
            raise ValueError(f"correction must have at most {1 << self.frac_bits} entries, not {len(self.correction)}")
        for name, table in (("high", self.high), ("low", self.low)):
            for k, entry in enumerate(table):
                require_int(f"{name}[{k}]", entry, 0, (4 << self.product_bits) - 1)
        if max(self.high) + max(self.low) >= 4 << self.product_bits:
            raise ValueError(f"high and low must add up to less than 4, not to {max(self.high) + max(self.low)}")
        for k, entry in enumerate(self.correction):
            # A difference below zero would borrow from the exponent.
            largest = (k << (self.frac_bits - self.correction_bits)) + self.rounding
            require_int(f"correction[{k}]", entry, 0, largest)

    def _check_range(self) -> None:
        """Demand that overflow and flushing begin at the right operands, which lie between 64 and 128."""
        one = 1 << self.product_bits
        t = self.product(np.arange(1 << _BITS)) << _TOP_EXPONENT
        # exp(88.5) is finite, exp(89) is not; exp(-87) is normal, exp(-87.5) is not.
        for operand, limit in ((89.0, 128), (87.5, 126)):
            index = int(2 * operand) - (1 << _BITS)
            if not t[index - 1] < limit * one <= t[index]:
                raise ValueError(
                    f"product must pass {limit} from x = {operand - 0.5} to {operand}, "
                    f"not go from {t[index - 1] / one} to {t[index] / one}"
                )

    @property
    def low_bits(self) -> int:
        """Bits of m that choose an entry of ``low``."""
        return len(self.low).bit_length() - 1

    @property
    def correction_bits(self) -> int:
        """Bits of f that choose an entry of ``correction``."""
        return len(self.correction).bit_length() - 1

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Word lengths and tables."""
        return {
            "frac_bits": self.frac_bits,
            "product_bits": self.product_bits,
            "low_entries": len(self.low),
            "correction_entries": len(self.correction),
            "rounding": self.rounding,
            "lowest_exponent": self.lowest_exponent,
        }

    @property
    def steps(self) -> int:
        """Steps of the datapath: product, shift, correction, special results."""
        return 4

    def product(self, m: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return ``log2(e)`` times the significand whose fraction field is ``m``, in units of ``2^-product_bits``."""
        high = np.array(self.high, dtype=np.int64)
        low = np.array(self.low, dtype=np.int64)
        return high[m >> self.low_bits] + low[m & (len(self.low) - 1)]

    def evaluate_float(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return ``2^n * (1 + f - c)``, c the exact correction at the middle of each piece; see :class:`ExpSpec`."""
        x = np.asarray(x, dtype=np.float64)
        finite = np.isfinite(x)
        t = np.clip(np.where(finite, x, 0.0) * np.log2(np.e), -1100.0, 1100.0)
        n = np.floor(t)
        f = t - n
        pieces = len(self.correction)
        middle = (np.floor(f * pieces) + 0.5) / pieces
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(f - middle + 2.0**middle, n.astype(np.int64))
            return np.where(finite, scaled, np.exp(x))

    def evaluate_codes(self, codes: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return what the hardware returns, bit for bit; see :class:`ExpSpec`."""
        fmt, a = BF16, self.frac_bits
        code = np.asarray(codes).astype(np.int64)
        negative = (code & fmt.sign_mask) != 0
        if self.domain == "nonpositive":
            negative = np.ones_like(negative)
        magnitude = code & (fmt.sign_mask - 1)
        exponent = (magnitude >> _BITS) - fmt.bias
        beyond = exponent > _TOP_EXPONENT
        shift = np.where(beyond, 0, exponent - self.product_bits + a)
        p = self.product(magnitude & ((1 << _BITS) - 1))
        t = np.where(shift >= 0, p << np.maximum(shift, 0), p >> np.clip(-shift, 0, 63))
        t = np.where(exponent < self.lowest_exponent, 0, t)
        limit = beyond | (t >= 128 << a) | (negative & (t >= 126 << a))
        t = np.where(negative, ~t, t)
        n, f = t >> a, t & ((1 << a) - 1)
        correction = np.array(self.correction, dtype=np.int64)[f >> (a - self.correction_bits)]
        y = f + self.rounding - correction >> (a - _BITS)
        ones = f >> (a - _BITS - 1) == (2 << _BITS) - 1
        scaled = (n + fmt.bias + ones << _BITS) + np.where(ones, 0, y)
        result = np.where(limit, np.where(negative, 0, fmt.inf_code), scaled)
        return np.where(magnitude > fmt.inf_code, fmt.nan_code, result).astype(np.uint16)


def _ascending(domain: str) -> npt.NDArray[np.int64]:
    """Return the codes of the domain from the smallest number, -infinity, to the largest."""
    negative = np.arange(BF16.sign_mask | BF16.inf_code, BF16.sign_mask - 1, -1)
    return negative if domain == "nonpositive" else np.concatenate((negative, np.arange(BF16.inf_code + 1)))
