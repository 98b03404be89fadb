"""Range reduction and rounding around a core that computes ``2^f`` on [0, 1).

``exp(x) = 2^t`` with ``t = x * log2(e)``; ``t`` is split into its floor ``n`` and fraction ``f``, a core gives
``2^f``, and ``n`` becomes the exponent. Families that differ in their core alone subclass :class:`ReducedSpec`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from golden.checks import require_int
from golden.exp.spec import ExpSpec, require_choice
from golden.formats import FP16, FloatFormat

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ReducedSpec", "Rounding"]

Rounding = Literal["nearest_even", "nearest_up", "truncated"]
"""Rounding of the result: to the nearest code, with ties to the even one or to the upper one, or to the one below."""


@dataclass(frozen=True, kw_only=True)
class ReducedSpec(ExpSpec):
    """Exponential by range reduction: a subclass adds the core, ``2^f`` for f in [0, 1).

    Parameters
    ----------
    frac_bits : int
        Fraction bits kept of ``t``, so the width of ``f``.
    log2e : int
        The constant log2(e) in units of ``2^-log2e_bits``, rounded down or up.
    log2e_bits : int
        Fraction bits of ``log2e``. At 17 log2(e) happens to lie within 0.08 units of the grid, so that its error,
        5.8e-7, moves no in-range t by a whole ``2^-16``.
    rounding : {"nearest_even", "nearest_up", "truncated"}
        Rounding of the result. A truncating unit can still be right to the nearest: its core then holds half a unit.

    Notes
    -----
    With ``A = frac_bits``, ``F = core_bits``, ``M`` the signed significand of x as an integer and all divisions by
    powers of two rounding down::

        t   = floor(M * log2e * 2^(e + A))      e: the exponent that makes M * log2e * 2^e = x * log2(e)
        n,f = t >> A, t mod 2^A
        y   = round(core(f) * 2^-F * 2^n)  into ``fmt``

    Operands of at least ``2^range_bits`` in magnitude take the limit (infinity or zero) without being multiplied.
    A ``nonpositive`` unit does not look at the sign: for an operand above zero it returns exp of its negative. A
    ``flushed`` unit returns +0 where n lies below the exponents of normal numbers.

    :meth:`require_core`, which a subclass calls at the end of its checks, sees to exp(+0) = exp(-0) = 1 and to a
    monotone result.
    """

    fmt: FloatFormat = FP16
    frac_bits: int = 16
    log2e: int = 189097
    log2e_bits: int = 17
    rounding: Rounding = "nearest_even"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Fewer bits than this cannot even hold the rounding position of the result.
        require_int("frac_bits", self.frac_bits, self.fmt.significand_bits + 1, 20)
        require_int("log2e_bits", self.log2e_bits, 4, 30)
        below = int(np.log2(np.e) * (1 << self.log2e_bits))
        require_int("log2e", self.log2e, below, below + 1)
        require_choice("rounding", self.rounding, get_args(Rounding))

    def require_core(self) -> None:
        """Raise unless exp(0) is 1 and no result falls as its operand rises.

        A core that does not fall as f rises, starts at no less than ``2^F`` and ends below ``2^(F+1)`` proves the
        second for every code: t does not fall as x rises. This is found by evaluating every f. A core that falls
        somewhere, or, truncating, reaches beyond by less than a unit of the result, is tried on every code.

        Raises
        ------
        ValueError
            If it is not so.
        """
        one = 1 << self.core_bits
        unit = one >> self.fmt.significand_bits
        h = self.core(np.arange(1 << self.frac_bits))
        truncated = self.rounding == "truncated"
        first, limit = int(h[0]), one + (unit if truncated else unit >> 1) - 1
        if not one <= first <= limit:
            raise ValueError(f"core(0) must be from {one} to {limit} so that exp(0) = 1, not {first}")
        if h.min() < one:
            raise ValueError(f"the core must not fall below {one}, it reaches {int(h.min())}")
        high = 2 * one + (unit if truncated else 0)
        if h.max() >= high:
            raise ValueError(f"the core must stay below {high}, it reaches {int(h.max())}")
        if h.max() < 2 * one and bool(np.all(h[1:] >= h[:-1])):
            return
        sign, inf = self.fmt.sign_mask, self.fmt.inf_code
        positive = np.arange(1 if self.domain == "nonpositive" else inf + 1)
        codes = np.concatenate((np.arange(sign | inf, sign - 1, -1), positive))
        results = self.evaluate_codes(codes)
        falls = np.flatnonzero(results[1:] < results[:-1])
        if falls.size:
            code = int(codes[falls[0] + 1])
            raise ValueError(f"results must not fall as operands rise, they do at code {code:#06x}")

    @property
    @abstractmethod
    def core_bits(self) -> int:
        """Fraction bits of the core's result, more than the significand of ``fmt`` has."""

    @abstractmethod
    def core(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return ``2^f`` as the hardware computes it.

        Parameters
        ----------
        f : ndarray of int64
            Fractions in units of ``2^-frac_bits``.

        Returns
        -------
        ndarray of int64
            Same shape, in units of ``2^-core_bits``, from 1 up to but not including 2 (truncating: 2 and a unit).
        """

    @abstractmethod
    def core_float(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return ``2^f`` by the same approximation with no word lengths, for f in [0, 1)."""

    @property
    def range_bits(self) -> int:
        """Integer bits that can matter: every operand of at least ``2^range_bits`` overflows or vanishes."""
        fmt = self.fmt
        return int(np.ceil(np.log2((fmt.bias + fmt.significand_bits + 1) * np.log(2))))

    def evaluate_float(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the core's approximation with exact log2(e), real f and no rounding; see :class:`ExpSpec`."""
        x = np.asarray(x, dtype=np.float64)
        finite = np.isfinite(x)
        t = np.clip(np.where(finite, x, 0.0) * np.log2(np.e), -1100.0, 1100.0)
        n = np.floor(t)
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(self.core_float(t - n), n.astype(np.int64))
            return np.where(finite, scaled, np.exp(x))

    def evaluate_codes(self, codes: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return what the hardware returns, bit for bit; see :class:`ExpSpec`."""
        fmt = self.fmt
        code = self._operands(codes)
        negative = (code & fmt.sign_mask) != 0
        nan = (code & (fmt.sign_mask - 1)) > fmt.inf_code
        n, f, beyond = self.reduce_codes(code)
        rounded = self.round_scaled(self.core(f), n)
        overflow = beyond & ~negative | (n > fmt.bias)
        result = np.where(overflow, fmt.inf_code, np.where(beyond, 0, rounded))
        return np.where(nan, fmt.nan_code, result).astype(np.uint16)

    def reduce_codes(
        self, codes: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Split ``t = x * log2(e)`` of every code into floor and fraction.

        Parameters
        ----------
        codes : array_like of int
            Codes of ``fmt``, any shape.

        Returns
        -------
        n, f : ndarray of int64
            Floor, and fraction in units of ``2^-frac_bits``; both 0 where ``beyond``.
        beyond : ndarray of bool
            The magnitude is at least ``2^range_bits``, infinite or NaN.
        """
        fmt = self.fmt
        code = self._operands(codes)
        field = code >> fmt.significand_bits & fmt.exponent_mask
        beyond = field >= fmt.bias + self.range_bits
        significand = code & ((1 << fmt.significand_bits) - 1) | np.where(field != 0, 1 << fmt.significand_bits, 0)
        product = np.where(code & fmt.sign_mask, -significand, significand) * self.log2e
        exponent = np.maximum(field, 1) - fmt.bias - fmt.significand_bits
        shift = np.where(beyond, 0, exponent - self.log2e_bits + self.frac_bits)
        t = np.where(shift >= 0, product << np.maximum(shift, 0), product >> np.clip(-shift, 0, 63))
        t = np.where(beyond, 0, t)
        return t >> self.frac_bits, t & ((1 << self.frac_bits) - 1), beyond

    def round_scaled(self, h: npt.NDArray[np.int64], n: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Round ``h * 2^n`` as ``rounding`` says.

        Parameters
        ----------
        h, n : ndarray of int64, one shape
            Results of the core in units of ``2^-core_bits``, below 2; exponents up to ``fmt.bias``.

        Returns
        -------
        ndarray of int64
            Codes of ``fmt``, subnormal results and the carry into infinity included.
        """
        fmt = self.fmt
        field = n + fmt.bias
        # S + 2 positions below the smallest normal number even h < 2 rounds to zero.
        drop = self.core_bits - fmt.significand_bits + np.clip(1 - field, 0, fmt.significand_bits + 2)
        kept = h >> drop
        rest = h & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        match self.rounding:
            case "nearest_even":
                up = (rest > half) | ((rest == half) & (kept & 1 == 1))
            case "nearest_up":
                up = rest >= half
            case "truncated":
                up = np.zeros_like(kept, dtype=np.bool_)
        # The hidden bit, part of ``kept``, carries into the exponent field.
        base = np.maximum(field, 1) - 1
        rounded = (base << fmt.significand_bits) + kept + up
        return np.where((field < 1) & (self.subnormals == "flushed"), 0, rounded)

    def _operands(self, codes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the codes as the unit reads them."""
        code = np.asarray(codes).astype(np.int64)
        return code | self.fmt.sign_mask if self.domain == "nonpositive" else code
