"""Codes that make floating-point hardware fail: corners of a format, and random codes with chosen exponents."""

from __future__ import annotations

import numpy as np

__all__ = ["corner_codes", "random_codes"]


def corner_codes(fmt):
    """Return codes of both signs at the ends of every kind: zeros, subnormals, normals, infinity, NaNs.

    Parameters
    ----------
    fmt : FloatFormat
        A format with infinity.

    Returns
    -------
    ndarray of ``fmt.code_dtype``
        About 50 codes, NaNs with payloads among them.
    """
    top = (1 << fmt.significand_bits) - 1
    half = 1 << (fmt.significand_bits - 1)
    exponents = (0, 1, 2, fmt.bias - 1, fmt.bias, fmt.bias + 1, fmt.exponent_mask - 1, fmt.exponent_mask)
    magnitudes = {e << fmt.significand_bits | s for e in exponents for s in (0, 1, half, top)}
    both = sorted(magnitudes) + [code | fmt.sign_mask for code in sorted(magnitudes)]
    return np.array(both, dtype=fmt.code_dtype)


def random_codes(fmt, count, rng, near=None):
    """Return random codes; an eighth of the significands have few bits set, so that ties happen.

    Parameters
    ----------
    fmt : FloatFormat
        A format with infinity.
    count : int
        How many.
    rng : numpy.random.Generator
        Source of randomness.
    near : int, optional
        Draw exponents within four of ``bias + near`` instead of all of them.

    Returns
    -------
    ndarray of ``fmt.code_dtype``, shape (count,)
        Any kind of code, NaN too, if ``near`` is None.
    """
    low, high = 0, fmt.exponent_mask + 1
    if near is not None:
        low, high = max(fmt.bias + near - 4, 0), min(fmt.bias + near + 5, fmt.exponent_mask)
    exponent = rng.integers(low, high, count)
    significand = rng.integers(0, 1 << fmt.significand_bits, count)
    sparse = rng.integers(0, 8, count) == 0
    shift = rng.integers(0, fmt.significand_bits, count)
    significand = np.where(sparse, significand >> shift << shift, significand)
    sign = rng.integers(0, 2, count)
    return (sign << (fmt.bits - 1) | exponent << fmt.significand_bits | significand).astype(fmt.code_dtype)
