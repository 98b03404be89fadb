"""Exponential by a polynomial for ``2^f``: degree 1 to 8, by Horner's rule or Estrin's, in stated word lengths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.exp.frame import ReducedSpec
from golden.exp.plan import Plan, estrin_plan, horner_plan
from golden.exp.spec import require_choice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from golden.exp.spec import Evaluation

__all__ = ["POLY6", "POLY6_SERIAL", "PolynomialCore", "PolynomialSpec", "Products", "Scheme", "horner"]

Scheme = Literal["horner", "estrin"]
"""Order of evaluation: one product after the other, or neighbours in pairs."""

Products = Literal["truncated", "rounded"]
"""What becomes of a product's low bits: dropped, or half a unit added before."""


def horner(coefficients: Sequence[int], f: npt.NDArray[np.int64], frac_bits: int) -> npt.NDArray[np.int64]:
    """Evaluate a fixed-point polynomial, each product truncated before the next coefficient is added.

    Parameters
    ----------
    coefficients : sequence of int
        ``c[0] .. c[degree]``, in any one unit.
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
class PolynomialCore:
    """A polynomial for ``2^f`` on [0, 1) in fixed point, whatever its frame.

    Parameters
    ----------
    frac_bits : int
        Bits of f.
    coefficients : tuple of int
        ``c[0] .. c[degree]``, each in units of ``2^-sum_bits[k]``; degree 1 to 8.
    guard_bits : int
        Fraction bits that the result carries beyond ``frac_bits``.
    sum_bits : tuple of int
        Fraction bits of each coefficient and of the Horner sum it is added to, index k; the first is
        ``frac_bits + guard_bits`` and none exceeds the one before. Empty: all as the first.
    factor_bits : tuple of int
        Leading fraction bits of f that the multiplication before ``c[k]`` gets, index k, one fewer than
        coefficients. Empty: all of them.
    scheme : {"horner", "estrin"}
        Order of evaluation. Estrin's has one word length.
    products : {"truncated", "rounded"}
        What becomes of the low bits of every product.
    centred : bool
        Whether the polynomial is one in f - 1/2, which makes its higher coefficients matter less and some negative.

    Notes
    -----
    Horner, with ``A[k]`` the factor's and ``F[k]`` the sum's bits and ``g = f`` or ``f - 1/2``::

        h = c[degree];  h = (h * (g to A[k] bits) to F[k] bits) + c[k]  for k = degree - 1 .. 0

    Estrin: ``c[0] + c[1] g``, ``c[2] + c[3] g`` .. are joined by ``g^2``, these by ``g^4``, with every product and
    power in the same bits.
    """

    coefficients: tuple[int, ...]
    frac_bits: int = 16
    guard_bits: int = 0
    sum_bits: tuple[int, ...] = ()
    factor_bits: tuple[int, ...] = ()
    scheme: Scheme = "horner"
    products: Products = "truncated"
    centred: bool = False

    def require_polynomial(self) -> None:
        """Raise unless coefficients and word lengths fit together."""
        require_int("guard_bits", self.guard_bits, 0, 8)
        require_choice("scheme", self.scheme, get_args(Scheme))
        require_choice("products", self.products, get_args(Products))
        if not isinstance(self.centred, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"centred must be a bool, not {self.centred!r}")
        for name in ("coefficients", "sum_bits", "factor_bits"):
            if not isinstance(getattr(self, name), tuple):
                raise TypeError(f"{name} must be a tuple, not {getattr(self, name)!r}")
        if not 2 <= len(self.coefficients) <= 9:
            raise ValueError(f"coefficients must number from 2 to 9, not {len(self.coefficients)}")
        one = 1 << self.core_bits
        for k, value in enumerate(self.coefficients):
            require_int(f"coefficients[{k}]", value, -2 * one if self.centred else 0, 2 * one - 1)
        if self.scheme == "estrin" and (self.sum_bits or self.factor_bits):
            raise ValueError("sum_bits and factor_bits must be empty with scheme 'estrin', which has one word length")
        for name, bits, count in (
            ("sum_bits", self.sum_bits, self.degree + 1),
            ("factor_bits", self.factor_bits, self.degree),
        ):
            if bits and len(bits) != count:
                raise ValueError(f"{name} must number {count} or none, not {len(bits)}")
        for k, value in enumerate(self.factor_bits):
            require_int(f"factor_bits[{k}]", value, 1, self.frac_bits)
        for k, value in enumerate(self.sum_bits):
            high = self.sum_bits[k - 1] if k else self.core_bits
            require_int(f"sum_bits[{k}]", value, 1 if k else self.core_bits, high)
            if k and value + self.factors[k - 1] < high:
                raise ValueError(f"sum_bits[{k}] must be at least {high - self.factors[k - 1]}, not {value}")

    @property
    def degree(self) -> int:
        """Degree of the polynomial."""
        return len(self.coefficients) - 1

    @property
    def core_bits(self) -> int:
        """Fraction bits of the result."""
        return self.frac_bits + self.guard_bits

    @property
    def sums(self) -> tuple[int, ...]:
        """Fraction bits of each coefficient and its sum, spelled out."""
        return self.sum_bits or (self.core_bits,) * (self.degree + 1)

    @property
    def factors(self) -> tuple[int, ...]:
        """Fraction bits of f in each product, spelled out."""
        return self.factor_bits or (self.frac_bits,) * self.degree

    @cached_property
    def plan(self) -> Plan:
        """Products and sums in order."""
        return self.plan_of(self.coefficients)

    def plan_of(self, coefficients: tuple[int, ...]) -> Plan:
        """Return the plan with other ``coefficients``, as many."""
        rounded = self.products == "rounded"
        if self.scheme == "estrin":
            return estrin_plan(coefficients, frac_bits=self.frac_bits, rounded=rounded, centred=self.centred)
        return horner_plan(
            coefficients,
            frac_bits=self.frac_bits,
            sum_bits=self.sums,
            factor_bits=self.factors,
            rounded=rounded,
            centred=self.centred,
        )

    def core(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the polynomial of ``f`` (units of ``2^-frac_bits``) in units of ``2^-core_bits``."""
        return self.plan.evaluate(f)[self.plan.result]

    def core_float(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the polynomial with the same coefficients and exact products."""
        g = f - 0.5 if self.centred else f
        h = np.zeros_like(f)
        for coefficient, bits in zip(reversed(self.coefficients), reversed(self.sums), strict=True):
            h = h * g + coefficient * 2.0**-bits
        return h

    @property
    def polynomial_parameters(self) -> dict[str, int | str]:
        """Degree, word lengths and order of evaluation, for the rows of a report."""
        return {
            "degree": self.degree,
            "frac_bits": self.frac_bits,
            "core_bits": self.core_bits,
            "sum_bits": " ".join(map(str, self.sums)),
            "factor_bits": " ".join(map(str, self.factors)),
            "scheme": self.scheme,
            "products": self.products,
            "centred": str(self.centred).lower(),
        }


@dataclass(frozen=True, kw_only=True)
class PolynomialSpec(PolynomialCore, ReducedSpec):
    """Exponential of one floating-point code by range reduction and a polynomial.

    The parameters are those of :class:`PolynomialCore` and of :class:`golden.exp.frame.ReducedSpec`.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range, or if the polynomial leaves [1, 2), rounds ``2^0`` to
        anything but 1, or makes a result fall where x rises: see :meth:`ReducedSpec.require_core`, which evaluates
        every f.
    """

    family: ClassVar[str] = "polynomial"
    evaluations: ClassVar[tuple[Evaluation, ...]] = ("combinational", "pipelined", "serial")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_polynomial()
        if self.evaluation == "serial" and (self.scheme, self.centred, self.sum_bits, self.factor_bits) != (
            "horner",
            False,
            (),
            (),
        ):
            raise ValueError("a serial polynomial must be in Horner form, not centred, with one word length")
        self.require_core()

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Degree, word lengths, order of evaluation and rounding."""
        return {**self.polynomial_parameters, "rounding": self.rounding}

    @property
    def steps(self) -> int:
        """Steps of the datapath: log2(e), shift, the levels of the polynomial, scaling, rounding."""
        return len(self.plan.levels) + 4

    @property
    def interval_cycles(self) -> int:
        """Cycles between two accepted operands without stalls."""
        # Serial: log2(e), the shift that depends on it, then one step a degree; 8 cycles at degree 6.
        return self.degree + 2 if self.evaluation == "serial" else 1


POLY6 = PolynomialSpec(name="poly6", coefficients=(65537, 45427, 15741, 3643, 627, 92, 9))
"""Degree 6, seven coefficients found by :func:`golden.exp.fit.polynomial.fit`, one result a cycle."""

POLY6_SERIAL = POLY6.replace(name="poly6-serial", evaluation="serial")
"""The same polynomial on one multiplier."""
