"""Checks that hold for the exponential units of every family, against the correctly rounded oracle."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.helpers.exp_oracle import exact_exp, rounded_exp

__all__ = ["Figures", "check_contract", "check_figures", "figures"]

CODES = np.arange(1 << 16)


class Figures:
    """Errors of a unit over the codes of its domain with a normal result, or those of them that ``within`` keeps."""

    def __init__(self, spec, within=None):
        fmt = spec.fmt
        exact, rounded = exact_exp(fmt), rounded_exp(fmt)
        kept = (exact >= fmt.min_normal) & (rounded < fmt.inf_code)
        if spec.domain == "nonpositive":
            kept &= (CODES & fmt.sign_mask != 0) | (CODES == 0)
        if within is not None:
            kept &= within
        codes = spec.evaluate_codes(CODES)[kept]
        # Infinity in place of a number counts as the power of two that follows the largest.
        values = np.minimum(fmt.from_codes(codes).astype(np.float64), 2.0 ** (fmt.bias + 1))
        error = np.abs(values - exact[kept])
        self.max_rel = (error / exact[kept]).max()
        self.mean_rel = (error / exact[kept]).mean()
        self.max_ulp = (error / 2.0 ** (np.floor(np.log2(exact[kept])) - fmt.significand_bits)).max()
        self.correctly_rounded = np.mean(codes == rounded[kept])


@cache
def figures(spec):
    """Return the figures of ``spec`` over every code of its domain with a normal result."""
    return Figures(spec)


def check_figures(spec, largest, share):
    """Demand a largest relative error and a share correctly rounded over every code with a normal result."""
    found = figures(spec)
    assert found.max_rel <= largest
    assert found.correctly_rounded >= share


def check_contract(spec):
    """Demand what every unit promises: specials, exp(0) = 1, monotone over the codes of its domain."""
    fmt = spec.fmt
    codes = spec.evaluate_codes(CODES)
    sign, inf = fmt.sign_mask, fmt.inf_code
    nan = (CODES & (sign - 1)) > inf
    assert np.all(codes[nan] == fmt.nan_code)
    assert codes[0] == codes[sign] == fmt.one_code
    assert codes[sign | inf] == 0
    upwards = np.arange(sign | inf, sign - 1, -1)
    if spec.domain == "full":
        assert codes[inf] == inf
        upwards = np.concatenate((upwards, np.arange(inf + 1)))
    else:
        upwards = np.append(upwards, 0)
    # Codes of results are all positive, so that they are in the order of the numbers.
    assert np.all(np.diff(codes[upwards].astype(int)) >= 0)
    assert codes[upwards].max() <= inf
    vanish = exact_exp(fmt)[upwards] < fmt.min_normal * 2.0 ** -(fmt.significand_bits + 3)
    assert np.all(codes[upwards[vanish]] == 0)
    if spec.subnormals == "flushed":
        assert not np.any((codes[upwards] > 0) & (codes[upwards] < 1 << fmt.significand_bits))
