"""Exponential of a fixed-point operand by a polynomial, to a fixed-point result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, get_args

import numpy as np

from golden.checks import require_int
from golden.exp.frame import Rounding
from golden.exp.polynomial import PolynomialCore
from golden.exp.spec import ExpSpec, require_choice
from golden.formats import Q5_10, UQ0_16, UQ1_15, FixedFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

__all__ = ["FixedPolynomialSpec"]


@dataclass(frozen=True, kw_only=True)
class FixedPolynomialSpec(PolynomialCore, ExpSpec):
    """Exponential of one Q5.10 code by range reduction and a polynomial, as an unsigned fraction.

    Parameters
    ----------
    fmt : FixedFormat
        Format of operands, signed.
    result : FixedFormat
        Format of results, unsigned.
    log2e, log2e_bits, rounding
        As in :class:`golden.exp.frame.ReducedSpec`; the others are those of :class:`PolynomialCore` and
        :class:`ExpSpec`.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range, or if the polynomial leaves [1, 2) or falls.

    Notes
    -----
    With ``A = frac_bits``, ``F = core_bits``, X the operand as an integer of fraction bits p and divisions by powers of
    two rounding down::

        t   = X * log2e * 2^(A - p - log2e_bits)
        n,f = t >> A, t mod 2^A
        y   = round(core(f) * 2^-F * 2^n)  into ``result``, its largest code where that is exceeded

    There is neither infinity nor NaN: every result of at least ``2^integer_bits`` is the largest code, for operands
    above zero in both domains. exp(0) is exactly 1 if ``result`` holds it, its largest code if not. The result is
    monotone over all codes: the core does not fall, which is found by evaluating every f.
    """

    fmt: FixedFormat = Q5_10
    result: FixedFormat = UQ1_15
    log2e: int = 189097
    log2e_bits: int = 17
    rounding: Rounding = "nearest_even"

    family: ClassVar[str] = "fixed polynomial"
    formats: ClassVar[tuple[FixedFormat, ...]] = (Q5_10,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subnormals != "rounded":
            raise ValueError("subnormals must be rounded in fixed point, which has none to flush")
        if self.result not in (UQ0_16, UQ1_15):
            raise ValueError(f"result must be {UQ0_16.name} or {UQ1_15.name}, not {self.result!r}")
        require_int("frac_bits", self.frac_bits, 8, 20)
        require_int("log2e_bits", self.log2e_bits, 4, 30)
        below = int(np.log2(np.e) * (1 << self.log2e_bits))
        require_int("log2e", self.log2e, below, below + 1)
        require_choice("rounding", self.rounding, get_args(Rounding))
        self.require_polynomial()
        # One more than the result has below the largest n, so that there is something to round by.
        least = self.result.bits
        if self.core_bits < least:
            raise ValueError(f"frac_bits + guard_bits must be at least {least}, not {self.core_bits}")
        one = 1 << self.core_bits
        h = self.core(np.arange(1 << self.frac_bits))
        limit = one + (1 << self.core_bits - self.result.fraction_bits - 1) - 1
        if self.result.integer_bits and not one <= h[0] <= limit:
            raise ValueError(f"core(0) must be from {one} to {limit} so that exp(0) = 1, not {int(h[0])}")
        if not one <= h.min() <= h.max() < 2 * one:
            raise ValueError(
                f"the core must be from {one} to {2 * one - 1}, it is from {int(h.min())} to {int(h.max())}"
            )
        if bool(np.any(h[1:] < h[:-1])):
            raise ValueError("the core must not fall as f rises")

    @property
    def result_fmt(self) -> FixedFormat:
        """Format of results."""
        return self.result

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Degree, word lengths, order of evaluation, rounding and result."""
        return {**self.polynomial_parameters, "rounding": self.rounding, "result": self.result.name}

    @property
    def steps(self) -> int:
        """Steps of the datapath: log2(e), the levels of the polynomial, scaling, rounding."""
        return len(self.plan.levels) + 3

    def reduce_codes(self, codes: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Split ``t = x * log2(e)`` of every code into floor and fraction, the latter in units of ``2^-frac_bits``."""
        shift = self.frac_bits - self.fmt.fraction_bits - self.log2e_bits
        product = self.fmt.integers(codes) * self.log2e
        t = product << shift if shift >= 0 else product >> -shift
        return t >> self.frac_bits, t & ((1 << self.frac_bits) - 1)

    def drop(self, n: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the low bits of the core that a result drops; where it is the largest code they do not matter."""
        # Two places below the leading bit of the core every rounding gives 0.
        deepest = self.core_bits + 2 - self.smallest_drop
        return self.smallest_drop + np.clip(self.result.integer_bits - 1 - n, 0, deepest)

    @property
    def smallest_drop(self) -> int:
        """Low bits of the core that a result drops at the largest n, at least 1."""
        return self.core_bits - self.result.bits + 1

    def evaluate_float(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the polynomial's approximation with exact log2(e), real f and no rounding; see :class:`ExpSpec`."""
        x = np.asarray(x, dtype=np.float64)
        finite = np.isfinite(x)
        t = np.clip(np.where(finite, x, 0.0) * np.log2(np.e), -1100.0, 1100.0)
        n = np.floor(t)
        with np.errstate(over="ignore", under="ignore"):
            return np.where(finite, np.ldexp(self.core_float(t - n), n.astype(np.int64)), np.exp(x))

    def evaluate_codes(self, codes: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return what the hardware returns, bit for bit; see :class:`ExpSpec`."""
        n, f = self.reduce_codes(codes)
        h = self.core(f)
        drop = self.drop(n)
        kept, rest, half = h >> drop, h & ((1 << drop) - 1), 1 << (drop - 1)
        match self.rounding:
            case "nearest_even":
                up = (rest > half) | ((rest == half) & (kept & 1 == 1))
            case "nearest_up":
                up = rest >= half
            case "truncated":
                up = np.zeros_like(kept, dtype=np.bool_)
        largest = self.result.max_code
        rounded = np.minimum(kept + up, largest)
        return np.where(n >= self.result.integer_bits, largest, rounded).astype(np.uint16)
