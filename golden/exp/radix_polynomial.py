"""Degree 6 by Horner's rule on a centred argument in radix 4, every product cut to the columns it needs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from golden.exp.compact_frame import CompactFrameSpec, require_core

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["DEGREE", "Digit", "RadixPolynomialSpec", "StepWords", "radix_digits", "radix_product"]

DEGREE = 6
"""Degree of the polynomials here."""

Digit = tuple["npt.NDArray[np.int32]", "npt.NDArray[np.int32]"]
"""Magnitude of a radix-4 digit, 0 to 2, and its sign: 0, or -1 where the digit's row is inverted."""


@dataclass(frozen=True, kw_only=True)
class StepWords:
    """Word lengths of one Horner step ``next = (h * g cut to columns) + c``.

    Parameters
    ----------
    digits : int
        Radix-4 digits of g that are multiplied, from the highest.
    columns : int
        Fraction bits of the product's columns, and of the coefficient; lower columns are never made.
    sum_bits : int
        Fraction bits of the sum that are handed on.
    """

    digits: int
    columns: int
    sum_bits: int

    def __post_init__(self) -> None:
        require_int("digits", self.digits, 1, 8)
        require_int("columns", self.columns, 8, 20)
        require_int("sum_bits", self.sum_bits, 8, self.columns)


def radix_digits(g: npt.NDArray[np.int64], bits: int) -> list[Digit]:
    """Return the radix-4 digits -2 to 2 of numbers in two's complement, lowest first.

    Digit j is ``g[2j - 1] + g[2j] - 2 * g[2j + 1]``, its sign ``g[2j + 1]``: a digit 0 may have either sign.

    Parameters
    ----------
    g : ndarray of int64
        Numbers of ``bits`` bits.
    bits : int
        Width; the sign is repeated above it.
    """
    twice = g << 1
    digits: list[Digit] = []
    for j in range((bits + 1) // 2):
        low, middle, high = (twice >> 2 * j + i & 1 for i in range(3))
        digits.append((np.abs(low + middle - 2 * high).astype(np.int32), -high.astype(np.int32)))
    return digits


def radix_product(
    digits: list[Digit], h: npt.NDArray[np.int32] | np.int32, *, bits: int, sum_bits: int, words: StepWords
) -> npt.NDArray[np.int32]:
    """Return ``h * g`` as a sum of rows, in units of ``2^-words.columns``.

    Row j is the multiple of h that digit j selects, its bits below the lowest column dropped, and all bits inverted if
    the digit's sign is set: ones' complement, without the 1 that would make it two's.

    Parameters
    ----------
    digits : list of Digit
        Digits of g from :func:`radix_digits`.
    h : ndarray of int32
        Not negative, in units of ``2^-sum_bits``.
    bits : int
        Fraction bits of g.
    sum_bits : int
        Fraction bits of h.
    words : StepWords
        Digits and columns kept.
    """
    total = np.zeros(digits[0][0].shape, np.int32)
    for j in range(len(digits) - words.digits, len(digits)):
        magnitude, sign = digits[j]
        row = magnitude * h ^ sign
        below = bits + sum_bits - 2 * j - words.columns
        total += row >> below if below >= 0 else row << -below
    return total


@dataclass(frozen=True, kw_only=True)
class RadixPolynomialSpec(CompactFrameSpec):
    """What the two degree-6 units share: the polynomial in ``g = f - 1/2`` and its evaluation.

    Parameters
    ----------
    coefficients : tuple of int
        ``c[0] .. c[6]``, positive; ``c[k]`` in units of the columns of step k, ``c[6]`` in those of the first sum.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range, a row lies below all columns of its product, or the
        polynomial is not monotone where results are rounded or misses 1 at zero.

    Notes
    -----
    With ``w = words(k)`` and :func:`radix_product`::

        h = c[6];  h = radix_product(h, g) + c[k] >> w.columns - w.sum_bits   for k = 5 .. 0

    The last sum is cut to 11 fraction bits. Around the middle of the interval the high terms are small: at most 6e-5
    and 4e-6 for degrees 5 and 6, where half a unit in the last place is 5e-4 of the result.
    """

    coefficients: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.coefficients, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"coefficients must be a tuple, not {self.coefficients!r}")
        if len(self.coefficients) != DEGREE + 1:
            raise ValueError(f"coefficients must number {DEGREE + 1}, not {len(self.coefficients)}")
        for k, value in enumerate(self.coefficients):
            require_int(f"coefficients[{k}]", value, 1, (1 << 20) - 1)
        self.require_words()
        self.require_result()

    def require_words(self) -> None:
        """Raise unless the word lengths go together; here all do."""

    def require_result(self) -> None:
        """Raise unless the unit is monotone and exp of both zeros 1."""
        require_core(self.core(np.arange(1 << self.frac_bits)), flushed=self.subnormals == "flushed")

    @abstractmethod
    def words(self, k: int) -> StepWords:
        """Return the word lengths of the step that adds ``c[k]``."""

    @abstractmethod
    def sum_bits(self, k: int) -> int:
        """Return the fraction bits of the sum after adding ``c[k]``; of ``c[6]`` itself for k = 6."""

    @property
    def limits(self) -> tuple[int, ...]:
        """Largest value of every sum over all f, index k after adding ``c[k]``; raises if one is ever negative."""
        sums = self._sums()
        for k, h in enumerate(sums):
            if int(h.min()) < 0:
                raise ValueError(f"sum {k} must not be negative, it reaches {int(h.min())}")
        return tuple(int(h.max()) for h in sums)

    def core(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the polynomial in units of ``2^-11``; see :meth:`CompactFrameSpec.core`."""
        return (self._sums()[0] >> self.sum_bits(0) - 11)[f].astype(np.int64)

    def core_float(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the polynomial with the same coefficients and exact products.

        They make up for what the truncation of every product takes in the mean, so that it lies a little high.
        """
        h = np.full_like(f, self.coefficients[DEGREE] * 2.0 ** -self.sum_bits(DEGREE))
        for k in reversed(range(DEGREE)):
            h = h * (f - 0.5) + self.coefficients[k] * 2.0 ** -self.words(k).columns
        return h

    def step(self, k: int, digits: list[Digit], h: npt.NDArray[np.int32], c: int) -> npt.NDArray[np.int32]:
        """Return the sum after adding ``c`` as ``c[k]``, from the sum before it."""
        words = self.words(k)
        product = radix_product(digits, h, bits=self.frac_bits, sum_bits=self.sum_bits(k + 1), words=words)
        return product + np.int32(c) >> words.columns - words.sum_bits

    def argument_digits(self) -> list[Digit]:
        """Return the digits of g for every f in order."""
        half = 1 << self.frac_bits - 1
        return radix_digits(np.arange(-half, half), self.frac_bits)

    def _sums(self) -> list[npt.NDArray[np.int32]]:
        digits = self.argument_digits()
        sums = [np.full(1 << self.frac_bits, self.coefficients[DEGREE], np.int32)]
        for k in reversed(range(DEGREE)):
            sums.append(self.step(k, digits, sums[-1], self.coefficients[k]))
        return sums[::-1]
