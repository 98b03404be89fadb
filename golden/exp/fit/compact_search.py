"""Search for the smallest shape of a compact unit that meets a bound: rows, word lengths and tables jointly.

From a shape with bits to spare, every single step that should make it smaller is tried, the cheapest outcome first:
one bit less of a row, a word length or a table, one more choice for a row in place of a row of its own. The constants
are fitted anew to each, and the first that still meets the bound is where the search goes on, until no step is left.
Area is what :mod:`golden.exp.fit.compact_estimate` counts. Nothing is random: a second run takes the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from golden.exp.compact_shape import CompactShape
from golden.exp.fit.compact import CompactFit, fit
from golden.exp.fit.compact_estimate import estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from golden.exp.compact_shape import ProductRow, SlopeRow

__all__ = ["STARTS", "Target", "search", "steps"]

_MOST_SHIFTS = 3
"""A row that chooses from more costs more than two rows."""
_LEAST_GAIN = 0.4
"""Gate equivalents that a step must save."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a search starts and what it must keep.

    Parameters
    ----------
    shape : CompactShape
        A shape with bits to spare, which meets both bounds or nearly does.
    max_rel : float
        Bound of the relative error of every normal result.
    share : float
        Least share of correctly rounded results.
    """

    shape: CompactShape
    max_rel: float
    share: float


def _rows(kept: int, *shifts: int) -> tuple[ProductRow, ...]:
    """Return product rows; a negative shift inverts."""
    return tuple((abs(shift), -1 if shift < 0 else 1, kept) for shift in shifts)


def _slopes(kept: int, *shifts: int | tuple[int, ...]) -> tuple[SlopeRow, ...]:
    return tuple((shift if isinstance(shift, tuple) else (shift,), kept) for shift in shifts)


# log2(e) = 1.0111 0001 0101 0100 0111.. = 1 + 1/2 - 1/16 + 2^-8 + 2^-10 + 2^-12 + 2^-14 + 2^-16 ..
STARTS = {
    "compact16-0.1": Target(
        shape=CompactShape(
            frac_bits=11,
            smallest_field=4,
            product_bits=15,
            product_rows=_rows(15, 0, 1, -4, 8, 10, 12, 13),
            segment_bits=5,
            core_bits=12,
            slope_rows=_slopes(12, (2, 3), (3, 4), 5),
            offset_bits=12,
        ),
        max_rel=0.000999,
        share=0.0,
    ),
    "compact16-95": Target(
        shape=CompactShape(
            frac_bits=13,
            smallest_field=3,
            product_bits=17,
            product_rows=_rows(17, 0, 1, -4, 8, 10, 12, 14, 16),
            segment_bits=5,
            core_bits=16,
            slope_rows=_slopes(16, 2, 3, 4, 5, 6, 7, 8),
            offset_bits=16,
            parabola_index=(3, 1),
            parabola_bits=16,
        ),
        max_rel=0.00054,
        share=0.95,
    ),
    "compact16-99": Target(
        shape=CompactShape(
            frac_bits=15,
            smallest_field=3,
            product_bits=18,
            product_rows=_rows(18, 0, 1, -4, 8, 10, 12, 14, 16),
            segment_bits=5,
            core_bits=17,
            slope_rows=_slopes(17, 2, 3, 4, 5, 6, 7, 8),
            offset_bits=17,
            parabola_index=(4, 2),
            parabola_bits=17,
        ),
        max_rel=0.0008,
        share=0.99,
    ),
}
"""Targets of the units that ship, by name."""


def steps(shape: CompactShape) -> Iterator[CompactShape]:
    """Yield every shape that is one step away, smaller or not; those that can't be are left out."""
    for changes in _changes(shape):
        try:
            yield replace(shape, **changes)
        except ValueError:
            continue


