"""The compact degree-6 units: a multiplier a step, each as small as its step allows, or one for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from golden.checks import require_int
from golden.exp.radix_polynomial import DEGREE, RadixPolynomialSpec, StepWords, radix_digits, radix_product

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from golden.exp.spec import Evaluation

__all__ = ["COMPACT_POLYNOMIAL_SPECS", "CompactPolynomialSpec", "SerialPolynomialSpec"]


@dataclass(frozen=True, kw_only=True)
class CompactPolynomialSpec(RadixPolynomialSpec):
    """Degree 6 on a multiplier a step, each as small as its step allows.

    Parameters
    ----------
    log2e_powers : tuple of int
        log2(e) as signed powers of two: ``k + 1`` stands for ``2^-k``, ``-(k + 1)`` for ``-2^-k``.
    product_columns : int
        Fraction bits of P: lower columns of the constant product are never made.
    product_offset : int
        Constant added to P, in units of its lowest column, for what truncation takes.
    step_digits : tuple of int
        Digits of g that are multiplied in the steps that add ``c[0] .. c[5]``.
    step_columns : tuple of int
        Fraction bits of the products' columns in these steps.
    kept_bits : tuple of int
        Fraction bits of the sums after these steps, and of ``c[6]``.

    Notes
    -----
    In units of ``2^-product_columns``, every row rounded down, a negative one after the inversion of its bits::

        P = sum of (+M or -M - 1) * 2^-k, M = 1 + fraction,  + product_offset
    """

    log2e_powers: tuple[int, ...]
    product_columns: int
    product_offset: int
    step_digits: tuple[int, ...]
    step_columns: tuple[int, ...]
    kept_bits: tuple[int, ...]
    evaluation: Evaluation = "combinational"

    family: ClassVar[str] = "compact-polynomial"

    def __post_init__(self) -> None:
        require_int("product_columns", self.product_columns, 11, 20)
        require_int("product_offset", self.product_offset, 0, 63)
        for name, count in (("step_digits", DEGREE), ("step_columns", DEGREE), ("kept_bits", DEGREE + 1)):
            if len(getattr(self, name)) != count:
                raise ValueError(f"{name} must number {count}, not {len(getattr(self, name))}")
        require_int("kept_bits[6]", self.kept_bits[DEGREE], 8, 20)
        for power in self.log2e_powers:
            require_int("log2e_powers", abs(power), 1, 20)
        super().__post_init__()

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Degree and word lengths: of the argument, of the product, and of each step's columns."""
        columns = "/".join(str(columns) for columns in self.step_columns)
        return {
            "degree": DEGREE,
            "frac_bits": self.frac_bits,
            "product_columns": self.product_columns,
            "columns": columns,
        }

    @property
    def steps(self) -> int:
        """Steps of the datapath: log2(e), shift, one Horner step a degree, scaling and rounding."""
        return DEGREE + 3

    def words(self, k: int) -> StepWords:
        """Return the word lengths of the step that adds ``c[k]``."""
        return StepWords(digits=self.step_digits[k], columns=self.step_columns[k], sum_bits=self.kept_bits[k])

    def sum_bits(self, k: int) -> int:
        """Fraction bits of the sum after adding ``c[k]``."""
        return self.kept_bits[k]

    @property
    def product_bits(self) -> int:
        """Fraction bits of P."""
        return self.product_columns

    def product(self, fraction: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the truncated sum of shifted significands; see :meth:`CompactFrameSpec.product`."""
        significand = fraction | 1 << 10
        total = np.full_like(fraction, self.product_offset)
        for power in self.log2e_powers:
            row = (significand if power > 0 else ~significand) << self.product_columns
            total += row >> 10 + abs(power) - 1
        return total

    def require_words(self) -> None:
        """Raise unless every row of every product reaches a column."""
        count = (self.frac_bits + 1) // 2
        for k, limit in enumerate(self.limits[1:]):
            words = self.words(k)
            if words.digits > count:
                raise ValueError(f"words of step {k} must use at most {count} digits, not {words.digits}")
            # Places from the lowest row's lowest bit up to the lowest column.
            below = self.frac_bits + self.sum_bits(k + 1) - 2 * (count - words.digits) - words.columns
            if limit.bit_length() < below:
                raise ValueError(f"digits of step {k} must be fewer than {words.digits}: the lowest row has no column")


@dataclass(frozen=True, kw_only=True)
class SerialPolynomialSpec(RadixPolynomialSpec):
    """Degree 6 on one multiplier, which multiplies by log2(e) as well.

    Parameters
    ----------
    columns : int
        Fraction bits of the product's columns, in every step.
    accumulator_bits : int
        Fraction bits of the accumulator, so of every sum.
    log2e : int
        log2(e) in units of the accumulator.
    product_constant : int
        Half of log2(e), for the hidden bit, and what truncation takes, in units of the columns.

    Notes
    -----
    With the significand's fraction as the argument of :func:`radix_product` at half its weight::

        P = 2 * (radix_product(log2e, fraction / 2) + product_constant >> columns - accumulator_bits)

    Eight cycles an operand: product, shift, six Horner steps; the result waits in the accumulator, and the next
    operand may enter in the cycle in which it is taken.
    """

    columns: int
    accumulator_bits: int
    log2e: int
    product_constant: int
    evaluation: Evaluation = "serial"

    family: ClassVar[str] = "compact-polynomial-serial"
    evaluations: ClassVar[tuple[Evaluation, ...]] = ("serial",)

    def __post_init__(self) -> None:
        require_int("frac_bits", self.frac_bits, 13, 16)
        below = int(np.log2(np.e) * (1 << self.accumulator_bits))
        require_int("log2e", self.log2e, below - 2, below + 2)
        require_int("product_constant", self.product_constant, 0, (1 << self.columns) - 1)
        super().__post_init__()

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Degree and word lengths."""
        return {
            "degree": DEGREE,
            "frac_bits": self.frac_bits,
            "columns": self.columns,
            "sum_bits": self.accumulator_bits,
        }

    @property
    def steps(self) -> int:
        """Cycles that an operand takes: log2(e), shift, one Horner step a degree."""
        return DEGREE + 2

    @property
    def interval_cycles(self) -> int:
        """Cycles between two accepted operands without stalls."""
        return self.steps

    def words(self, k: int) -> StepWords:
        """Return the word lengths, which are those of every step."""
        return StepWords(digits=(self.frac_bits + 1) // 2, columns=self.columns, sum_bits=self.accumulator_bits)

    def sum_bits(self, k: int) -> int:
        """Return the fraction bits of the accumulator."""
        return self.accumulator_bits

    @property
    def product_bits(self) -> int:
        """Fraction bits of P, which the accumulator holds halved."""
        return self.accumulator_bits - 1

    def product(self, fraction: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the accumulator after the first cycle; see :meth:`CompactFrameSpec.product`."""
        # The fraction's top bit lies below g's sign, at a quarter.
        digits = radix_digits(fraction << self.frac_bits - 11, self.frac_bits)
        words = self.words(0)
        product = radix_product(
            digits, np.int32(self.log2e), bits=self.frac_bits, sum_bits=self.accumulator_bits, words=words
        )
        return (product.astype(np.int64) + self.product_constant) >> words.columns - words.sum_bits


_COMBINATIONAL = CompactPolynomialSpec(
    name="compact-poly6",
    frac_bits=14,
    coefficients=(46345, 8031, 1393, 166, 64, 129, 14),
    log2e_powers=(1, 2, -5, 9, 11, 13, 15),
    product_columns=15,
    product_offset=4,
    step_digits=(7, 6, 4, 2, 2, 2),
    step_columns=(15, 13, 12, 11, 12, 16),
    kept_bits=(11, 13, 12, 11, 12, 13, 16),
)

COMPACT_POLYNOMIAL_SPECS: tuple[RadixPolynomialSpec, ...] = (
    _COMBINATIONAL,
    _COMBINATIONAL.replace(name="compact-poly6-flushed", subnormals="flushed"),
    _COMBINATIONAL.replace(
        name="compact-poly6-nonpositive",
        domain="nonpositive",
        subnormals="flushed",
        coefficients=(46345, 16062, 2783, 164, 64, 129, 14),
        step_columns=(15, 14, 13, 11, 12, 16),
    ),
    SerialPolynomialSpec(
        name="compact-poly6-serial",
        frac_bits=14,
        columns=16,
        accumulator_bits=15,
        log2e=47274,
        product_constant=47277,
        coefficients=(92685, 64246, 22278, 5172, 903, 100, 6),
    ),
)
"""Degree 6 combinational and serial, at least 95 % correctly rounded over all codes with a normal result.

Constants by :func:`golden.exp.fit.compact_polynomial.fit`. The words of ``compact-poly6`` are what ``shrink`` leaves at
a share of 0.951 of ``product_columns=16, step_digits=(7, 6, 4, 3, 2, 2), step_columns=(15, 14, 14, 12, 13, 16),
kept_bits=(15, 14, 14, 12, 12, 13, 16)``; for softmax alone, half of whose codes this serves less well, two steps have a
column more.
"""
