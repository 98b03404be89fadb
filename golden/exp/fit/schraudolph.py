"""Constants for a :class:`golden.exp.schraudolph.SchraudolphSpec`, by trying all that can be meant.

The two halves of a correction are independent but for the step between them: every factor near the curvature of 2^f,
with every constant near the one that it needs, is judged on the operands with the truncation in place, and a pair is
chosen that is monotone (:func:`golden.exp.fit.pieces.chain`). Offsets are tried one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.exp.fit.pieces import Choices, Targets, chain
from golden.exp.oracle import exact_exp, rounded_exp
from golden.exp.schraudolph import Correction

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.exp.schraudolph import SchraudolphSpec

__all__ = ["CorrectionFit", "fit_correction", "fit_offset"]


@dataclass(frozen=True, kw_only=True)
class CorrectionFit:
    """Result of :func:`fit_correction`.

    Parameters
    ----------
    correction : Correction
        The best found.
    error : float
        Largest relative error of the rounded results: the smallest of any pair of halves.
    misrounded : int
        Operands whose result is not the correctly rounded one.
    operands : int
        Operands counted: those with a normal result.
    """

    correction: Correction
    error: float
    misrounded: int
    operands: int


def fit_correction(spec: SchraudolphSpec, *, factor_bits: int = 4, constant_bits: int = 7) -> CorrectionFit:
    """Fit a correction to the word lengths, format and domain of ``spec``.

    Parameters
    ----------
    spec : SchraudolphSpec
        Everything but its offset and correction is used.
    factor_bits, constant_bits : int
        Fraction bits of the factors and constants.

    Returns
    -------
    CorrectionFit
    """
    plain = spec.replace(offset=0, correction=None)
    targets = Targets(plain)
    rows, error = chain([_choices(plain, targets, factor_bits, constant_bits, upper) for upper in (False, True)])
    (lower, lower_constant), (upper, upper_constant) = (row.tolist() for row in rows)
    correction = Correction(
        lower=lower,
        lower_constant=lower_constant,
        upper=upper,
        upper_constant=upper_constant,
        factor_bits=factor_bits,
        constant_bits=constant_bits,
    )
    misrounded, _, _ = targets.judge(slice(None), plain.replace(correction=correction).core(targets.f)[None])
    return CorrectionFit(correction=correction, error=error, misrounded=int(misrounded[0]), operands=targets.operands)


def _choices(spec: SchraudolphSpec, targets: Targets, factor_bits: int, constant_bits: int, upper: bool) -> Choices:
    """Return the choices of one half that stay in [1, 2)."""
    one, half = 1 << spec.frac_bits, 1 << (spec.frac_bits - 1)
    members = targets.members(half if upper else 0, one if upper else half)
    ends = np.array([half, one - 1] if upper else [0, half - 1])
    f = np.concatenate((targets.f[members], ends))
    pairs = _pairs(factor_bits, constant_bits, upper)
    moved = pairs[:, 1:] << (spec.frac_bits - constant_bits)
    product = pairs[:, :1] * ((one - 1 - f if upper else f) * (f + moved)) >> (spec.frac_bits + factor_bits)
    h = 2 * one - 1 - product if upper else one + product
    choices = Choices(pairs, h[:, -2], h[:, -1], *targets.judge(members, h[:, :-2]))
    return choices.only((choices.first >= one) & (choices.last < 2 * one))


def _pairs(factor_bits: int, constant_bits: int, upper: bool) -> npt.NDArray[np.int64]:
    """Return every factor near the curvature of 2^f with every constant that brings 1/2 near the square root of 2."""
    value, least, most = (2 - np.sqrt(2), 0.3, 0.6) if upper else (np.sqrt(2) - 1, 0.15, 0.4)
    rows: list[tuple[int, int]] = []
    for factor in range(int(np.ceil(least * 2**factor_bits)), int(most * 2**factor_bits) + 1):
        # The half's value at f = 1/2 is factor / 2 * (1/2 + constant).
        wanted = (value * 2 ** (factor_bits + 1) / factor - 0.5) * 2**constant_bits
        rows += [(factor, constant) for constant in range(max(1, int(wanted * 0.97)), int(wanted * 1.03) + 2)]
    return np.array(rows, dtype=np.int64)


def fit_offset(spec: SchraudolphSpec) -> tuple[int, float]:
    """Find the offset with the smallest worst relative error of the rounded results.

    Parameters
    ----------
    spec : SchraudolphSpec
        Everything but its offset and correction is used.

    Returns
    -------
    offset : int
        The smallest of the best.
    error : float
        Largest relative error over the operands with a normal result.
    """
    fmt = spec.fmt
    codes = np.arange(1 << fmt.bits)
    if spec.domain == "nonpositive":
        codes = codes[codes & fmt.sign_mask != 0]
    expected = rounded_exp(fmt)[codes]
    codes = codes[(expected >= 1 << fmt.significand_bits) & (expected < fmt.inf_code)]
    exact = exact_exp(fmt)[codes]
    best = 0, np.inf
    # The uncorrected mantissa is too large by 0.0861 at most; balanced, the offset is about half of that.
    for offset in range(int(0.0862 * 2**spec.frac_bits) + 1):
        results = fmt.from_codes(spec.replace(offset=offset, correction=None).evaluate_codes(codes))
        error = float(np.abs(results.astype(np.float64) / exact - 1).max())
        if error < best[1]:
            best = offset, error
    return best
