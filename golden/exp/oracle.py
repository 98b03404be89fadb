"""The correctly rounded exponential of every code of a 16-bit format, with a check that float64 can tell it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from golden.formats import FixedFormat, FloatFormat

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["exact_exp", "rounded_exp", "unit_in_last_place"]

_SAFE_DISTANCE = 2.0**-34
"""Distance from a rounding boundary, in units in the last place of the result, from which float64 decides.

The library exponential errs by less than 2^-51 of its result, so by less than 2^-35 units in the last place of a
number of at most 16 significant bits; the closest of all results of the formats here lies further off by far.
"""


@lru_cache(maxsize=8)
def exact_exp(fmt: FloatFormat | FixedFormat) -> npt.NDArray[np.float64]:
    """Return exp(x) as float64 for every code x of ``fmt`` in order; read-only.

    Parameters
    ----------
    fmt : FloatFormat or FixedFormat
        A format of 16 bits.

    Returns
    -------
    ndarray of float64, shape (65536,)
        Relative error below 2^-51; 0 and infinity where float64 has no nearer number, NaN for NaN.

    Raises
    ------
    ValueError
        If ``fmt`` has not 16 bits.
    """
    if fmt.bits != 16:
        raise ValueError(f"fmt must be of 16 bits, not {fmt.name!r} of {fmt.bits}")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exact = np.exp(fmt.from_codes(np.arange(1 << fmt.bits)).astype(np.float64))
    exact.flags.writeable = False
    return exact


@lru_cache(maxsize=8)
def rounded_exp(
    fmt: FloatFormat | FixedFormat, result: FloatFormat | FixedFormat | None = None
) -> npt.NDArray[np.uint16]:
    """Return the code of exp(x), rounded to nearest even, for every code x of ``fmt`` in order; read-only.

    Parameters
    ----------
    fmt : FloatFormat or FixedFormat
        Format of the operand, of 16 bits.
    result : FloatFormat or FixedFormat, optional
        Format of the result, of 16 bits; by default that of the operand.

    Returns
    -------
    ndarray of uint16, shape (65536,)
        Floating point: subnormal results rounded, infinity on overflow, the format's one NaN for NaN. Fixed point:
        the largest code for everything above it.

    Raises
    ------
    ValueError
        If a format has not 16 bits.
    ArithmeticError
        If a result lies so close to a rounding boundary that float64 can't tell its side.
    """
    exact, result = exact_exp(fmt), result or fmt
    if result.bits != 16:
        raise ValueError(f"result must be of 16 bits, not {result.name!r} of {result.bits}")
    inside = (exact > 0) & (exact < 2 * result.max_finite) & (exact != 1)
    units = exact[inside] / unit_in_last_place(exact[inside], result)
    # Below the smallest number and in the binade above the largest the boundaries are halves of a unit as well.
    if (np.abs(units - np.floor(units) - 0.5) < _SAFE_DISTANCE).any():
        raise ArithmeticError(f"float64 must tell exp of every {fmt.name} code from a tie in {result.name}")
    codes = result.to_codes(exact).astype(np.uint16)
    codes.flags.writeable = False
    return codes


def unit_in_last_place(values: npt.NDArray[np.float64], fmt: FloatFormat | FixedFormat) -> npt.NDArray[np.float64]:
    """Return the distance of neighbouring numbers of ``fmt`` at ``values`` > 0: in their binade, if it is floating."""
    if isinstance(fmt, FixedFormat):
        return np.full_like(values, 2.0**-fmt.fraction_bits)
    exponent = np.frexp(values)[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, 1 - fmt.bias) - fmt.significand_bits)
