"""The correctly rounded exponential of every code of a format, from mpmath: independent of NumPy and of the models."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np

__all__ = ["exact_exp", "rounded_exp"]

# 80 bits are far more than the distance of any exp(16-bit code) from a rounding boundary, exp(0) = 1 aside, which is
# exact.
_PRECISION_BITS = 80


@cache
def _exponentials(fmt):
    """Return (code of the result, result as float64) for every code of ``fmt``."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = fmt.from_codes(np.arange(1 << fmt.bits)).astype(np.float64)
    # Two octaves beyond where everything overflows or vanishes.
    limit = 4 * fmt.bias * 0.6931
    codes = np.zeros(values.size, np.uint16)
    floats = np.zeros(values.size)
    with mpmath.workprec(_PRECISION_BITS):
        for index, x in enumerate(values.tolist()):
            if np.isnan(x):
                codes[index], floats[index] = fmt.nan_code, np.nan
            elif x > limit:
                codes[index], floats[index] = fmt.inf_code, np.inf
            elif x >= -limit:
                y = mpmath.exp(x)
                codes[index], floats[index] = _round(y, fmt), float(y)
    return codes, floats


def _round(y, fmt):
    """Return the code of ``y`` > 0 rounded to nearest, ties to even."""
    exponent = max(int(mpmath.frexp(y)[1]) - 1, 1 - fmt.bias)
    significand = int(mpmath.nint(mpmath.ldexp(y, fmt.significand_bits - exponent)))
    return min((exponent + fmt.bias - 1 << fmt.significand_bits) + significand, fmt.inf_code)


def rounded_exp(fmt):
    """Return the code of exp(x), rounded to nearest even, for every code x of ``fmt`` in order."""
    return _exponentials(fmt)[0]


def exact_exp(fmt):
    """Return exp(x) as float64 for every code x of ``fmt`` in order."""
    return _exponentials(fmt)[1]
