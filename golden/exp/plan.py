"""A fixed-point polynomial as products and sums in levels: the one description that NumPy and gates both follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["Mac", "Plan", "estrin_plan", "horner_plan"]


@dataclass(frozen=True, kw_only=True)
class Mac:
    """One product and sum: ``name = (left * (right >> cut) >> drop) + add``.

    Parameters
    ----------
    name : str
        What later ones call the result.
    left, add : int or str
        Constants, or names of earlier results.
    right : str
        Name of an earlier result, or ``f``.
    cut : int
        Low bits of ``right`` that the multiplier does not get.
    drop : int
        Low bits of the product that the sum does not get.
    """

    name: str
    left: int | str
    right: str
    cut: int
    drop: int
    add: int | str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Levels of products and sums, each of operands that the levels before it left.

    Parameters
    ----------
    frac_bits : int
        Bits of f.
    levels : tuple of tuple of Mac
        In the order of evaluation; the last holds one, the result.
    rounded : bool
        Whether half a unit is added to a product before its low bits are dropped.
    centred : bool
        Whether ``f`` stands for f - 1/2, in two's complement, rather than for f.
    """

    frac_bits: int
    levels: tuple[tuple[Mac, ...], ...]
    rounded: bool
    centred: bool

    @property
    def result(self) -> str:
        """Name of the result."""
        return self.levels[-1][0].name

    def evaluate(self, f: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.int64]]:
        """Return every intermediate result by name, ``f`` itself included.

        Parameters
        ----------
        f : ndarray of int64
            Fractions in units of ``2^-frac_bits``.

        Returns
        -------
        dict of str to ndarray of int64
            Same shape each.
        """
        values = {"f": f - (1 << self.frac_bits - 1) if self.centred else f}
        for mac in (mac for level in self.levels for mac in level):
            left = values[mac.left] if isinstance(mac.left, str) else mac.left
            product = left * (values[mac.right] >> mac.cut)
            if self.rounded and mac.drop:
                product = product + (1 << mac.drop - 1)
            values[mac.name] = (product >> mac.drop) + (values[mac.add] if isinstance(mac.add, str) else mac.add)
        return values

    @lru_cache(maxsize=256)  # noqa: B019 - plans are few, small and frozen
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Return the smallest and largest value of every intermediate result, found by evaluating every f."""
        values = self.evaluate(np.arange(1 << self.frac_bits))
        return {name: (int(value.min()), int(value.max())) for name, value in values.items()}


def horner_plan(
    coefficients: Sequence[int],
    *,
    frac_bits: int,
    sum_bits: Sequence[int],
    factor_bits: Sequence[int],
    rounded: bool = False,
    centred: bool = False,
) -> Plan:
    """Return ``h = c[degree]; h = (h * f >> ..) + c[k]`` for ``k = degree - 1 .. 0``, one a level.

    Parameters
    ----------
    coefficients : sequence of int
        ``c[0] .. c[degree]``, each in units of ``2^-sum_bits[k]``.
    frac_bits : int
        Bits of f.
    sum_bits : sequence of int
        Fraction bits of ``c[k]`` and of the sum it is added to.
    factor_bits : sequence of int
        Fraction bits of f, the leading ones, in the product that ``c[k]`` is added to; one fewer than coefficients.
    rounded, centred : bool
        See :class:`Plan`.
    """
    degree = len(coefficients) - 1
    levels = tuple(
        (
            Mac(
                name=f"h{k}",
                left=f"h{k + 1}" if k < degree - 1 else coefficients[degree],
                right="f",
                cut=frac_bits - factor_bits[k],
                drop=sum_bits[k + 1] + factor_bits[k] - sum_bits[k],
                add=coefficients[k],
            ),
        )
        for k in reversed(range(degree))
    )
    return Plan(frac_bits=frac_bits, levels=levels, rounded=rounded, centred=centred)


def estrin_plan(coefficients: Sequence[int], *, frac_bits: int, rounded: bool = False, centred: bool = False) -> Plan:
    """Return neighbours joined by f, their sums by f^2, and so on: ``ceil(log2(degree + 1))`` levels.

    Parameters
    ----------
    coefficients : sequence of int
        ``c[0] .. c[degree]``, in any one unit.
    frac_bits : int
        Bits of f and of its powers.
    rounded, centred : bool
        See :class:`Plan`.
    """
    terms: list[int | str] = list(coefficients)
    levels: list[tuple[Mac, ...]] = []
    power, exponent = "f", 1
    while len(terms) > 1:
        level: list[Mac] = []
        joined: list[int | str] = []
        for j in range(0, len(terms) - 1, 2):
            name = f"h{len(levels)}_{j // 2}"
            level.append(Mac(name=name, left=terms[j + 1], right=power, cut=0, drop=frac_bits, add=terms[j]))
            joined.append(name)
        terms = joined + terms[len(terms) & ~1 :]
        if len(terms) > 1:
            square = f"f{2 * exponent}"
            level.append(Mac(name=square, left=power, right=power, cut=0, drop=frac_bits, add=0))
            power, exponent = square, 2 * exponent
        levels.append(tuple(level))
    return Plan(frac_bits=frac_bits, levels=tuple(levels), rounded=rounded, centred=centred)
