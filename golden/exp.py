"""The exponential unit: one description that yields a float model, a bit-exact model and the hardware.

``exp(x) = 2^t`` with ``t = x * log2(e)``; ``t`` is split into its floor ``n`` and fraction ``f``, a
polynomial gives ``2^f``, and ``n`` becomes the exponent. :class:`ExpSpec` holds every constant and word
length of that path; ``hw.units.exp.ExpUnit`` is built from the same object.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.formats import BF16, FP16, FloatFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["POLY6", "POLY6_SERIAL", "Evaluation", "ExpSpec", "horner"]

Evaluation = Literal["pipelined", "serial"]
"""How the multiplications are laid out: one multiplier each, or all on one multiplier."""


def horner(coefficients: Sequence[int], f: npt.NDArray[np.int64], frac_bits: int) -> npt.NDArray[np.int64]:
    """Evaluate a fixed-point polynomial, each product truncated before the next coefficient is added.

    Parameters
    ----------
    coefficients : sequence of int
        ``c[0] .. c[degree]``, in any one unit, not negative.
    f : ndarray of int64
        Arguments in units of ``2^-frac_bits``.
    frac_bits : int
        Fraction bits of ``f``.

    Returns
    -------
    ndarray of int64
        Sums in the unit of the coefficients, same shape as ``f``.
    """
    h = np.full_like(f, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        h = (h * f >> frac_bits) + coefficient
    return h


@dataclass(frozen=True, kw_only=True)
class ExpSpec:
    """Exponential of one floating-point code by range reduction and a polynomial in Horner form.

    Parameters
    ----------
    name : str
        Name in reports and presets.
    coefficients : tuple of int
        ``c[0] .. c[degree]`` of the polynomial for ``2^f``, each in units of ``2^-(frac_bits + guard_bits)``
        and not negative.
    frac_bits : int
        Fraction bits kept of ``t``, so the width of ``f``.
    guard_bits : int
        Fraction bits that coefficients and Horner sums carry beyond ``frac_bits``.
    log2e : int
        The constant log2(e) in units of ``2^-log2e_bits``, rounded down or up.
    log2e_bits : int
        Fraction bits of ``log2e``. At 17 log2(e) happens to lie within 0.08 units of the grid, so that its error,
        5.8e-7, moves no in-range t by a whole ``2^-16``.
    evaluation : {"pipelined", "serial"}
        One multiplier a step and one operand a cycle, or one multiplier for all steps. The results are the same.
    fmt : FloatFormat
        Format of operand and result; fp16 or bf16.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range, or if the polynomial leaves [1, 2) or rounds
        ``2^0`` to anything but 1 (see Notes).

    Notes
    -----
    With ``A = frac_bits``, ``F = A + guard_bits``, ``S`` significand bits, ``M`` the signed significand of x as an
    integer and all divisions by powers of two rounding down::

        t   = floor(M * log2e * 2^(e + A))      e: the exponent that makes M * log2e * 2^e = x * log2(e)
        n,f = t >> A, t mod 2^A
        h   = c[degree];  h = (h * f >> A) + c[k]  for k = degree - 1 .. 0
        y   = round_to_nearest_even(h * 2^-F * 2^n)  into ``fmt``, subnormal results included

    The result is monotone over all codes, by construction: t does not fall as x rises; with no negative coefficient
    h does not fall as f rises; and ``2^F <= c[0]`` and ``h(f = 1 - 2^-A) < 2^(F+1)``, both checked here, keep it
    from falling where n steps. ``c[0] < 2^F * (1 + 2^-(S+1))``, checked too, gives exp(+0) = exp(-0) = 1.

    Operands of at least ``2^range_bits`` in magnitude take the limit (infinity or zero) without being multiplied.
    """

    name: str
    coefficients: tuple[int, ...]
    frac_bits: int = 16
    guard_bits: int = 0
    log2e: int = 189097
    log2e_bits: int = 17
    evaluation: Evaluation = "pipelined"
    fmt: FloatFormat = FP16

    def __post_init__(self) -> None:
        if self.evaluation not in get_args(Evaluation):
            raise ValueError(f"evaluation must be one of {', '.join(get_args(Evaluation))}, not {self.evaluation!r}")
        if not isinstance(self.fmt, FloatFormat):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"fmt must be a FloatFormat, not {self.fmt!r}")
        if self.fmt not in (FP16, BF16):
            raise ValueError(f"fmt must be fp16 or bf16, not {self.fmt.name!r}")
        # Fewer bits than this cannot even hold the rounding position of the result.
        require_int("frac_bits", self.frac_bits, self.fmt.significand_bits + 1, 24)
        require_int("guard_bits", self.guard_bits, 0, 8)
        require_int("log2e_bits", self.log2e_bits, 4, 30)
        below = int(np.log2(np.e) * (1 << self.log2e_bits))
        require_int("log2e", self.log2e, below, below + 1)
        if not isinstance(self.coefficients, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"coefficients must be a tuple, not {self.coefficients!r}")
        if not 2 <= len(self.coefficients) <= 9:
            raise ValueError(f"coefficients must number from 2 to 9, not {len(self.coefficients)}")
        one = 1 << self.horner_bits
        for k, value in enumerate(self.coefficients):
            require_int(f"coefficients[{k}]", value, 0, 2 * one - 1)
        limit = one + (one >> (self.fmt.significand_bits + 1)) - 1
        if not one <= self.coefficients[0] <= limit:
            raise ValueError(
                f"coefficients[0] must be from {one} to {limit} so that exp(0) = 1, not {self.coefficients[0]}"
            )
        if self.horner_limits[0] >= 2 * one:
            raise ValueError(f"the polynomial must stay below {2 * one}, it reaches {self.horner_limits[0]}")

    @property
    def degree(self) -> int:
        """Degree of the polynomial."""
        return len(self.coefficients) - 1

    @property
    def horner_bits(self) -> int:
        """Fraction bits of the coefficients and of every Horner sum."""
        return self.frac_bits + self.guard_bits

    @property
    def range_bits(self) -> int:
        """Integer bits of |x| that can matter: every |x| of at least ``2^range_bits`` overflows or vanishes."""
        fmt = self.fmt
        return int(np.ceil(np.log2((fmt.bias + fmt.significand_bits + 1) * np.log(2))))

    @property
    def horner_limits(self) -> tuple[int, ...]:
        """Largest value of every Horner sum ``h``, index k after adding ``c[k]``: reached at the largest f."""
        sums = [self.coefficients[-1]]
        for coefficient in reversed(self.coefficients[:-1]):
            sums.append((sums[-1] * ((1 << self.frac_bits) - 1) >> self.frac_bits) + coefficient)
        return tuple(reversed(sums))

    @property
    def interval_cycles(self) -> int:
        """Cycles between two accepted operands without stalls."""
        # Serial: log2(e), the shift that depends on it, then one step a degree; 8 cycles at degree 6.
        return 1 if self.evaluation == "pipelined" else self.degree + 2

    @property
    def latency_cycles(self) -> int:
        """Cycles from the acceptance of an operand to the first cycle in which its result is valid, without stalls."""
        # log2(e), shift, one Horner step a degree, scaling, rounding: each ends in a register.
        return self.degree + 4

    def replace(self, **changes: Any) -> Self:
        """Return this spec with ``changes`` applied, validated anew."""
        return replace(self, **changes)

    def evaluate_float(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the same approximation with no word lengths: exact log2(e), real f, no rounding.

        What is left is the error of the polynomial itself.

        Parameters
        ----------
        x : array_like of float
            Any shape.

        Returns
        -------
        ndarray of float64
            Same shape; NaN, infinities and float64 overflow as in ``numpy.exp``.
        """
        x = np.asarray(x, dtype=np.float64)
        finite = np.isfinite(x)
        t = np.clip(np.where(finite, x, 0.0) * np.log2(np.e), -1100.0, 1100.0)
        n = np.floor(t)
        h = np.zeros_like(t)
        for coefficient in reversed(self.coefficients):
            h = h * (t - n) + coefficient * 2.0**-self.horner_bits
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(h, n.astype(np.int64))
            return np.where(finite, scaled, np.exp(x))

    def evaluate_codes(self, codes: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return what the hardware returns, bit for bit.

        Parameters
        ----------
        codes : array_like of int
            Codes of ``fmt``, any shape.

        Returns
        -------
        ndarray of uint16
            Same shape; NaN gives ``fmt.nan_code``, -inf +0, overflow and +inf ``fmt.inf_code``.
        """
        fmt = self.fmt
        code = np.asarray(codes).astype(np.int64)
        negative = (code & fmt.sign_mask) != 0
        nan = (code & (fmt.sign_mask - 1)) > fmt.inf_code
        n, f, beyond = self.reduce_codes(code)
        rounded = self.round_scaled(horner(self.coefficients, f, self.frac_bits), n)
        overflow = beyond & ~negative | (n > fmt.bias)
        result = np.where(overflow, fmt.inf_code, np.where(beyond, 0, rounded))
        return np.where(nan, fmt.nan_code, result).astype(np.uint16)

    def reduce_codes(
        self, codes: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Split ``t = x * log2(e)`` of every code into floor and fraction.

        Parameters
        ----------
        codes : array_like of int
            Codes of ``fmt``, any shape.

        Returns
        -------
        n, f : ndarray of int64
            Floor, and fraction in units of ``2^-frac_bits``; both 0 where ``beyond``.
        beyond : ndarray of bool
            The magnitude is at least ``2^range_bits``, infinite or NaN.
        """
        fmt = self.fmt
        code = np.asarray(codes).astype(np.int64)
        field = code >> fmt.significand_bits & fmt.exponent_mask
        beyond = field >= fmt.bias + self.range_bits
        significand = code & ((1 << fmt.significand_bits) - 1) | np.where(field != 0, 1 << fmt.significand_bits, 0)
        product = np.where(code & fmt.sign_mask, -significand, significand) * self.log2e
        exponent = np.maximum(field, 1) - fmt.bias - fmt.significand_bits
        shift = np.where(beyond, 0, exponent - self.log2e_bits + self.frac_bits)
        t = np.where(shift >= 0, product << np.maximum(shift, 0), product >> np.clip(-shift, 0, 63))
        t = np.where(beyond, 0, t)
        return t >> self.frac_bits, t & ((1 << self.frac_bits) - 1), beyond

    def round_scaled(self, h: npt.NDArray[np.int64], n: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Round ``h * 2^n`` to nearest even.

        Parameters
        ----------
        h, n : ndarray of int64, one shape
            Horner sums in units of ``2^-horner_bits``, below 2; exponents up to ``fmt.bias``.

        Returns
        -------
        ndarray of int64
            Codes of ``fmt``, subnormal results and the carry into infinity included.
        """
        fmt = self.fmt
        field = n + fmt.bias
        # S + 2 positions below the smallest normal number even h < 2 rounds to zero.
        drop = self.horner_bits - fmt.significand_bits + np.clip(1 - field, 0, fmt.significand_bits + 2)
        kept = h >> drop
        rest = h & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        up = (rest > half) | ((rest == half) & (kept & 1 == 1))
        # The hidden bit, part of ``kept``, carries into the exponent field.
        base = np.maximum(field, 1) - 1
        return (base << fmt.significand_bits) + kept + up


POLY6 = ExpSpec(name="poly6", coefficients=(65537, 45427, 15741, 3643, 627, 92, 9))
"""Degree 6, seven coefficients found by :func:`golden.exp_fit.fit`, one result a cycle."""

POLY6_SERIAL = POLY6.replace(name="poly6-serial", evaluation="serial")
"""The same polynomial on one multiplier."""
