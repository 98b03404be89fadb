"""Exponential by one polynomial over a whole interval, with no range reduction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.exp.spec import ExpSpec
from golden.formats import FP16, FloatFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from golden.exp.spec import Domain, Subnormals

__all__ = ["DIRECT_SPECS", "DirectSpec"]


@dataclass(frozen=True, kw_only=True)
class DirectSpec(ExpSpec):
    """Exponential by a polynomial in x itself on ``(-2^interval_bits, 0]``, and +0 below.

    This is what "a 6th-order polynomial of exp(x)" says when it is taken at its word. It computes a softmax's
    exponentials only: no polynomial of such a degree follows exp(x) to both sides.

    Parameters
    ----------
    coefficients : tuple of int
        ``c[0] .. c[degree]`` of the polynomial in ``u = -x / 2^interval_bits``, in units of ``2^-core_bits``, of
        either sign.
    interval_bits : int
        The interval ends at ``-2^interval_bits``.
    frac_bits : int
        Fraction bits of u, the rest of it is cut off.
    core_bits : int
        Fraction bits of the coefficients and of every sum.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range; if over the operands within the interval the result
        would fall as x rises, drop below the smallest normal number or be anything but 1 at 0.

    Notes
    -----
    With ``A = frac_bits`` and ``F = core_bits``, all divisions by powers of two rounding down::

        u = floor(|x| * 2^(A - interval_bits))
        h = c[degree];  h = (h * u >> A) + c[k]  for k = degree - 1 .. 0
        y = round_to_nearest_even(h * 2^-F)  into ``fmt``

    Signed coefficients promise nothing, so the constructor computes every operand of the interval. A Taylor series
    about 0 of even degree turns at its minimum (-2.18 at degree 6) and a minimax polynomial in absolute error waves
    by more than exp(x) is worth near -8: both are refused there. The price of an interval that is short enough is
    the result +0, a relative error of 100 %, for every operand below it.

    ``domain`` is "nonpositive" and ``subnormals`` "flushed", for results below the smallest normal number are results
    below the interval. The unit does not look at the sign: for an operand above 0 it returns exp of its negative.
    """

    coefficients: tuple[int, ...]
    interval_bits: int
    frac_bits: int
    core_bits: int
    fmt: FloatFormat = FP16
    domain: Domain = "nonpositive"
    subnormals: Subnormals = "flushed"

    family: ClassVar[str] = "direct"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain != "nonpositive":
            raise ValueError(
                f"domain must be nonpositive without range reduction, which one polynomial can't do without on both "
                f"sides of 0, not {self.domain!r}"
            )
        if self.subnormals != "flushed":
            raise ValueError(f"subnormals must be flushed, as they lie below the interval, not {self.subnormals!r}")
        require_int("interval_bits", self.interval_bits, 0, 6)
        require_int("frac_bits", self.frac_bits, self.fmt.significand_bits + 1, 24)
        require_int("core_bits", self.core_bits, self.fmt.significand_bits + 1, 28)
        if not isinstance(self.coefficients, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"coefficients must be a tuple, not {self.coefficients!r}")
        if not 2 <= len(self.coefficients) <= 9:
            raise ValueError(f"coefficients must number from 2 to 9, not {len(self.coefficients)}")
        for k, value in enumerate(self.coefficients):
            require_int(f"coefficients[{k}]", value, -(1024 << self.core_bits), 1024 << self.core_bits)
        self._check_values()

    def _check_values(self) -> None:
        one = 1 << self.core_bits
        limit = one + (one >> (self.fmt.significand_bits + 1)) - 1
        if not one <= self.coefficients[0] <= limit:
            raise ValueError(
                f"coefficients[0] must be from {one} to {limit} so that exp(0) = 1, not {self.coefficients[0]}"
            )
        codes = np.arange(self.beyond_code)
        h = self.sums(self.reduce_codes(codes))[0]
        smallest = one >> (self.fmt.bias - 1) or 1
        if (h < smallest).any() or (h > limit).any():
            bad = int(codes[(h < smallest) | (h > limit)][0])
            raise ValueError(
                f"the polynomial must stay from {smallest} to {limit} on the interval, it leaves at {self._x(bad):.4g}"
            )
        falls = np.flatnonzero(np.diff(self._round(h)) > 0)
        if falls.size:
            raise ValueError(
                f"the result must not fall as x rises to 0, it does from {self._x(int(falls[0]) + 1):.4g} on"
            )

    def _x(self, code: int) -> float:
        """Return minus the number that ``code`` stands for."""
        return -float(self.fmt.from_codes(np.array(code)))

    @property
    def degree(self) -> int:
        """Degree of the polynomial."""
        return len(self.coefficients) - 1

    @property
    def beyond_code(self) -> int:
        """Code of the magnitude at which the interval ends."""
        return self.fmt.bias + self.interval_bits << self.fmt.significand_bits

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Degree, interval and word lengths."""
        return {
            "degree": self.degree,
            "interval": f"(-{1 << self.interval_bits}, 0]",
            "frac_bits": self.frac_bits,
            "core_bits": self.core_bits,
        }

    @property
    def steps(self) -> int:
        """Steps of the datapath: alignment, one Horner step a degree, normalisation, rounding."""
        return self.degree + 3

    @property
    def sum_ranges(self) -> tuple[tuple[int, int], ...]:
        """Smallest and largest value of every Horner sum over the interval, index k after adding ``c[k]``."""
        sums = self.sums(self.reduce_codes(np.arange(self.beyond_code)))
        return tuple((int(h.min()), int(h.max())) for h in sums)

    def reduce_codes(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return u of magnitudes within the interval, in units of ``2^-frac_bits``."""
        fmt = self.fmt
        field = codes >> fmt.significand_bits
        significand = codes & ((1 << fmt.significand_bits) - 1) | np.where(field != 0, 1 << fmt.significand_bits, 0)
        largest = fmt.bias + self.interval_bits - 1
        aligned = significand << (self.frac_bits - 1 - fmt.significand_bits)
        return aligned >> np.minimum(largest - np.maximum(field, 1), 63)

    def sums(self, u: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """Return every Horner sum of u, index k after adding ``c[k]``."""
        sums = [np.full_like(u, self.coefficients[-1])]
        for coefficient in reversed(self.coefficients[:-1]):
            sums.append((sums[-1] * u >> self.frac_bits) + coefficient)
        return sums[::-1]

    def _round(self, h: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the code nearest to ``h * 2^-core_bits`` > 0; ties to even."""
        fmt = self.fmt
        up = self.core_bits + 1 - np.frexp(h.astype(np.float64))[1]
        moved = h << up
        drop = self.core_bits - fmt.significand_bits
        rounded = (moved + (1 << (drop - 1)) - 1 + (moved >> drop & 1)) >> drop
        return (fmt.bias - 1 - up << fmt.significand_bits) + rounded

    def evaluate_float(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the polynomial of ``-|x|`` with exact u and products, 0 beyond the interval; see :class:`ExpSpec`."""
        x = np.asarray(x, dtype=np.float64)
        u = np.abs(np.where(np.isfinite(x), x, 0.0)) * 2.0**-self.interval_bits
        h = np.zeros_like(u)
        inside = np.where(u < 1, u, 0.0)
        for coefficient in reversed(self.coefficients):
            h = h * inside + coefficient * 2.0**-self.core_bits
        with np.errstate(over="ignore"):
            return np.where(np.isfinite(x), np.where(u < 1, h, 0.0), np.exp(x))

    def evaluate_codes(self, codes: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return what the hardware returns, bit for bit; see :class:`ExpSpec`."""
        fmt = self.fmt
        magnitude = np.asarray(codes).astype(np.int64) & (fmt.sign_mask - 1)
        inside = magnitude < self.beyond_code
        rounded = self._round(self.sums(self.reduce_codes(np.where(inside, magnitude, 0)))[0])
        result = np.where(magnitude > fmt.inf_code, fmt.nan_code, np.where(inside, rounded, 0))
        return result.astype(np.uint16)


_DIRECT_8 = DirectSpec(
    name="direct-6-8",
    coefficients=(1048576, -7421295, 22712318, -37723759, 35413881, -17684804, 3655444),
    interval_bits=3,
    frac_bits=14,
    core_bits=20,
    evaluation="combinational",
)

DIRECT_SPECS = (
    _DIRECT_8,
    _DIRECT_8.replace(
        name="direct-6-4",
        coefficients=(262144, -1044741, 2041468, -2494023, 1959965, -905153, 185146),
        interval_bits=2,
        core_bits=18,
    ),
    _DIRECT_8.replace(
        name="taylor-6-2",
        coefficients=(65536, -131072, 131072, -87381, 43691, -17476, 5825),
        interval_bits=1,
        core_bits=16,
    ),
)
"""Named by degree and interval; coefficients found by :func:`golden.exp.fit.direct.fit`, but for the Taylor series."""
