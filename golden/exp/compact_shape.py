"""Word lengths and rows of a compact unit: everything about it but the constants that are fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.formats import FP16

__all__ = ["CompactShape", "ProductRow", "SlopeRow"]

ProductRow = tuple[int, int, int]
"""A row of the product: shift to the right, sign, and the fraction bits that are kept of it."""

SlopeRow = tuple[tuple[int, ...], int]
"""A row of the interpolation: the shifts to the right to choose from, and the fraction bits that are kept of it."""


def _cut(value: npt.NDArray[np.int64], bits: int, kept: int, out_bits: int) -> npt.NDArray[np.int64]:
    """Return ``value``, of ``bits`` fraction bits, with at most ``kept`` of them, in units of ``2^-out_bits``."""
    dropped = max(0, bits - kept)
    return value >> dropped << (out_bits - bits + dropped)


@dataclass(frozen=True, kw_only=True)
class CompactShape:
    """Word lengths and rows of a :class:`golden.exp.compact.CompactSpec`, which says what becomes of them.

    Parameters
    ----------
    frac_bits : int
        Fraction bits kept of ``t = x * log2(e)``.
    smallest_field : int
        Exponent field below which an operand counts as zero.
    product_bits : int
        Fraction bits of the product of the significand and log2(e).
    product_rows : tuple of (shift, sign, kept)
        Its rows: the significand's fraction shifted right, inverted if sign is -1, cut to ``kept`` fraction bits.
    segment_bits : int
        Segments, log2, of the interpolation of 2^f over f in [0, 1).
    core_bits : int
        Fraction bits of the interpolation's sum.
    slope_rows : tuple of (shifts, kept)
        Its rows: each adds the position within the segment shifted right by one of ``shifts``, or nothing, cut to
        ``kept`` fraction bits.
    offset_bits : int
        Fraction bits of the offset of each segment.
    parabola_index : (int, int)
        Leading bits of the position within the segment, and leading bits of f, that choose from the table of what
        linear interpolation lacks. (0, 0): there is none.
    parabola_bits : int
        Fraction bits of that table.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range.
    """

    frac_bits: int
    smallest_field: int
    product_bits: int
    product_rows: tuple[ProductRow, ...]
    segment_bits: int
    core_bits: int
    slope_rows: tuple[SlopeRow, ...]
    offset_bits: int
    parabola_index: tuple[int, int] = (0, 0)
    parabola_bits: int = 0

    def __post_init__(self) -> None:
        significand_bits = FP16.significand_bits
        require_int("segment_bits", self.segment_bits, 2, 7)
        require_int("frac_bits", self.frac_bits, significand_bits + 1, 18)
        require_int("smallest_field", self.smallest_field, 3, 4)
        require_int("product_bits", self.product_bits, significand_bits + 1, 20)
        require_int("core_bits", self.core_bits, significand_bits + 1, 20)
        require_int("offset_bits", self.offset_bits, significand_bits, self.core_bits)
        for index, (shift, sign, kept) in enumerate(self.product_rows):
            require_int(f"product_rows[{index}] kept bits", kept, 1, self.product_bits)
            # The topmost bit of the row must have a column, here and below.
            require_int(f"product_rows[{index}] shift", shift, 0, kept - 1)
            if sign not in (-1, 1):
                raise ValueError(f"product_rows[{index}] sign must be -1 or 1, not {sign!r}")
        for index, (shifts, kept) in enumerate(self.slope_rows):
            require_int(f"slope_rows[{index}] kept bits", kept, 1, self.core_bits)
            for shift in shifts:
                require_int(f"slope_rows[{index}] shift", shift, 1, kept - self.segment_bits - 1)
        position, leading = self.parabola_index
        require_int("parabola_index[0]", position, 0, self.position_bits)
        require_int("parabola_index[1]", leading, 0, self.segment_bits if position else 0)
        require_int("parabola_bits", self.parabola_bits, significand_bits if position else 0, self.core_bits)

    @property
    def segments(self) -> int:
        """Segments of the interpolation."""
        return 1 << self.segment_bits

    @property
    def position_bits(self) -> int:
        """Bits of the position within a segment."""
        return self.frac_bits - self.segment_bits

    @property
    def largest_field(self) -> int:
        """Exponent field above which an operand counts as infinite, 18 or 19: a shift by 15 places at most."""
        return self.smallest_field + 15

    @cached_property
    def products(self) -> npt.NDArray[np.int64]:
        """Sum of the product's rows for every fraction of the significand, in units of ``2^-product_bits``."""
        bits = FP16.significand_bits
        fraction = np.arange(1 << bits, dtype=np.int64)
        total = np.zeros_like(fraction)
        for shift, sign, kept in self.product_rows:
            total += _cut(fraction if sign > 0 else fraction[::-1], bits + shift, kept, self.product_bits)
        return total

    def reduce(
        self, codes: npt.NDArray[np.int64], constant: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Split ``t = x * log2(e)`` of every code, taken for finite, into floor and fraction.

        Parameters
        ----------
        codes : ndarray of int64
            Codes of fp16.
        constant : int
            Constant of the product, in units of ``2^-product_bits``.

        Returns
        -------
        n, f : ndarray of int64
            Floor, and fraction in units of ``2^-frac_bits``.
        """
        field = codes >> FP16.significand_bits & FP16.exponent_mask
        product = self.products[codes & ((1 << FP16.significand_bits) - 1)] + constant
        shift = field - FP16.bias + self.frac_bits - self.product_bits
        t = np.where(shift >= 0, product << np.maximum(shift, 0), product >> np.clip(-shift, 0, 63))
        t = np.where(field < self.smallest_field, 0, t)
        t = np.where(codes & FP16.sign_mask, ~t, t)
        return t >> self.frac_bits, t & ((1 << self.frac_bits) - 1)

    def segment(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the segment of each f."""
        return f >> self.position_bits

    def linear(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return f itself in units of ``2^-core_bits``, cut to them."""
        return _cut(f, self.frac_bits, self.core_bits, self.core_bits)

    def row_values(self, f: npt.NDArray[np.int64]) -> list[list[npt.NDArray[np.int64]]]:
        """Return what each slope row adds at each f, by row and choice, in units of ``2^-core_bits``.

        Choice 0 adds nothing, choice k the position shifted by the row's k-th shift. The position counts from the end
        of its segment in the lower half of [0, 1), where 2^f is less steep than 1 + f.
        """
        g = np.where(f >> self.frac_bits - 1 == 0, ~f, f) & ((1 << self.position_bits) - 1)
        return [
            [np.zeros_like(g), *(_cut(g, self.frac_bits + shift, kept, self.core_bits) for shift in shifts)]
            for shifts, kept in self.slope_rows
        ]

    def slope(self, choices: tuple[int, ...]) -> float:
        """Return the sum of the shifts that ``choices`` takes from the rows, as a factor."""
        return sum(2.0 ** -shifts[k - 1] for (shifts, _), k in zip(self.slope_rows, choices, strict=True) if k)

    @property
    def _squares(self) -> npt.NDArray[np.float64]:
        """Mean of ``v^2`` over each cell of the position within a segment, v from -1 to 1."""
        cells = 1 << self.parabola_index[0]
        v = (2 * np.arange(cells) + 1) / cells - 1
        return v**2 + 1 / (3 * cells**2)

    def _depth(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return how far 2^f lies below its chord in the middle of a segment at f, ``1 - v^2`` of it elsewhere."""
        return np.log(2) ** 2 / 8 / self.segments**2 * 2**f

    @cached_property
    def parabola(self) -> tuple[int, ...]:
        """The table of what linear interpolation lacks, in units of ``2^-parabola_bits``; empty if there is none.

        An entry is ``v^2`` over its cell times the depth at the middle of its leading bits, less the least of all
        entries; the offsets hold what is left.
        """
        position, leading = self.parabola_index
        if not position:
            return ()
        middles = (np.arange(1 << leading) + 0.5) / (1 << leading)
        entries = self._depth(middles)[:, None] * self._squares
        return tuple(np.rint((entries - entries.min()).ravel() * 2**self.parabola_bits).astype(int).tolist())

    def interpolate(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return 2^f for f in [0, 1) by chord and parabola on real numbers: what the constants stand for."""
        start = np.floor(f * self.segments)
        within = f * self.segments - start
        ends = 2 ** (start / self.segments), 2 ** ((start + 1) / self.segments)
        chord = ends[0] + (ends[1] - ends[0]) * within
        depth = self._depth((start + 0.5) / self.segments)
        position, leading = self.parabola_index
        if not position:
            # Half of it everywhere makes the largest error the least.
            return chord - depth / 2
        middle = (np.floor(f * (1 << leading)) + 0.5) / (1 << leading)
        squares = self._squares[np.floor(within * (1 << position)).astype(int)]
        return chord - depth * (2 / 3) + self._depth(middle) * (squares - 1 / 3)

    def parabola_at(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the entry of :attr:`parabola` for each f, in units of ``2^-core_bits``."""
        position, leading = self.parabola_index
        if not position:
            return np.zeros_like(f)
        cell = f >> self.position_bits - position & ((1 << position) - 1)
        cell |= f >> self.frac_bits - leading << position
        return np.array(self.parabola, dtype=np.int64)[cell] << self.core_bits - self.parabola_bits
