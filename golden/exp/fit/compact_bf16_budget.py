"""Errors and gates of the tables of a :class:`golden.exp.compact_bf16.CompactBf16Spec`, fast enough to search by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from golden.exp.fit.decisions import table_gates
from golden.exp.oracle import exact_exp, rounded_exp
from golden.formats import BF16

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.exp.compact_bf16 import CompactBf16Spec

__all__ = ["Bounds", "Budget", "Tables", "estimate_gates"]

_FULL_ADDER, _HALF_ADDER, _INVERTER = 7.0, 3.25, 0.75
_PENALTIES = (300.0, 3000.0, 100.0)
"""Gates that a hundredth part of largest error, mean error and share misrounded beyond the bounds counts for."""
_BITS = BF16.significand_bits

Tables = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""``high``, ``low`` and ``correction``."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Errors that tables may have, over every operand with a normal result.

    Parameters
    ----------
    max_rel : float
        Largest relative error against the exact exponential.
    mean_rel : float
        Mean relative error for x uniform over the range of normal results.
    correctly_rounded : float
        Least share of the codes that are correctly rounded.
    """

    max_rel: float
    mean_rel: float
    correctly_rounded: float


def estimate_gates(spec: CompactBf16Spec) -> float:
    """Estimate the gates, in NAND2, of what depends on the tables: the tables and the adder behind the first two."""
    return _gates(spec, (spec.high, spec.low, spec.correction))


def _gates(spec: CompactBf16Spec, tables: Tables) -> float:
    high, low, _ = tables
    gates = sum(table_gates(table) for table in tables)
    carry = False
    for column in range(spec.product_bits + 2):
        variable = ones = 0
        for table in (high, low):
            bits = {entry >> column & 1 for entry in table}
            variable += len(bits) == 2
            ones += bits == {1}
        inputs = variable + carry
        if inputs == 3:
            gates += _FULL_ADDER
        elif inputs == 2:
            gates += _HALF_ADDER
        elif inputs == 1 and ones == 1:
            gates += _INVERTER
        carry = inputs + ones >= 2
    return gates


class Budget:
    """Errors and gates of tables for one spec."""

    def __init__(self, spec: CompactBf16Spec, bounds: Bounds) -> None:
        self.spec = spec
        self.bounds = bounds
        exact = exact_exp(BF16)
        rounded = rounded_exp(BF16).astype(np.int64)
        normal = (rounded >= 1 << _BITS) & (rounded < BF16.inf_code)
        if spec.domain == "nonpositive":
            normal &= (np.arange(normal.size) & BF16.sign_mask) != 0
        codes = np.flatnonzero(normal)
        exponent = (codes >> _BITS & BF16.exponent_mask) - BF16.bias
        # x uniform: each code stands for the reals nearest to it. All are a unit in the last place wide, but for the
        # powers of two, whose lower half is half as wide.
        fraction = codes & ((1 << _BITS) - 1)
        weight = np.ldexp(np.where(fraction == 0, 0.75, 1.0), np.maximum(exponent, -126))
        weight /= weight.sum()
        active = exponent >= spec.lowest_exponent
        self._count = codes.size
        # What counts as zero has the result 1, whatever the tables.
        rest = ~active
        self._misrounded = int(np.count_nonzero(rounded[codes[rest]] != BF16.one_code))
        error = np.abs(1 / exact[codes[rest]] - 1)
        self._largest, self._mean = float(error.max()), float(error @ weight[rest])
        shift = exponent[active] - spec.product_bits + spec.frac_bits
        codes = codes[active]
        self._fraction = fraction[active]
        self._up, self._down = np.maximum(shift, 0), np.clip(-shift, 0, 40)
        self._sign = -(codes >> (BF16.bits - 1))
        self._rounded = rounded[codes]
        self._inverse = 1 / exact[codes]
        self.weight = weight[active]
        self._index_shift = spec.frac_bits - spec.correction_bits

    def reduce(self, tables: Tables) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return t, its sign applied, and f of every operand that counts."""
        p = np.add.outer(np.array(tables[0]), np.array(tables[1])).reshape(-1)
        t = ((p[self._fraction] << self._up) >> self._down) ^ self._sign
        return t, t & ((1 << self.spec.frac_bits) - 1)

    def errors(
        self, t: npt.NDArray[np.int64], f: npt.NDArray[np.int64], c: npt.NDArray[np.int64] | int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Return the relative error of every operand with correction ``c``, and whether it is misrounded."""
        drop = self.spec.frac_bits - _BITS
        ones = f >> (drop - 1) == (2 << _BITS) - 1
        # With ones, t rounded up is a whole number.
        result = (np.where(ones, t + (1 << (drop - 1)), t + self.spec.rounding - c) >> drop) + BF16.one_code
        values = (result << 16).astype(np.uint32).view(np.float32)
        return np.abs(values * self._inverse - 1), result != self._rounded

    def excess(self, tables: Tables) -> float:
        """Return the penalty, in gates, of errors beyond the bounds: 0 within."""
        t, f = self.reduce(tables)
        error, wrong = self.errors(t, f, np.array(tables[2])[f >> self._index_shift])
        misrounded = (self._misrounded + int(np.count_nonzero(wrong))) / self._count
        found = (max(self._largest, float(error.max())), self._mean + float(error @ self.weight), misrounded)
        allowed = (self.bounds.max_rel, self.bounds.mean_rel, 1 - self.bounds.correctly_rounded)
        return sum(
            100 * factor * max(0.0, have - want) for factor, have, want in zip(_PENALTIES, found, allowed, strict=True)
        )

    def gates(self, tables: Tables) -> float:
        """Return the estimate of gates."""
        return _gates(self.spec, tables)

    def possible(self, tables: Tables) -> bool:
        """Say whether no entry is out of range and no result falls as x rises."""
        high, low, correction = tables
        piece = 1 << self._index_shift
        if (
            min(low) < 0
            or min(high) < 0
            or any(not 0 <= c <= k * piece + self.spec.rounding for k, c in enumerate(correction))
        ):
            return False
        p = np.add.outer(np.array(high), np.array(low)).reshape(-1)
        # From one binade to the next the same holds of t, cut: p of the last operand is halved.
        if (np.diff(p) < 0).any() or p[-1] >= 2 * p[0]:
            return False
        return all(self.rises(k, correction[k], after) for k, after in enumerate(correction[1:]))

    def rises(self, k: int, before: int, after: int) -> bool:
        """Say whether the result does not fall from piece ``k`` to the next if they have these corrections."""
        drop = self.spec.frac_bits - _BITS
        first = ((k + 1) << self._index_shift) + self.spec.rounding
        return (first - 1 - before) >> drop <= (first - after) >> drop
