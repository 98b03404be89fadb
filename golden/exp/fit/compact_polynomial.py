"""Constants and word lengths of the compact degree-6 units, fitted on the real operands with all truncation in place.

:func:`fit` finds the constants of given word lengths, :func:`shrink` the word lengths themselves. Both are
deterministic: from the real minimax polynomial, every step that changes one or two integers is tried in a fixed order
and taken if fewer results come out wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from golden.exp.compact_polynomial import CompactPolynomialSpec, SerialPolynomialSpec
from golden.exp.fit.minimax import chebyshev_grid, minimax
from golden.exp.oracle import exact_exp, rounded_exp
from golden.exp.radix_polynomial import DEGREE, RadixPolynomialSpec
from golden.formats import FP16

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

__all__ = ["CompactFit", "fit", "row_bits", "shrink"]

_FALL_PENALTY = 100
_END_PENALTY = 1000
_REACH = (0.01, 0.1, 0.1, 0.1, 0.2, 0.3, 0.4)
"""How far each coefficient may lie from the minimax polynomial's, relative to it.

A fit on misrounded results alone lets truncation errors and low terms take over what a high term should do; within
these bounds every term stays what it is.
"""
_PAIRS = ((-1, 1), (1, -1), (1, 1), (-1, -1), (1, -2), (-1, 2), (2, -1), (-2, 1))
_LEAST_KEPT = (11, 11, 11, 11, 12, 13, 14)
"""Fraction bits that :func:`shrink` leaves every sum, so that each has several values over g."""
_LEAST_DIGITS = 2


@dataclass(frozen=True, kw_only=True)
class CompactFit:
    """Result of :func:`fit`.

    Parameters
    ----------
    spec : RadixPolynomialSpec
        The unit with the constants found.
    misrounded : int
        Operands whose result is not the correctly rounded one.
    operands : int
        Operands counted: every code of the domain with a normal result.
    """

    spec: RadixPolynomialSpec
    misrounded: int
    operands: int

    @property
    def share(self) -> float:
        """Share of the operands whose result is the correctly rounded one."""
        return 1 - self.misrounded / self.operands


class _Draft(CompactPolynomialSpec):
    """A unit that need not be monotone yet."""

    def require_result(self) -> None:
        """Take any coefficients."""


class _SerialDraft(SerialPolynomialSpec):
    """A serial unit that need not be monotone yet."""

    def require_result(self) -> None:
        """Take any coefficients."""


def fit(spec: RadixPolynomialSpec, *, start: Sequence[int] | None = None, rounds: int = 3) -> CompactFit:
    """Fit coefficients and product constants to the word lengths of a unit.

    Parameters
    ----------
    spec : CompactPolynomialSpec or SerialPolynomialSpec
        Its word lengths are used, and its powers of two.
    start : sequence of int, optional
        Coefficients to start from, the minimax polynomial's if none.
    rounds : int
        Passes of the search over all coefficients, at least 1; it ends earlier when one brings nothing.

    Raises
    ------
    ValueError
        If no constants found make the unit monotone and exp(0) = 1.
    """
    draft = _draft(spec)
    best = list(start or _centres(draft))
    draft = min(_frames(draft, narrow=start is not None), key=lambda each: _Objective(each)(best))
    objective = _Objective(draft)
    best = _descend(objective, best, rounds)
    if start is None:
        draft = min(_frames(draft, narrow=False), key=lambda each: _Objective(each)(best))
        objective = _Objective(draft)
        best = _descend(objective, best, rounds)
    final: dict[str, Any] = {field.name: getattr(draft, field.name) for field in fields(draft)} | {
        "coefficients": tuple(best)
    }
    family = SerialPolynomialSpec if isinstance(draft, SerialPolynomialSpec) else CompactPolynomialSpec
    return CompactFit(
        spec=family(**final), misrounded=objective.misrounded(best), operands=int(objective.expected.size)
    )


def shrink(spec: CompactPolynomialSpec, share: float) -> Iterator[CompactFit]:
    """Make word lengths smaller, one bit at a time, while enough results stay correctly rounded.

    Parameters
    ----------
    spec : CompactPolynomialSpec
        Word lengths to start from, with coefficients that fit them.
    share : float
        Least share of correctly rounded results.

    Yields
    ------
    CompactFit
        The fitted start, then the unit after each change: that with the most row bits saved for each result lost.
    """
    best = fit(spec, start=spec.coefficients)
    while best.share >= share:
        yield best
        now = best.spec
        assert isinstance(now, CompactPolynomialSpec)
        found: list[tuple[float, CompactFit]] = []
        for candidate in _smaller(now):
            try:
                fitted = fit(candidate, start=candidate.coefficients, rounds=2)
            except ValueError:
                continue
            saved = row_bits(now) - row_bits(candidate)
            if fitted.share >= share:
                found.append((saved / max(3, fitted.misrounded - best.misrounded), fitted))
        if not found:
            return
        best = max(found, key=lambda each: each[0])[1]


def row_bits(spec: CompactPolynomialSpec) -> float:
    """Return what a unit costs, in full adders: bits of all rows, and of the shifters and sums in proportion."""
    count = (spec.frac_bits + 1) // 2
    bits = 0.8 * (spec.frac_bits + spec.product_columns) + 0.05 * sum(spec.kept_bits)
    for k, limit in enumerate(spec.limits[1:]):
        for j in range(count - spec.step_digits[k], count):
            below = spec.frac_bits + spec.kept_bits[k + 1] - 2 * j - spec.step_columns[k]
            # A radix-4 row bit holds a selector as well.
            bits += 1.5 * (limit.bit_length() + 2 - max(0, below))
    for power in spec.log2e_powers:
        bits += min(11, max(0, 2 - abs(power) + spec.product_columns))
    return bits


def _smaller(spec: CompactPolynomialSpec) -> Iterator[CompactPolynomialSpec]:
    """Yield every unit that is smaller by one bit or row, its coefficients moved to its columns."""
    names = ("step_columns", "kept_bits", "step_digits")
    for name in names:
        for k in range(DEGREE):
            values = {each: list(getattr(spec, each)) for each in names}
            values[name][k] -= 1
            values["kept_bits"][k] = min(values["kept_bits"][k], values["step_columns"][k])
            if values["kept_bits"][k] < _LEAST_KEPT[k] or values["step_digits"][k] < _LEAST_DIGITS:
                continue
            coefficients = list(spec.coefficients)
            coefficients[k] = round(coefficients[k] * 2.0 ** (values["step_columns"][k] - spec.step_columns[k]))
            changes = {each: tuple(value) for each, value in values.items()} | {"coefficients": tuple(coefficients)}
            yield from _drafts(spec, changes)
    offset = spec.product_offset // 2 + 1
    yield from _drafts(spec, {"product_columns": spec.product_columns - 1, "product_offset": offset})
    yield from _drafts(spec, {"log2e_powers": spec.log2e_powers[:-1]})
    count = spec.frac_bits // 2
    digits = tuple(min(value, count) for value in spec.step_digits)
    yield from _drafts(spec, {"frac_bits": spec.frac_bits - 1, "step_digits": digits})


def _drafts(spec: CompactPolynomialSpec, changes: dict[str, Any]) -> Iterable[CompactPolynomialSpec]:
    """Return the changed unit, or none if its word lengths don't go together."""
    try:
        changed = _draft(spec, changes)
        return [changed] if isinstance(changed, _Draft) else []
    except ValueError:
        return []


