"""The frame of the smallest fp16 units: a truncated constant product, one shifter, ones' complement, one incrementer.

Where :class:`golden.exp.frame.ReducedSpec` computes ``t = x * log2(e)`` exactly and then rounds down, a
:class:`CompactFrameSpec` drops whatever its result can do without. The core behind it has to be fitted with all that in
place.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from golden.checks import require_int
from golden.exp.spec import ExpSpec
from golden.formats import FP16, FloatFormat

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["CompactFrameSpec", "require_core"]

_LARGEST_FIELD = 19
"""Exponent field of the largest fp16 operands that are looked at, 16 <= |x| < 32."""

_DEEPEST = 12
"""Places below the smallest normal number from which a result is +0."""


@dataclass(frozen=True, kw_only=True)
class CompactFrameSpec(ExpSpec):
    """Exponential of one fp16 code by range reduction in as few gates as possible.

    Parameters
    ----------
    frac_bits : int
        Fraction bits kept of ``|t|``, so the width of f.

    Notes
    -----
    With ``A = frac_bits`` and e the exponent field of x::

        P   = (1 + fraction) * log2(e), truncated, in units of 2^-product_bits
        T   = floor(P * 2^(e - 15 + A))                       |t| in units of 2^-A
        n,f = T >> A, T mod 2^A;   x < 0:  n = -1 - n,  f = 2^A - 1 - f
        h   = core(f), in units of 2^-11
        y   = ((h >> d) + 1 >> 1) + (n + 14) * 2^10           d = 0 if n >= -14, else d = -14 - n and no second term

    The hidden bit is the constant 1: an operand below the smallest normal number counts as one just below it, whose
    exponential rounds to 1 as well. The ones' complement of a rounded-down ``|t|`` is t rounded down, but for whole t,
    of which zero is the only one: exp(-0) is ``core(2^A - 1) / 2``, which has to round to 1.

    Halves are rounded up, not to even. Below -16 * log2(e) the result is computed until it is a quarter of the
    smallest number, then +0. A ``nonpositive`` unit takes the sign for set: an operand above zero gives exp of its
    negative. A ``flushed`` unit returns +0 where ``n < -14``.
    """

    frac_bits: int

    formats: ClassVar[tuple[FloatFormat, ...]] = (FP16,)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("frac_bits", self.frac_bits, 11, 16)

    @property
    @abstractmethod
    def product_bits(self) -> int:
        """Fraction bits of P."""

    @abstractmethod
    def product(self, fraction: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return P of every 10-bit significand fraction, in units of ``2^-product_bits``, below 4."""

    @abstractmethod
    def core(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return ``2^f`` in units of ``2^-11``, for f in units of ``2^-frac_bits``; see :func:`require_core`."""

    @abstractmethod
    def core_float(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return ``2^f`` by the same approximation with no word lengths, for f in [0, 1)."""

    def reduce_codes(self, codes: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return n and f of every code; they mean nothing where the exponent field is above 19."""
        code = np.asarray(codes).astype(np.int64)
        field = code >> 10 & 31
        table = self.product(np.arange(1 << 10))
        # The smallest shift is the largest field's; beyond it P has no bits to give.
        left = field - _LARGEST_FIELD + (4 + self.frac_bits - self.product_bits)
        product = table[code & 1023]
        total = np.where(left >= 0, product << np.clip(left, 0, 31), product >> np.clip(-left, 0, 63))
        flip = -self._negative(code).astype(np.int64)
        n, f = total >> self.frac_bits, total & ((1 << self.frac_bits) - 1)
        return n ^ flip, f ^ (flip & ((1 << self.frac_bits) - 1))

    def pack(self, codes: npt.ArrayLike, n: npt.NDArray[np.int64], h: npt.NDArray[np.int64]) -> npt.NDArray[np.uint16]:
        """Return the code of ``h * 2^n``, h in units of ``2^-11``, and what the operands ``codes`` demand beside it."""
        code = np.asarray(codes).astype(np.int64)
        field = code >> 10 & 31
        negative = self._negative(code)
        beyond = field > _LARGEST_FIELD
        base = n + 14
        depth = np.clip(-base, 0, _DEEPEST)
        result = (np.maximum(base, 0) << 10) + ((h >> depth) + 1 >> 1)
        result = np.where(~negative & (beyond | (n > 15)), FP16.inf_code, result)
        lowest = -14 if self.subnormals == "flushed" else -25
        result = np.where(negative & (beyond | (n < lowest)), 0, result)
        nan = (code & (FP16.sign_mask - 1)) > FP16.inf_code
        return np.where(nan, FP16.nan_code, result).astype(np.uint16)

    def evaluate_codes(self, codes: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return what the hardware returns, bit for bit; see :class:`ExpSpec`."""
        n, f = self.reduce_codes(codes)
        table = self.core(np.arange(1 << self.frac_bits))
        return self.pack(codes, n, table[f])

    def evaluate_float(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the core's approximation with exact log2(e), real f and no rounding; see :class:`ExpSpec`."""
        x = np.asarray(x, dtype=np.float64)
        finite = np.isfinite(x)
        t = np.clip(np.where(finite, x, 0.0) * np.log2(np.e), -1100.0, 1100.0)
        n = np.floor(t)
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(self.core_float(t - n), n.astype(np.int64))
            return np.where(finite, scaled, np.exp(x))

    def _negative(self, code: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        return np.full(code.shape, True) if self.domain == "nonpositive" else (code & FP16.sign_mask) != 0


def require_core(h: npt.NDArray[np.int64], *, flushed: bool) -> None:
    """Raise unless a core makes the unit monotone and exp of both zeros 1.

    Parameters
    ----------
    h : ndarray of int64, shape (2^frac_bits,)
        The core's result for every f, in units of ``2^-11``.
    flushed : bool
        Whether subnormal results are flushed, so that no rounding below 10 fraction bits counts.

    Raises
    ------
    ValueError
        If h falls where a result is rounded, or does not round to 1 at the first and to 2 at the last f.
    """
    for depth in range(1 if flushed else _DEEPEST):
        rounded = (h >> depth) + 1 >> 1
        falls = np.flatnonzero(rounded[1:] < rounded[:-1])
        if falls.size:
            raise ValueError(
                f"core must not fall as f rises, it does after f = {int(falls[0])} with {10 - depth} fraction bits"
            )
    first, last = (int(value) + 1 >> 1 for value in (h[0], h[-1]))
    if (first, last) != (1024, 2048):
        raise ValueError(f"core must round to 1024 at 0 and to 2048 below 1, not to {first} and {last}")
