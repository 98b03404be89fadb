"""The number formats of nearkv: one table that golden, hw and sim share.

A *code* is the bit pattern of a number, held as an unsigned integer. Golden models compute in the
NumPy dtype of a format; hardware sees codes. Converting between the two is done here and nowhere else.

Every format has one NaN on the wire, the positive quiet NaN ``nan_code``: hardware never keeps NaN
payloads or signs, so golden models bring NaNs to that code before anything is compared bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["BF16", "FORMATS", "FP8_E4M3", "FP16", "FP32", "Q5_10", "UQ0_16", "UQ1_15", "FixedFormat", "FloatFormat"]
__all__ += ["round_to_dtype"]


@dataclass(frozen=True, kw_only=True)
class FloatFormat:
    """A binary floating-point format: sign, exponent, trailing significand.

    A normal code stands for ``(-1)^sign * 2^(exponent - bias) * (1 + significand / 2^significand_bits)``;
    exponent field 0 holds zero and the subnormals.

    Parameters
    ----------
    name : str
        Short name used on the command line and in reports.
    exponent_bits, significand_bits : int
        Field widths; ``significand_bits`` excludes the hidden bit.
    dtype : numpy dtype
        NumPy (or ml_dtypes) type with this encoding.
    has_infinity : bool
        False for E4M3, whose all-ones exponent holds finite numbers and one NaN.
    source : str
        Where the encoding is defined.
    """

    name: str
    exponent_bits: int
    significand_bits: int
    dtype: np.dtype[Any]
    has_infinity: bool
    source: str

    @property
    def bits(self) -> int:
        """Width of a code in bits."""
        return 1 + self.exponent_bits + self.significand_bits

    @property
    def bytes(self) -> int:
        """Width of a code in bytes."""
        return self.bits // 8

    @property
    def bias(self) -> int:
        """Exponent bias."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def exponent_mask(self) -> int:
        """Exponent field with all bits set, right-aligned."""
        return (1 << self.exponent_bits) - 1

    @property
    def sign_mask(self) -> int:
        """Code with only the sign bit set: minus zero."""
        return 1 << (self.bits - 1)

    @property
    def nan_code(self) -> int:
        """The one NaN code that leaves the hardware: positive and quiet."""
        if self.has_infinity:
            return self.inf_code | 1 << (self.significand_bits - 1)
        return self.sign_mask - 1

    @property
    def inf_code(self) -> int:
        """Code of +infinity.

        Raises
        ------
        ValueError
            If the format has no infinity.
        """
        if not self.has_infinity:
            raise ValueError(f"Format must have an infinity, {self.name} has none")
        return self.exponent_mask << self.significand_bits

    @property
    def one_code(self) -> int:
        """Code of 1.0."""
        return self.bias << self.significand_bits

    @property
    def max_finite(self) -> float:
        """Largest finite number."""
        return float(self.from_codes((self.inf_code if self.has_infinity else self.nan_code) - 1))

    @property
    def min_normal(self) -> float:
        """Smallest positive normal number."""
        return float(2.0 ** (1 - self.bias))

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned integer dtype that holds a code."""
        return np.dtype(f"u{self.bytes}")

    def to_codes(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Round ``values`` to this format (nearest, ties to even) and return their codes.

        NaNs become ``nan_code``. Values above the range become infinity where there is one; in E4M3
        they become NaN, as its definition says.

        Parameters
        ----------
        values : array_like of float
            Any shape; float64 or narrower.

        Returns
        -------
        ndarray of ``code_dtype``
            Same shape.
        """
        values = np.asarray(values)
        with np.errstate(invalid="ignore"):
            rounded = np.ascontiguousarray(round_to_dtype(values, self.dtype))
            codes = rounded.view(self.code_dtype).reshape(values.shape).copy()
            codes[np.isnan(rounded).reshape(values.shape)] = self.nan_code
        return codes

    def from_codes(self, codes: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the numbers that ``codes`` stand for, in this format's dtype.

        Parameters
        ----------
        codes : array_like of int
            Any shape; each from 0 to ``2**bits - 1``.

        Returns
        -------
        ndarray of ``dtype``
            Same shape.

        Raises
        ------
        TypeError, ValueError
            If a code is no integer or has more bits than the format.
        """
        codes = _checked_codes(codes, self.bits)
        return np.ascontiguousarray(codes.astype(self.code_dtype)).view(self.dtype).reshape(codes.shape)


@dataclass(frozen=True, kw_only=True)
class FixedFormat:
    """A binary fixed-point format: ``code * 2^-fraction_bits``, in two's complement where signed.

    Parameters
    ----------
    name : str
        Short name used on the command line and in reports.
    integer_bits, fraction_bits : int
        Bits before and behind the point; ``integer_bits`` excludes the sign.
    signed : bool
        Whether a sign bit leads.
    """

    name: str
    integer_bits: int
    fraction_bits: int
    signed: bool

    @property
    def bits(self) -> int:
        """Width of a code in bits."""
        return int(self.signed) + self.integer_bits + self.fraction_bits

    @property
    def bytes(self) -> int:
        """Width of a code in bytes."""
        return self.bits // 8

    @property
    def max_code(self) -> int:
        """Code of the largest number."""
        return (1 << (self.integer_bits + self.fraction_bits)) - 1

    @property
    def max_finite(self) -> float:
        """Largest number."""
        return self.max_code * 2.0**-self.fraction_bits

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned integer dtype that holds a code."""
        return np.dtype(f"u{self.bytes}")

    def to_codes(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Round ``values`` to this format (nearest, ties to even; the ends of the range beyond them).

        Parameters
        ----------
        values : array_like of float
            Any shape; no NaN.

        Returns
        -------
        ndarray of ``code_dtype``
            Same shape.

        Raises
        ------
        ValueError
            If a value is NaN, for which there is no code.
        """
        values = np.asarray(values, dtype=np.float64)
        if np.isnan(values).any():
            raise ValueError(f"values must be numbers for {self.name}, not NaN")
        lowest = -self.max_code - 1 if self.signed else 0
        scaled = np.rint(np.clip(np.ldexp(values, self.fraction_bits), lowest, self.max_code)).astype(np.int64)
        return (scaled & ((1 << self.bits) - 1)).astype(self.code_dtype)

    def from_codes(self, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the numbers that ``codes`` stand for.

        Parameters
        ----------
        codes : array_like of int
            Any shape; each from 0 to ``2**bits - 1``.

        Returns
        -------
        ndarray of float64
            Same shape.

        Raises
        ------
        TypeError, ValueError
            If a code is no integer or has more bits than the format.
        """
        return np.ldexp(self.integers(codes).astype(np.float64), -self.fraction_bits)

    def integers(self, codes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the signed integers that ``codes`` hold, the numbers in units of ``2^-fraction_bits``.

        Raises
        ------
        TypeError, ValueError
            If a code is no integer or has more bits than the format.
        """
        codes = _checked_codes(codes, self.bits).astype(np.int64)
        return codes - ((codes >> (self.bits - 1)) << self.bits) if self.signed else codes


def round_to_dtype(values: npt.ArrayLike, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Round ``values`` once to ``dtype``: nearest, ties to even, subnormals kept, infinity beyond the range.

    Parameters
    ----------
    values : array_like of float
        Any shape; float64 or narrower.
    dtype : numpy dtype
        A floating-point type of NumPy or ml_dtypes.

    Returns
    -------
    ndarray of ``dtype``
        Same shape.
    """
    values = np.asarray(values)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if dtype.kind == "V" and values.dtype.name not in ("float32", "float16"):
            # ml_dtypes goes from float64 through float32 and rounds twice; an odd float32 hides no tie.
            values = _round_to_odd(values.astype(np.float64))
        return values.astype(dtype)


def _checked_codes(codes: npt.ArrayLike, bits: int) -> npt.NDArray[Any]:
    """Return ``codes`` as an array, if they are integers of so many bits."""
    codes = np.asarray(codes)
    if codes.size and codes.dtype.kind not in "iu":
        raise TypeError(f"codes must be integers, not {codes.dtype}")
    if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < 1 << bits:
        lowest, highest = int(codes.min()), int(codes.max())
        raise ValueError(f"codes must be from 0 to {(1 << bits) - 1}, not from {lowest} to {highest}")
    return codes


def _round_to_odd(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Round to float32 towards zero, then set the last bit of every inexact result.

    Rounding the result to a significand of at most 22 bits equals rounding ``values`` themselves.
    """
    nearest = values.astype(np.float32)
    exact = (nearest == values) | np.isnan(values)
    away = np.abs(nearest) > np.abs(values)
    truncated = np.where(away, np.nextafter(nearest, np.float32(0)), nearest)
    return (truncated.view(np.uint32) | np.where(exact, 0, 1).astype(np.uint32)).view(np.float32)


_IEEE = "IEEE 754-2019, table 3.5"

FP32 = FloatFormat(
    name="fp32", exponent_bits=8, significand_bits=23, dtype=np.dtype(np.float32), has_infinity=True, source=_IEEE
)
FP16 = FloatFormat(
    name="fp16", exponent_bits=5, significand_bits=10, dtype=np.dtype(np.float16), has_infinity=True, source=_IEEE
)
BF16 = FloatFormat(
    name="bf16",
    exponent_bits=8,
    significand_bits=7,
    dtype=np.dtype(ml_dtypes.bfloat16),
    has_infinity=True,
    source="upper half of an IEEE 754 binary32",
)
FP8_E4M3 = FloatFormat(
    name="fp8_e4m3",
    exponent_bits=4,
    significand_bits=3,
    dtype=np.dtype(ml_dtypes.float8_e4m3fn),
    has_infinity=False,
    source="OCP 8-bit Floating Point Specification (OFP8), E4M3",
)

FORMATS = {fmt.name: fmt for fmt in (FP32, FP16, BF16, FP8_E4M3)}

Q5_10 = FixedFormat(name="q5.10", integer_bits=5, fraction_bits=10, signed=True)
"""Operands from -32 up to but not including 32."""
UQ0_16 = FixedFormat(name="uq0.16", integer_bits=0, fraction_bits=16, signed=False)
"""Results from 0 up to but not including 1."""
UQ1_15 = FixedFormat(name="uq1.15", integer_bits=1, fraction_bits=15, signed=False)
"""Results from 0 up to but not including 2."""