def _draft(spec: RadixPolynomialSpec, changes: dict[str, Any] | None = None) -> _Draft | _SerialDraft:
    """Return the unit with changes and no demand on its results."""
    values: dict[str, Any] = {field.name: getattr(spec, field.name) for field in fields(spec)} | (changes or {})
    return _SerialDraft(**values) if isinstance(spec, SerialPolynomialSpec) else _Draft(**values)


def _frames(spec: _Draft | _SerialDraft, *, narrow: bool) -> Iterator[_Draft | _SerialDraft]:
    """Yield the unit with every set of product constants worth a try."""
    if isinstance(spec, _Draft):
        last = (1 << max(0, spec.product_columns - 13)) + 4
        near = range(max(0, spec.product_offset - 2), spec.product_offset + 3)
        for offset in near if narrow else range(last):
            yield spec.replace(product_offset=offset)
        return
    nearest = round(float(np.log2(np.e)) * (1 << spec.accumulator_bits))
    half = round(float(np.log2(np.e)) * (1 << spec.columns - 1))
    for log2e in (nearest - 1, nearest, nearest + 1):
        for constant in range(half - 2, half + 10):
            yield spec.replace(log2e=log2e, product_constant=constant)


def _centres(spec: RadixPolynomialSpec) -> list[int]:
    """Return the minimax polynomial's coefficients, with what truncation takes from each sum in the mean."""
    x = chebyshev_grid(-0.5, 0.5)
    real, _ = minimax(2.0 ** (x + 0.5), 2.0**-x, x, DEGREE)
    centres: list[int] = []
    for k in range(DEGREE):
        words = spec.words(k)
        # Half a column a row, and half of what is cut from the sum, but from the last, which is rounded.
        taken = words.digits / 2 + (((1 << words.columns - words.sum_bits) - 1) / 2 if k else 0)
        centres.append(round(float(real[k]) * 2**words.columns + taken))
    return [*centres, round(float(real[DEGREE]) * 2 ** spec.sum_bits(DEGREE))]


