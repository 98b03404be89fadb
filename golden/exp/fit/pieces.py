"""What the fits of piecewise units share: the operands that count, and the best chain of one choice a piece."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from golden.exp.oracle import exact_exp, rounded_exp

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from golden.exp.frame import ReducedSpec

__all__ = ["Choices", "Targets", "chain"]


class Targets:
    """Wanted results of a core, over every operand with a normal result; operands that want the same are one group.

    Parameters
    ----------
    spec : ReducedSpec
        Frame, formats and domain; its core is not used.
    """

    def __init__(self, spec: ReducedSpec) -> None:
        fmt = spec.fmt
        codes = np.arange(1 << fmt.bits)
        if spec.domain == "nonpositive":
            codes = codes[codes & fmt.sign_mask != 0]
        expected = rounded_exp(fmt)[codes].astype(np.int64)
        n, f, _ = spec.reduce_codes(codes)
        # Below, the rounding position moves: a few results that only just round up to a normal number.
        counted = (n > -fmt.bias) & (expected < fmt.inf_code) & (expected >= 1 << fmt.significand_bits)
        n, f, expected = n[counted], f[counted], expected[counted]
        scaled = np.ldexp(exact_exp(fmt)[codes[counted]], spec.core_bits - n)
        significand = expected - (n + fmt.bias - 1 << fmt.significand_bits)
        pairs, group = np.unique(np.stack((f, significand)), axis=1, return_inverse=True)
        group = group.reshape(-1)
        self.operands = int(f.size)
        self.f: npt.NDArray[np.int64] = pairs[0]
        self.significand: npt.NDArray[np.int64] = pairs[1]
        self.weight = np.bincount(group)
        self.low = np.full(self.f.size, np.inf)
        self.high = np.zeros(self.f.size)
        np.minimum.at(self.low, group, scaled)
        np.maximum.at(self.high, group, scaled)
        self._spec = spec

    def judge(
        self, members: slice, h: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Judge results of the core for some groups.

        Parameters
        ----------
        members : slice
            The groups; they are in the order of f.
        h : ndarray of int64, shape (choices, groups)
            Results in units of ``2^-core_bits``.

        Returns
        -------
        misrounded : ndarray of int64, shape (choices,)
            Operands whose rounded result is not the right one.
        error : ndarray of float64, shape (choices,)
            Largest relative error of the rounded result.
        core_error : ndarray of float64, shape (choices,)
            The same before rounding.
        """
        fmt = self._spec.fmt
        base = fmt.bias - 1 << fmt.significand_bits
        rounded = self._spec.round_scaled(h, np.zeros_like(h)) - base
        wrong = (rounded != self.significand[members]) @ self.weight[members]
        error, core_error = (
            np.maximum(y / self.low[members] - 1, 1 - y / self.high[members]).max(axis=1)
            for y in (rounded << (self._spec.core_bits - fmt.significand_bits), h)
        )
        return wrong, error, core_error

    def members(self, start: int, end: int) -> slice:
        """Return the groups with ``start <= f < end``."""
        return slice(*np.searchsorted(self.f, (start, end)).tolist())


@dataclass(frozen=True)
class Choices:
    """What a piece can be: one row of ``values`` each, with its first and last result and its cost."""

    values: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    misrounded: npt.NDArray[np.int64]
    error: npt.NDArray[np.float64]
    core_error: npt.NDArray[np.float64]

    def only(self, keep: npt.NDArray[np.bool_]) -> Choices:
        """Return the choices that are kept."""
        return Choices(*(getattr(self, field.name)[keep] for field in fields(self)))


def chain(pieces: Sequence[Choices]) -> tuple[list[npt.NDArray[np.int64]], float]:
    """Choose for every piece so that none starts below the end of the one before.

    Two passes over the pieces, exact among the choices given: the first finds the smallest worst error that any chain
    has, the second the fewest misrounded operands of the chains that keep it.

    Parameters
    ----------
    pieces : sequence of Choices
        In ascending order.

    Returns
    -------
    values : list of ndarray
        The row of each piece.
    error : float
        The worst error.

    Raises
    ------
    ValueError
        If no chain exists.
    """
    error, _ = _walk([(piece, piece.error) for piece in pieces], np.maximum)
    kept = [piece.only(piece.error <= error) for piece in pieces]
    # Errors are far below 1, so that they only break ties; many choices differ before rounding alone.
    _, rows = _walk([(piece, piece.misrounded + piece.core_error) for piece in kept], np.add)
    return [piece.values[row] for piece, row in zip(kept, rows, strict=True)], error


def _walk(pieces: Sequence[tuple[Choices, npt.NDArray[np.float64]]], combine: np.ufunc) -> tuple[float, list[int]]:
    """Return the least combined cost of a chain, and its rows."""
    came: list[npt.NDArray[np.int64]] = []
    total = np.zeros(0)
    for index, (piece, cost) in enumerate(pieces):
        if index == 0:
            total, back = cost.astype(np.float64), np.zeros(cost.size, dtype=np.int64)
        else:
            before = pieces[index - 1][0]
            order = np.argsort(before.last, kind="stable")
            # Of those that end at or below each place in this order, the cheapest.
            cheapest = np.minimum.accumulate(total[order])
            holder = np.maximum.accumulate(np.where(total[order] == cheapest, np.arange(order.size), 0))
            place = np.searchsorted(before.last[order], piece.first, side="right") - 1
            reachable = place >= 0
            place = np.maximum(place, 0)
            total = np.where(reachable, combine(cheapest[place], cost), np.inf)
            back = order[holder[place]]
        came.append(back)
    if not total.size or not np.isfinite(total.min()):
        raise ValueError("pieces must have a choice each that starts no lower than the one before ends, they have none")
    row = int(total.argmin())
    rows = [row]
    for back in came[:0:-1]:
        rows.append(int(back[rows[-1]]))
    return float(total.min()), rows[::-1]
