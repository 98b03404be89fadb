"""Exponential by Schraudolph's method: t read as the bits of the result, its mantissa corrected or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.exp.frame import ReducedSpec
from golden.formats import BF16

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SCHRAUDOLPH_SPECS", "Correction", "SchraudolphSpec"]


@dataclass(frozen=True, kw_only=True)
class Correction:
    """Two parabolas for the mantissa ``2^f - 1``, one for each half of [0, 1).

    ``lower * f * (f + lower_constant)`` below 1/2 and ``1 - upper * (1 - f) * (f + upper_constant)`` from there on.
    The first meets 0 at f = 0 and the second 1 at f = 1, whatever the numbers.

    Parameters
    ----------
    lower, upper : int
        Factors, in units of ``2^-factor_bits``.
    lower_constant, upper_constant : int
        In units of ``2^-constant_bits``.
    factor_bits, constant_bits : int
        Fraction bits of the factors and of the constants.

    Raises
    ------
    TypeError, ValueError
        If a number has the wrong type or lies out of range.
    """

    lower: int
    lower_constant: int
    upper: int
    upper_constant: int
    factor_bits: int = 4
    constant_bits: int = 7

    def __post_init__(self) -> None:
        require_int("factor_bits", self.factor_bits, 1, 16)
        require_int("constant_bits", self.constant_bits, 0, 16)
        for name in ("lower", "upper"):
            require_int(name, getattr(self, name), 1, (1 << self.factor_bits) - 1)
            require_int(f"{name}_constant", getattr(self, f"{name}_constant"), 1, (16 << self.constant_bits) - 1)


@dataclass(frozen=True, kw_only=True)
class SchraudolphSpec(ReducedSpec):
    """Exponential by putting t into the exponent field of the result, its fraction into the mantissa.

    Parameters
    ----------
    offset : int
        Subtracted from t, in units of ``2^-frac_bits``: the constant of the method, which balances its error. Not
        with a correction.
    correction : Correction or None
        What is done to the mantissa; None leaves ``1 + f`` for ``2^f``.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range, or if the corrected mantissa would leave [0, 1) or fall
        from one half to the other.

    Notes
    -----
    In the frame of :class:`golden.exp.frame.ReducedSpec`, with ``A = frac_bits`` fraction bits in the result too and
    ``~`` the complement of A bits, which stands for 1 minus a fraction::

        t = t - offset, but not below 0 if t was not
        h = 2^A + f                                               without a correction, else
        h = 2^A + (lower * f * (f + lower_constant) >> A + factor_bits)               f below 1/2
        h = 2^A + ~(upper * ~f * (f + upper_constant) >> A + factor_bits)             f from 1/2 on

    where the constants are moved to units of ``2^-A``. Products are exact until the shift.

    A constant offset alone would give ``exp(0) = 1 - offset / 2^A``. The stop at 0 makes it exactly 1, and costs no
    accuracy: it raises only results below 1 of operands at or above 0. The result is rounded as ``rounding`` says,
    where Schraudolph's C macro truncates. It is monotone over all codes: t and either half of the mantissa do not fall
    as x rises, and the step between the halves is checked.

    SoftEx and VEXP return +infinity for a NaN; this unit returns the canonical NaN.
    """

    offset: int = 0
    correction: Correction | None = None

    family: ClassVar[str] = "schraudolph"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_int("offset", self.offset, 0, (1 << self.frac_bits) - 1)
        if self.correction is None:
            return
        if not isinstance(self.correction, Correction):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"correction must be a Correction or None, not {self.correction!r}")
        if self.offset:
            raise ValueError(f"offset must be 0 with a correction, which has no error to balance, not {self.offset}")
        if self.frac_bits < self.correction.constant_bits:
            raise ValueError(
                f"constant_bits must be at most {self.frac_bits}, the fraction bits of t, "
                f"not {self.correction.constant_bits}"
            )
        one, half = 1 << self.frac_bits, 1 << (self.frac_bits - 1)
        below, above = self.core(np.array([half - 1, half])).tolist()
        if not one <= below <= above:
            raise ValueError(
                f"the halves of the mantissa must not fall where they meet, they go from {below - one} to {above - one}"
            )

    @property
    def core_bits(self) -> int:
        """Fraction bits of the mantissa: those of t."""
        return self.frac_bits

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Kind of correction, offset and word lengths."""
        kind = "none" if self.correction is None else "two-piece quadratic"
        return {"correction": kind, "offset": self.offset, "frac_bits": self.frac_bits, "log2e_bits": self.log2e_bits}

    @property
    def steps(self) -> int:
        """Steps of the datapath: log2(e), shift, mantissa (two with a correction), scaling, rounding."""
        return 5 if self.correction is None else 6

    def reduce_codes(
        self, codes: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Split t less the offset; see :meth:`ReducedSpec.reduce_codes`."""
        n, f, beyond = super().reduce_codes(codes)
        t = (n << self.frac_bits) + f
        t = np.where(t >= 0, np.maximum(t - self.offset, 0), t - self.offset)
        return t >> self.frac_bits, t & ((1 << self.frac_bits) - 1), beyond

    def core(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return one plus the mantissa of each f; see :meth:`ReducedSpec.core`."""
        one = 1 << self.frac_bits
        if self.correction is None:
            return one + f
        c = self.correction
        shift = self.frac_bits + c.factor_bits
        lower = c.lower * f * (f + self._moved(c.lower_constant)) >> shift
        return np.where(f < one // 2, one + lower, 2 * one - 1 - self._upper_rest(f))

    def _upper_rest(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return what the upper half lacks of 2."""
        c = self.correction
        assert c is not None
        rest = (1 << self.frac_bits) - 1 - f
        return c.upper * rest * (f + self._moved(c.upper_constant)) >> (self.frac_bits + c.factor_bits)

    def _moved(self, constant: int) -> int:
        """Return a constant in units of t."""
        assert self.correction is not None
        return constant << (self.frac_bits - self.correction.constant_bits)

    def evaluate_float(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the method with exact log2(e), real t and no rounding; see :class:`ExpSpec`."""
        x = np.asarray(x, dtype=np.float64)
        moved = x - self.offset * 2.0**-self.frac_bits * np.log(2)
        # Adding 0 leaves an infinity alone, and the type is known.
        stopped = moved + np.where(x >= 0, np.maximum(-moved, 0.0), 0.0)
        return super().evaluate_float(stopped)

    def core_float(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return one plus the mantissa with exact products."""
        if self.correction is None:
            return 1 + f
        c = self.correction
        factor, constant = 2.0**-c.factor_bits, 2.0**-c.constant_bits
        lower = c.lower * factor * f * (f + c.lower_constant * constant)
        upper = 1 - c.upper * factor * (1 - f) * (f + c.upper_constant * constant)
        return 1 + np.where(f < 0.5, lower, upper)


_BF16 = SchraudolphSpec(
    name="schraudolph-bf16",
    fmt=BF16,
    frac_bits=8,
    rounding="nearest_up",
    subnormals="flushed",
    evaluation="combinational",
)
_BF16_SOFTEX = _BF16.replace(
    name="schraudolph-corrected-bf16",
    log2e=23637,
    log2e_bits=14,
    rounding="nearest_even",
    correction=Correction(lower=4, lower_constant=365, upper=7, upper_constant=278),
)
_FP16 = SchraudolphSpec(name="schraudolph", frac_bits=11, rounding="nearest_up", evaluation="combinational")

SCHRAUDOLPH_SPECS = (
    _BF16,
    _BF16.replace(name="schraudolph-offset-bf16", offset=11),
    _BF16_SOFTEX,
    _BF16_SOFTEX.replace(
        name="schraudolph-corrected-8-bf16",
        rounding="nearest_up",
        correction=Correction(lower=4, lower_constant=361, upper=7, upper_constant=280),
    ),
    _BF16_SOFTEX.replace(
        name="schraudolph-corrected-9-bf16",
        frac_bits=9,
        rounding="nearest_up",
        correction=Correction(lower=4, lower_constant=358, upper=7, upper_constant=279),
    ),
    _FP16,
    _FP16.replace(name="schraudolph-offset", offset=89),
    _FP16.replace(
        name="schraudolph-corrected-12",
        frac_bits=12,
        correction=Correction(lower=4, lower_constant=359, upper=7, upper_constant=278),
    ),
    _FP16.replace(
        name="schraudolph-corrected-14",
        frac_bits=14,
        correction=Correction(
            lower=18, lower_constant=1251, upper=26, upper_constant=1220, factor_bits=6, constant_bits=9
        ),
    ),
)
"""The method as it is, with its best offset, and corrected; constants found by :mod:`golden.exp.fit.schraudolph`.

``schraudolph-corrected-bf16`` has the word lengths that SoftEx's EXPU has by default (14 fraction bits of log2(e), 4 of
the factors, 7 of the constants) with the fewest bits of t, and comes out at its figures: largest error 0.875 %, mean
0.196 % for a uniform operand. ``-8-bf16`` rounds ties up, which is right more often, as t was cut: 0.608 %.
"""