class _Objective:
    """What is wrong with a choice of coefficients, lower is better; sums are kept from one choice to the next."""

    def __init__(self, spec: RadixPolynomialSpec) -> None:
        codes = np.arange(1 << FP16.bits)
        exact, right = exact_exp(FP16), rounded_exp(FP16).astype(np.int64)
        counted = (exact >= FP16.min_normal) & (right < FP16.inf_code)
        if spec.domain == "nonpositive":
            counted &= codes >= FP16.sign_mask
        codes = codes[counted]
        n, f = spec.reduce_codes(codes)
        self.spec = spec
        self.f = f.astype(np.int32)
        self.expected = (right[codes] - (n + 14 << 10)).astype(np.int32)
        self._digits = spec.argument_digits()
        self._sums: list[tuple[tuple[int, ...], npt.NDArray[np.int32]] | None] = [None] * (DEGREE + 1)
        self.reach = [(c - _REACH[k] * c, c + _REACH[k] * c) for k, c in enumerate(_centres(spec))]

    def __call__(self, coefficients: Sequence[int]) -> int:
        """Return the misrounded results, with penalties for every fall and for a wrong exp(0)."""
        h = self._sum(tuple(coefficients), 0)
        falls = np.flatnonzero(h[1:] < h[:-1])
        before, after = h[falls], h[falls + 1]
        fallen = sum(
            int(np.count_nonzero((after >> depth) + 1 >> 1 < (before >> depth) + 1 >> 1)) for depth in range(12)
        )
        ends = (int(h[0]) + 1 >> 1 != 1024) + (int(h[-1]) + 1 >> 1 != 2048)
        return self.misrounded(coefficients) + _FALL_PENALTY * fallen + _END_PENALTY * ends

    def misrounded(self, coefficients: Sequence[int]) -> int:
        """Return the number of misrounded results."""
        rounded = self._sum(tuple(coefficients), 0) + 1 >> 1
        return int(np.count_nonzero(rounded[self.f] != self.expected))

    def near(self, k: int, value: int) -> bool:
        """Say whether ``c[k]`` may have this value."""
        low, high = self.reach[k]
        return low <= value <= high

    def _sum(self, coefficients: tuple[int, ...], k: int) -> npt.NDArray[np.int32]:
        """Return sum k, in units of ``2^-11`` for k = 0."""
        known = self._sums[k]
        if known is not None and known[0] == coefficients[k:]:
            return known[1]
        if k == DEGREE:
            h = np.full(1 << self.spec.frac_bits, coefficients[k], np.int32)
        else:
            h = self.spec.step(k, self._digits, self._sum(coefficients, k + 1), coefficients[k])
            h = h if k else h >> self.spec.sum_bits(0) - 11
        self._sums[k] = coefficients[k:], h
        return h


def _descend(objective: _Objective, start: Sequence[int], rounds: int) -> list[int]:
    """Take every improving change of one coefficient, as often as it improves, then of two; until none helps."""
    best, least = list(start), objective(start)

    def take(changes: Sequence[tuple[int, int]]) -> bool:
        nonlocal best, least
        trial = list(best)
        for k, step in changes:
            trial[k] += step
            if not objective.near(k, trial[k]):
                return False
        value = objective(trial)
        if value >= least:
            return False
        best, least = trial, value
        return True

    for number in range(rounds):
        before = least
        for size in (8, 4, 2, 1) if number == 0 else (3, 2, 1):
            for k in range(DEGREE + 1):
                for step in (-size, size):
                    while take([(k, step)]):
                        pass
        for i, j in combinations(range(DEGREE), 2):
            for a, b in _PAIRS:
                take([(i, a), (j, b)])
        if least == before:
            break
    return best
