"""Error of an exponential unit over every operand code, each number with its reference, domain and sampling.

Three choices change a mean error sevenfold: what it is compared with, which operands count, and how they are
weighted. They are fixed here, once for all units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.exp.oracle import exact_exp, rounded_exp, unit_in_last_place
from golden.formats import FixedFormat, FloatFormat

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.exp.spec import Domain

__all__ = ["ExpStatistics", "domain_codes", "measure"]

_FIXED_NORMAL = 1 << 10
"""Smallest code that counts as a normal number in fixed point: 11 significant bits, as many as fp16 has."""


@dataclass(frozen=True, kw_only=True)
class ExpStatistics:
    """What :func:`measure` finds.

    *Normal codes* are the operand codes of the domain whose correctly rounded result is a normal number of the
    result's format: every one, however small the operand. In fixed point that is a number of at least 11 significant
    bits, as many as fp16 has, that the format's range holds. A result of infinity in place of a number counts as the
    power of two next above the format's range, as rounding does, and a NaN in place of a number as twice that.

    Parameters
    ----------
    normal_codes : int
        How many there are.
    max_rel, mean_rel : float
        Largest and mean relative error over the normal codes against the exact exponential, each code once.
    mean_rel_uniform : float
        The same mean with each code weighted by the reals that round to it: the operand is uniform over the range.
    max_ulp : float
        Largest error over the normal codes against the exact exponential, in units in the last place of its binade;
        a correctly rounded unit has at most 0.5.
    correctly_rounded : float
        Share of the normal codes whose result is the correctly rounded one.
    max_rel_rounded, mean_rel_rounded_uniform : float
        Largest error, and mean for a uniform operand, against the correctly rounded result in place of the exact one.
    correctly_rounded_all : float
        Share of all codes of the domain, subnormal results, zeros, infinities and NaNs included.
    max_ulp_all : float
        Largest error over the codes of the domain with a finite rounded result, subnormal ones included.
    worst_code : int
        Operand code with the largest relative error; of several the first.
    worst_input : float
        The number it stands for.
    monotone : bool
        The result does not fall as the operand rises over the domain.
    specials : bool
        -infinity gives +0 and +infinity (if in the domain) +infinity; every NaN gives the format's one NaN; both zeros
        give exactly 1; every number gives +0, a positive number or +infinity; operands whose result lies beyond
        twice the range give infinity, those below a quarter of the smallest number +0. Fixed point: exp(0) is 1, or the
        largest code where that is smaller; results beyond the range give the largest code, those below a quarter of
        the smallest number 0.
    """

    normal_codes: int
    max_rel: float
    mean_rel: float
    mean_rel_uniform: float
    max_ulp: float
    correctly_rounded: float
    max_rel_rounded: float
    mean_rel_rounded_uniform: float
    correctly_rounded_all: float
    max_ulp_all: float
    worst_code: int
    worst_input: float
    monotone: bool
    specials: bool


def domain_codes(fmt: FloatFormat | FixedFormat, domain: Domain) -> npt.NDArray[np.int64]:
    """Return the operand codes that count in ``domain``, NaNs left out, in the order of their values.

    -0 comes before +0. ``nonpositive`` ends with +0.
    """
    if isinstance(fmt, FixedFormat):
        sign = fmt.max_code + 1
        return np.concatenate((np.arange(sign, 2 * sign), np.arange(1 if domain == "nonpositive" else sign)))
    negative = np.arange(fmt.sign_mask + fmt.inf_code, fmt.sign_mask - 1, -1)
    return np.concatenate((negative, np.arange(1 if domain == "nonpositive" else fmt.inf_code + 1)))


def measure(
    results: npt.ArrayLike,
    fmt: FloatFormat | FixedFormat,
    domain: Domain = "full",
    result_fmt: FloatFormat | FixedFormat | None = None,
) -> ExpStatistics:
    """Measure the results of a unit for all operand codes.

    Parameters
    ----------
    results : array_like of int, shape (65536,)
        Result code of every operand code, in order.
    fmt : FloatFormat or FixedFormat
        Format of the operand, 16 bits; in fixed point signed.
    domain : {"full", "nonpositive"}
        Operands that count; results outside don't matter.
    result_fmt : FloatFormat or FixedFormat, optional
        Format of the result, 16 bits; by default that of the operand.

    Returns
    -------
    ExpStatistics

    Raises
    ------
    ValueError
        If there is not one result a code.
    """
    codes = np.asarray(results)
    if codes.shape != (1 << fmt.bits,):
        raise ValueError(f"results must have shape ({1 << fmt.bits},), not {codes.shape}")
    codes, result_fmt = codes.astype(np.int64), result_fmt or fmt
    exact, rounded = exact_exp(fmt), rounded_exp(fmt, result_fmt).astype(np.int64)
    order = domain_codes(fmt, domain)
    values = _numbers(codes, result_fmt)

    counts = _is_normal(exact[order], rounded[order], result_fmt)
    normal = order[counts]
    error = np.abs(values[normal] - exact[normal])
    relative = error / exact[normal]
    reference = _numbers(rounded, result_fmt)[normal]
    to_rounded = np.abs(values[normal] - reference) / reference
    weights = _cell_widths(order, fmt)[counts]
    weights /= weights.sum()
    finite = order[exact[order] < result_fmt.max_finite]
    error_all = np.abs(values[finite] - exact[finite]) / unit_in_last_place(exact[finite], result_fmt)
    everything = np.concatenate((order, np.flatnonzero(np.isnan(exact))))
    worst = int(normal[np.argmax(relative)])
    return ExpStatistics(
        normal_codes=int(normal.size),
        max_rel=float(relative.max()),
        mean_rel=float(relative.mean()),
        mean_rel_uniform=float(relative @ weights),
        max_ulp=float((error / unit_in_last_place(exact[normal], result_fmt)).max()),
        correctly_rounded=float(np.count_nonzero(codes[normal] == rounded[normal]) / normal.size),
        max_rel_rounded=float(to_rounded.max()),
        mean_rel_rounded_uniform=float(to_rounded @ weights),
        correctly_rounded_all=float(np.count_nonzero(codes[everything] == rounded[everything]) / everything.size),
        max_ulp_all=float(error_all.max()),
        worst_code=worst,
        worst_input=float(fmt.from_codes(np.array(worst))),
        monotone=bool(np.all(np.diff(values[order]) >= 0)),
        specials=_specials_hold(codes, order, fmt, result_fmt),
    )


def _numbers(codes: npt.NDArray[np.int64], fmt: FloatFormat | FixedFormat) -> npt.NDArray[np.float64]:
    """Return result codes as float64; see :class:`ExpStatistics` for those that are no numbers."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = fmt.from_codes(codes).astype(np.float64)
    if isinstance(fmt, FloatFormat):
        values[codes == fmt.inf_code] = 2.0 ** (fmt.bias + 1)
        values[np.isnan(values)] = 2.0 ** (fmt.bias + 2)
    return values


