"""Constants of a :class:`golden.exp.compact.CompactSpec`, fitted to the rounding of every operand.

Every dropped bit is in place: what is counted is what the unit will return. For a segment and a choice of its slope,
each operand that falls into it allows the offsets of one interval, in which its result is the correctly rounded one,
and those of a wider one, in which its error is within the bound. Counting the intervals over each offset gives, for all
offsets at once, the operands that are correctly rounded and those beyond the bound. So a segment's best few are known
exactly; a path through all segments on which no result falls then takes the best of them, by dynamic programming.
Nothing here is random.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from golden.exp.compact import CompactSpec
from golden.exp.oracle import exact_exp, rounded_exp
from golden.formats import FP16

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from golden.exp.compact_shape import CompactShape
    from golden.exp.spec import Domain, Subnormals

__all__ = ["CompactFit", "fit"]

_BEYOND = 1000
"""Correctly rounded operands that one beyond the bound, or one step down, is worth."""
_BROKEN = 10**6
"""What exp(0) other than 1 is worth."""
_KEPT = 16
"""Candidates of a segment that the path chooses from."""
_NEAR = 3
"""Slopes of a segment that are tried: those next to that of 2^f in its middle."""
_CONSTANTS = (0, -1, 1, -2, 2)
"""Constants of the product that are tried, around the one that leaves no mean error."""
_HOPELESS = 60
"""Operands beyond the bound with which other constants of the product are not worth a try."""


@dataclass(frozen=True, kw_only=True)
class CompactFit:
    """Result of :func:`fit`.

    Parameters
    ----------
    shape : CompactShape
        What was fitted.
    product_constant, slopes, offsets
        The constants, as :class:`golden.exp.compact.CompactSpec` takes them.
    beyond : int
        Operands with a normal result whose error is beyond the bound, falling results counted with them.
    correctly_rounded : float
        Share of the operands with a normal result that get the correctly rounded one.
    """

    shape: CompactShape
    product_constant: int
    slopes: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]
    beyond: int
    correctly_rounded: float

    def spec(self, name: str, *, domain: Domain = "full", subnormals: Subnormals = "rounded") -> CompactSpec:
        """Return the combinational unit with these constants.

        Raises
        ------
        ValueError
            If it is not exact at 0 or not monotone.
        """
        return CompactSpec(
            name=name,
            domain=domain,
            subnormals=subnormals,
            evaluation="combinational",
            shape=self.shape,
            product_constant=self.product_constant,
            slopes=self.slopes,
            offsets=self.offsets,
        )


class _Operands(NamedTuple):
    """Operands that are alike to the fit, with how many there are of each kind."""

    f: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    """The correctly rounded result less what n makes of it, in units of 2^-10."""
    below: npt.NDArray[np.int64]
    above: npt.NDArray[np.int64]
    """1 where the result next below, or above, the correctly rounded one is within the bound as well."""
    number: npt.NDArray[np.int64]


class _Candidate(NamedTuple):
    """Constants of a segment."""

    score: int
    choices: tuple[int, ...]
    offset: int
    first: int
    last: int
    """The sum at both ends of the segment, cut to ten fraction bits."""
    correct: int


def fit(shape: CompactShape, max_rel: float, *, share: float = 0.0, domain: Domain = "full") -> CompactFit:
    """Fit the constants of a unit to its shape.

    Parameters
    ----------
    shape : CompactShape
        Word lengths and rows.
    max_rel : float
        Bound of the relative error of every normal result.
    share : float
        Share of correctly rounded results with which the first constant of the product that meets the bound will do.
    domain : {"full", "nonpositive"}
        Operands that count.

    Returns
    -------
    CompactFit
        The first that meets both, or else the one that comes nearest.
    """
    hidden = 2.0**shape.product_bits * np.log2(np.e) * (1 + np.arange(1024) / 1024) - shape.products
    middle = round(float(hidden.mean()))
    fits: list[CompactFit] = []
    for step in _CONSTANTS:
        found = _fit(shape, middle + step, max_rel, domain)
        fits.append(found)
        if not found.beyond and found.correctly_rounded >= share:
            return found
        if found.beyond > _HOPELESS:
            break
    return min(fits, key=lambda one: one.beyond + max(0.0, share - one.correctly_rounded) * _BEYOND)


def _operands(shape: CompactShape, constant: int, max_rel: float, domain: Domain) -> _Operands:
    exact, rounded = exact_exp(FP16), rounded_exp(FP16).astype(np.int64)
    codes = np.flatnonzero((rounded >= 1 << FP16.significand_bits) & (rounded < FP16.inf_code))
    if domain == "nonpositive":
        codes = codes[codes >= FP16.sign_mask]
    exact, rounded = exact[codes], rounded[codes]
    n, f = shape.reduce(codes, constant)
    # exp(0) must be 1, whatever the bound.
    zero = codes & (FP16.sign_mask - 1) == 0
    within = [np.abs(_value(rounded + step) / exact - 1) <= max_rel for step in (-1, 1)]
    target = rounded - (n + FP16.bias << FP16.significand_bits)
    rows = np.stack((f, target, within[0] & ~zero, within[1] & ~zero))
    kinds, number = np.unique(rows, axis=1, return_counts=True)
    return _Operands(kinds[0], kinds[1], kinds[2], kinds[3], number)


def _value(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return FP16.from_codes(codes).astype(np.float64)


def _fit(shape: CompactShape, constant: int, max_rel: float, domain: Domain) -> CompactFit:
    operands = _operands(shape, constant, max_rel, domain)
    candidates = [list(_candidates(shape, operands, segment)) for segment in range(shape.segments)]
    path, score = _path(candidates)
    correct = sum(one.correct for one in path)
    return CompactFit(
        shape=shape,
        product_constant=constant,
        slopes=tuple(one.choices for one in path),
        offsets=tuple(one.offset for one in path),
        beyond=-(-(correct - score) // _BEYOND),
        correctly_rounded=correct / int(operands.number.sum()),
    )


def _candidates(shape: CompactShape, operands: _Operands, segment: int) -> list[_Candidate]:
    """Return the best constants of ``segment``, best first."""
    here = shape.segment(operands.f) == segment
    f, target, below, above, number = (column[here] for column in operands)
    every = np.arange(segment << shape.position_bits, segment + 1 << shape.position_bits)
    rows, every_row = shape.row_values(f), shape.row_values(every)
    fixed, every_fixed = shape.linear(f) + shape.parabola_at(f), shape.linear(every) + shape.parabola_at(every)
    unit = shape.core_bits - FP16.significand_bits
    step = shape.core_bits - shape.offset_bits
    found: list[_Candidate] = []
    for choices in _slopes_near(shape, segment):
        total = fixed + sum(rows[row][choice] for row, choice in enumerate(choices))
        lowest = (target << unit) - total
        # Offsets from ``correct`` up to but not including ``over`` give the correctly rounded result, and so on.
        correct, over = _up(lowest, step), _up(lowest + (1 << unit), step)
        least, limit = _up(lowest - (below << unit), step), _up(lowest + (1 + above << unit), step)
        start = int(least.min())
        size = int(limit.max()) - start + 1
        right = _covered(correct - start, over - start, number, size)
        score = right - _BEYOND * (int(number.sum()) - _covered(least - start, limit - start, number, size))
        every_total = every_fixed + sum(every_row[row][choice] for row, choice in enumerate(choices))
        falls = np.flatnonzero(np.diff(every_total) < 0)
        # Whether a fall shows depends on the offset's lowest bits alone.
        period = max(1, 1 << unit - step)
        for phase in range(min(period, size) if falls.size else 0):
            cut = every_total + (phase + start << step) >> unit
            score[phase::period] -= 3 * _BEYOND * int(np.count_nonzero(cut[falls] > cut[falls + 1]))
        for index in np.argsort(-score, kind="stable")[:_KEPT].tolist():
            offset = start + index
            first, last = ((every_total[[0, -1]] + (offset << step)) >> unit).tolist()
            found.append(_Candidate(int(score[index]), choices, offset, first, last, int(right[index])))
    return sorted(found, key=lambda one: -one.score)[:_KEPT]


def _slopes_near(shape: CompactShape, segment: int) -> Iterator[tuple[int, ...]]:
    """Yield the choices that give the slopes next to that of ``2^f - 1 - f`` in the middle of ``segment``."""
    ideal = abs(np.log(2) * 2 ** ((segment + 0.5) / shape.segments) - 1)
    choices: dict[float, list[tuple[int, ...]]] = {}
    for one in product(*(range(len(shifts) + 1) for shifts, _ in shape.slope_rows)):
        choices.setdefault(shape.slope(one), []).append(one)
    for slope in sorted(choices, key=lambda slope: (abs(slope - ideal), slope))[:_NEAR]:
        yield from choices[slope]


def _up(value: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.int64]:
    """Return ``value / 2^bits`` rounded up."""
    return -(-value >> bits)


def _covered(
    start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], number: npt.NDArray[np.int64], size: int
) -> npt.NDArray[np.int64]:
    """Return for each of ``size`` points how many of the intervals [start, end) hold it."""
    change = np.zeros(size + 1, np.int64)
    np.add.at(change, start, number)
    np.add.at(change, end, -number)
    return np.cumsum(change)[:size]


def _path(candidates: list[list[_Candidate]]) -> tuple[list[_Candidate], int]:
    """Return one candidate a segment, and their score less what falls between them cost."""
    paths = [(one.score - _BROKEN * (one.first != 0), [one]) for one in candidates[0]]
    for segment, column in enumerate(candidates[1:], 2):
        extended: list[tuple[int, list[_Candidate]]] = []
        for one in column:
            # The last segment may reach, but not exceed, the 2 at which the next octave starts.
            excess = _BROKEN * (segment == len(candidates) and one.last > 1 << FP16.significand_bits)
            score, before = max(
                ((score - 100 * _BEYOND * (path[-1].last > one.first), path) for score, path in paths),
                key=lambda scored: scored[0],
            )
            extended.append((score + one.score - excess, [*before, one]))
        paths = extended
    score, path = max(paths, key=lambda scored: scored[0])
    return path, score
