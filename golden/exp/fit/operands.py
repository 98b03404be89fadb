"""What a polynomial's core has to be for each operand's result to be the correctly rounded one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from golden.exp.fixed import FixedPolynomialSpec
from golden.exp.polynomial import PolynomialSpec

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["AnyPolynomial", "Operands", "operands", "result_bits"]

AnyPolynomial: TypeAlias = PolynomialSpec | FixedPolynomialSpec
"""Specs that can be fitted."""


class Operands(NamedTuple):
    """Operands that are counted, one an entry, and the fractions of all."""

    every: npt.NDArray[np.int64]
    f: npt.NDArray[np.int64]
    exact: npt.NDArray[np.float64]
    """What the core should be."""
    low: npt.NDArray[np.int64]
    """The smallest core whose result is right."""
    high: npt.NDArray[np.int64]


def operands(spec: AnyPolynomial) -> Operands:
    """Return what counts of the codes of ``spec``."""
    if isinstance(spec, FixedPolynomialSpec):
        return _fixed_operands(spec)
    fmt = spec.fmt
    codes = np.arange(fmt.sign_mask if spec.domain == "nonpositive" else 0, 1 << fmt.bits)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exact = np.exp(fmt.from_codes(codes).astype(np.float64))
    expected = fmt.to_codes(exact).astype(np.int64)
    normal = (exact >= fmt.min_normal) & (expected < fmt.inf_code)
    every_n, every, _ = spec.reduce_codes(codes)
    n, expected = every_n[normal], expected[normal]
    hidden = 1 << fmt.significand_bits
    # The significand in units of n's binade: t is rounded down, so the result may be the next binade's first.
    exponent = (expected >> fmt.significand_bits) - fmt.bias
    significand = (expected & (hidden - 1) | hidden) << (exponent - n)
    low, high = _accepted(spec, significand, np.full_like(significand, spec.core_bits - fmt.significand_bits))
    return Operands(every, every[normal], np.ldexp(exact[normal], spec.core_bits - n), low, high)


def _fixed_operands(spec: FixedPolynomialSpec) -> Operands:
    """Return what counts of the codes of a fixed-point ``spec``."""
    codes = np.arange(1 << spec.fmt.bits)
    exact = np.exp(spec.fmt.from_codes(codes))
    expected = spec.result.to_codes(exact).astype(np.int64)
    n, every = spec.reduce_codes(codes)
    inside = (expected > 0) & (n < spec.result.integer_bits)
    low, high = _accepted(spec, expected[inside], spec.drop(n[inside]))
    return Operands(every, every[inside], np.ldexp(exact[inside], spec.core_bits - n[inside]), low, high)


def _accepted(
    spec: AnyPolynomial, kept: npt.NDArray[np.int64], drop: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the smallest and largest core that round to ``kept`` when ``drop`` low bits go."""
    unit = 1 << drop
    low, high = kept * unit, (kept + 1) * unit - 1
    if spec.rounding == "truncated":
        return low, high
    low, high = low - unit // 2, high - unit // 2
    if spec.rounding == "nearest_even":
        odd = kept & 1
        low, high = low + odd, high + 1 - odd
    return low, high


def result_bits(spec: AnyPolynomial) -> int:
    """Return the fraction bits of a result in [1, 2), or in the largest binade that a fixed-point one has."""
    return spec.result.bits - 1 if isinstance(spec, FixedPolynomialSpec) else spec.fmt.significand_bits