def _is_normal(
    exact: npt.NDArray[np.float64], rounded: npt.NDArray[np.int64], fmt: FloatFormat | FixedFormat
) -> npt.NDArray[np.bool_]:
    """Return which results are normal numbers of ``fmt``; see :class:`ExpStatistics`."""
    if isinstance(fmt, FixedFormat):
        return (rounded >= _FIXED_NORMAL) & (exact <= fmt.max_finite)
    return (rounded >= 1 << fmt.significand_bits) & (rounded < fmt.inf_code)


def _cell_widths(order: npt.NDArray[np.int64], fmt: FloatFormat | FixedFormat) -> npt.NDArray[np.float64]:
    """Return the width of the reals nearest to each operand of ``order``; those at an end reach inwards only."""
    values = fmt.from_codes(order).astype(np.float64)
    # -0 and +0 share a cell; an infinity's neighbours keep the half of it that has an end.
    gaps = np.diff(values)
    gaps[~np.isfinite(gaps)] = 0.0
    return (np.append(0.0, gaps) + np.append(gaps, 0.0)) / 2


def _specials_hold(
    codes: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    fmt: FloatFormat | FixedFormat,
    result_fmt: FloatFormat | FixedFormat,
) -> bool:
    """Return whether everything that is no matter of accuracy is right; see :class:`ExpStatistics`."""
    exact = exact_exp(fmt)
    if isinstance(result_fmt, FixedFormat):
        top, one = result_fmt.max_code, int(result_fmt.to_codes(1.0))
        beyond, smallest = 2.0**result_fmt.integer_bits, 2.0**-result_fmt.fraction_bits
    else:
        top, one = result_fmt.inf_code, result_fmt.one_code
        beyond = 2.0 ** (result_fmt.bias + 2)
        smallest = 2.0 ** (1 - result_fmt.bias - result_fmt.significand_bits)
        if not np.all(codes[np.isnan(exact)] == result_fmt.nan_code):
            return False
    zeros = order[fmt.from_codes(order).astype(np.float64) == 0]
    return bool(
        np.all(codes[zeros] == one)
        and np.all(codes[order] <= top)
        and np.all(codes[order[exact[order] >= beyond]] == top)
        and np.all(codes[order[exact[order] < smallest / 4]] == 0)
    )
