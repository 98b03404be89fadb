"""Tables for a :class:`golden.exp.segments.SegmentSpec`, fitted with its word lengths in place.

Three steps, all deterministic:

1. per segment, the real minimax line or parabola in relative error: the bound that no tables can beat;
2. per segment, integers around it, each judged on the operands themselves with every truncation in place; to every
   choice of slope and curve the constants that centre it;
3. one choice a segment, so that the result is monotone: exact among all choices (:func:`golden.exp.fit.pieces.chain`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from golden.exp.fit.pieces import Choices, Targets, chain
from golden.exp.fit.polynomial import minimax

if TYPE_CHECKING:
    import numpy.typing as npt

    from golden.exp.segments import SegmentSpec

__all__ = ["SegmentFit", "fit"]

_GRID = 256
_CONSTANTS = 6
_SLOPES = 24
_CURVES = 2


@dataclass(frozen=True, kw_only=True)
class SegmentFit:
    """Result of :func:`fit`.

    Parameters
    ----------
    tables : tuple of tuple of int
        As in :class:`golden.exp.segments.SegmentSpec`.
    minimax_error : float
        Largest relative error of the best lines or parabolas with real coefficients and exact arithmetic.
    error : float
        Largest relative error of the rounded results: the smallest of any monotone tables that were looked at.
    misrounded : int
        Operands whose result is not the correctly rounded one.
    operands : int
        Operands counted: those with a normal result.
    """

    tables: tuple[tuple[int, ...], ...]
    minimax_error: float
    error: float
    misrounded: int
    operands: int


def fit(spec: SegmentSpec) -> SegmentFit:
    """Fit the tables of ``spec`` to its segments, word lengths, format and domain.

    Parameters
    ----------
    spec : SegmentSpec
        Everything but the entries of its tables is used.

    Returns
    -------
    SegmentFit
    """
    targets = Targets(spec)
    x = (1 - np.cos(np.pi * np.arange(_GRID + 1) / _GRID)) / 2 / spec.segments
    # Within a segment 2^f is 2^(s / segments) times the same curve.
    real, least = minimax(2.0**x, 2.0**-x, x, spec.degree)
    pieces = [_choices(spec, targets, real, least, s) for s in range(spec.segments)]
    rows, error = chain(pieces)
    tables = tuple(tuple(int(row[k]) for row in rows) for k in range(spec.degree + 1))
    fitted = spec.replace(tables=tables)
    misrounded, _, _ = targets.judge(slice(None), fitted.core(targets.f)[None])
    return SegmentFit(
        tables=tables, minimax_error=least, error=error, misrounded=int(misrounded[0]), operands=targets.operands
    )


def _choices(spec: SegmentSpec, targets: Targets, real: npt.NDArray[np.float64], error: float, s: int) -> Choices:
    """Return the choices of segment ``s``, around the coefficients ``real`` of segment 0."""
    one, scale = 1 << spec.core_bits, 2.0 ** (s / spec.segments)
    members = targets.members(s << spec.place_bits, s + 1 << spec.place_bits)
    ends = np.array([0, (1 << spec.place_bits) - 1])
    u = np.concatenate((targets.f[members] & ends[1], ends))
    middle = (targets.low[members] + targets.high[members]) / 2
    # Coarse segments that must meet 1 or 2 turn by more than a few steps of the table.
    turn = 4 * error * spec.segments * scale * 2.0 ** spec.table_bits[1]
    reach = max(4.0, turn) if s in (0, spec.segments - 1) else max(4.0, turn / 4)
    offsets = np.unique(np.rint(np.linspace(-reach, reach, _SLOPES)).astype(np.int64))
    curves = range(-_CURVES, _CURVES + 1) if spec.degree == 2 else (0,)
    values: list[npt.NDArray[np.int64]] = []
    sums: list[npt.NDArray[np.int64]] = []
    for curve, offset in product(curves, offsets.tolist()):
        slope = round(real[1] * scale * 2.0 ** spec.table_bits[1]) + offset
        bent = 0
        if spec.degree == 2:
            bent = round(real[2] * scale * 2.0 ** spec.table_bits[2]) + curve
            # A steeper curve takes its mean slope from the line.
            slope -= round(curve * 2.0 ** (spec.table_bits[1] - spec.table_bits[2]) / spec.segments)
        if slope < 0 or bent < 0:
            continue
        rest = _rest(spec, u, slope, bent)
        gap = middle - rest[:-2]
        centre = round((float(gap.max()) + float(gap.min())) / 2) if gap.size else round(scale * one)
        constants = centre + np.arange(-_CONSTANTS, _CONSTANTS + 1)
        if s == 0:
            constants = np.unique(np.clip(constants, one, one + (one >> (spec.fmt.significand_bits + 1)) - 1))
        values.append(np.stack([constants, *(np.full_like(constants, c) for c in (slope, bent)[: spec.degree])], 1))
        sums.append(constants[:, None] + rest)
    value, h = np.concatenate(values), np.concatenate(sums)
    choices = Choices(value, h[:, -2], h[:, -1], *targets.judge(members, h[:, :-2]))
    return choices.only((choices.first >= one) & (choices.last < 2 * one))


def _rest(spec: SegmentSpec, u: npt.NDArray[np.int64], slope: int, curve: int) -> npt.NDArray[np.int64]:
    """Return what the unit adds to the constant."""
    h = np.full_like(u, slope)
    if spec.degree == 2:
        h = (curve * (u >> (spec.place_bits - spec.operand_bits[1])) >> spec.product_shift(1)) + slope
    return h * (u >> (spec.place_bits - spec.operand_bits[0])) >> spec.product_shift(0)