def _changes(shape: CompactShape) -> Iterator[dict[str, object]]:
    product = shape.product_rows
    for index, (shift, sign, kept) in enumerate(product):
        for change in (-1, 1):
            row = ((shift, sign, kept + change),) if kept + change > shift else ()
            yield {"product_rows": (*product[:index], *row, *product[index + 1 :])}
    # A bit more of one row for two of another.
    for index, (shift, sign, kept) in enumerate(product):
        for other, (other_shift, other_sign, other_kept) in enumerate(product):
            rows = list(product)
            rows[index] = (shift, sign, kept + 1)
            if index != other and other_kept - 2 > other_shift:
                rows[other] = (other_shift, other_sign, other_kept - 2)
                yield {"product_rows": tuple(rows)}
    fewer = shape.product_bits - 1
    yield {"product_bits": fewer, "product_rows": tuple((s, sign, min(kept, fewer)) for s, sign, kept in product)}
    for rows in _slope_changes(shape.slope_rows):
        yield {"slope_rows": rows}
    fewer = shape.core_bits - 1
    yield {
        "core_bits": fewer,
        "offset_bits": min(shape.offset_bits, fewer),
        "parabola_bits": min(shape.parabola_bits, fewer),
        "slope_rows": tuple((shifts, min(kept, fewer)) for shifts, kept in shape.slope_rows),
    }
    yield {"offset_bits": shape.offset_bits - 1}
    yield {"frac_bits": shape.frac_bits - 1}
    position, leading = shape.parabola_index
    if position:
        yield {"parabola_index": (position - 1, leading if position > 1 else 0)}
        yield {"parabola_index": (position, leading - 1)}
        yield {"parabola_index": (position, leading + 1), "parabola_bits": shape.parabola_bits - 1}
        yield {"parabola_bits": shape.parabola_bits - 1}


def _slope_changes(rows: tuple[SlopeRow, ...]) -> Iterator[tuple[SlopeRow, ...]]:
    for index, (shifts, kept) in enumerate(rows):
        before, after = rows[:index], rows[index + 1 :]
        yield (*before, (shifts, kept - 1), *after)
        if len(shifts) == 1:
            yield (*before, *after)
        for number, shift in enumerate(shifts):
            others = shifts[:number] + shifts[number + 1 :]
            if others:
                yield (*before, (others, kept), *after)
            for change in (-1, 1):
                if shift + change > 1 and shift + change not in others:
                    yield (*before, (tuple(sorted((*others, shift + change))), kept), *after)
        if after:
            following, also_kept = after[0]
            union = tuple(sorted({*shifts, *following}))
            if len(union) <= _MOST_SHIFTS:
                yield (*before, (union, max(kept, also_kept)), *after[1:])
            for shift in following:
                if shift not in shifts and len(shifts) < _MOST_SHIFTS:
                    yield (*before, (tuple(sorted((*shifts, shift))), kept), *after)


def search(
    target: Target,
    *,
    fits: int = 1000,
    fit_shape: Callable[[CompactShape], CompactFit] | None = None,
    report: Callable[[CompactFit, float], None] = lambda found, area: None,
) -> CompactFit:
    """Return the smallest shape found that meets ``target``, with its constants.

    Parameters
    ----------
    target : Target
        Start and bounds.
    fits : int
        Gives up after fitting so many shapes; each takes about a second.
    fit_shape : callable, optional
        Fits the constants of a shape to the target; by default :func:`golden.exp.fit.compact.fit` does.
    report : callable
        Is told of every shape that the search goes on from, with its estimated area.

    Raises
    ------
    ValueError
        If the start does not meet the bounds.
    """

    def fit_here(shape: CompactShape) -> CompactFit:
        return fit(shape, target.max_rel, share=target.share)

    fit_shape = fit_shape or fit_here
    found = fit_shape(target.shape)
    if found.beyond or found.correctly_rounded < target.share:
        raise ValueError(
            f"the start must meet the bounds, {found.beyond} operands are beyond and {found.correctly_rounded:.4f} of "
            "the results correctly rounded"
        )
    area = estimate(found.shape, found)
    report(found, area)
    seen = {found.shape}
    while True:
        now = estimate(found.shape)
        sizes = {one: estimate(one) for one in steps(found.shape) if one not in seen}
        for one in sorted((one for one in sizes if sizes[one] < now - _LEAST_GAIN), key=sizes.__getitem__):
            if not fits:
                return found
            fits -= 1
            seen.add(one)
            trial = fit_shape(one)
            trial_area = estimate(one, trial)
            if not trial.beyond and trial.correctly_rounded >= target.share and trial_area < area - _LEAST_GAIN:
                found, area = trial, trial_area
                report(found, area)
                break
        else:
            return found
