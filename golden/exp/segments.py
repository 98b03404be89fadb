"""Exponential by a line or a parabola for each part of [0, 1), its coefficients in tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.exp.frame import ReducedSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SegmentSpec", "interpolating", "word_lengths"]


@dataclass(frozen=True, kw_only=True)
class SegmentSpec(ReducedSpec):
    """Exponential by range reduction and a piecewise linear or quadratic ``2^f``.

    Parameters
    ----------
    tables : tuple of tuple of int
        Two tables (linear) or three (quadratic), each with one entry a segment: ``tables[k][s]`` is the coefficient
        of the k-th power in segment s, in units of ``2^-table_bits[k]`` and not negative.
    table_bits : tuple of int
        Fraction bits of each table; the first is that of the result.
    operand_bits : tuple of int
        Leading bits of the place within the segment that enter each product; the first is of the last product.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range, or if the result would fall somewhere, leave [1, 2) or
        round ``2^0`` to anything but 1 (see Notes).

    Notes
    -----
    With ``A = frac_bits``, K segments, ``L = A - log2(K)`` and ``B = operand_bits``, in the frame of
    :class:`golden.exp.frame.ReducedSpec`; every product is truncated to the word length of what it is added to::

        s, u = f >> L, f mod 2^L
        h    = tables[degree][s]
        h    = (h * (u >> (L - B[k])) * 2^-(A - L + B[k]) in units of 2^-table_bits[k]) + tables[k][s]   k down to 0

    The result is monotone over all codes: with no negative coefficient h does not fall within a segment, and no
    segment starts below the end of the one before, which is checked here with every truncation in place.
    """

    tables: tuple[tuple[int, ...], ...]
    table_bits: tuple[int, ...]
    operand_bits: tuple[int, ...]

    family: ClassVar[str] = "segments"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("tables", "table_bits", "operand_bits"):
            if not isinstance(getattr(self, name), tuple):
                raise TypeError(f"{name} must be a tuple, not {getattr(self, name)!r}")
        if len(self.tables) not in (2, 3):
            raise ValueError(f"tables must number 2 (linear) or 3 (quadratic), not {len(self.tables)}")
        if len(self.table_bits) != len(self.tables):
            raise ValueError(f"table_bits must number {len(self.tables)}, one a table, not {len(self.table_bits)}")
        if len(self.operand_bits) != self.degree:
            raise ValueError(f"operand_bits must number {self.degree}, one a product, not {len(self.operand_bits)}")
        self._check_tables()
        self._check_products()
        self._check_values()

    def _check_tables(self) -> None:
        segments = len(self.tables[0])
        if not 2 <= segments <= 64 or segments & (segments - 1):
            raise ValueError(
                f"segments must be a power of two from 2 to 64, so that leading bits of f choose one, not {segments}"
            )
        for k, (table, bits) in enumerate(zip(self.tables, self.table_bits, strict=True)):
            require_int(f"table_bits[{k}]", bits, 1 if k else self.fmt.significand_bits + 1, 28)
            if len(table) != segments:
                raise ValueError(f"tables[{k}] must have {segments} entries, one a segment, not {len(table)}")
            for s, entry in enumerate(table):
                require_int(f"tables[{k}][{s}]", entry, 0, (2 << bits) - 1)

    def _check_products(self) -> None:
        for k, bits in enumerate(self.operand_bits):
            require_int(f"operand_bits[{k}]", bits, 1, self.place_bits)
            if self.product_shift(k) < 0:
                raise ValueError(
                    f"table_bits[{k}] must be at most {self.table_bits[k] + self.product_shift(k)}, the fraction bits "
                    f"of the product that is added, not {self.table_bits[k]}"
                )

    def _check_values(self) -> None:
        one = 1 << self.core_bits
        limit = one + (one >> (self.fmt.significand_bits + 1)) - 1
        if not one <= self.tables[0][0] <= limit:
            raise ValueError(f"tables[0][0] must be from {one} to {limit} so that exp(0) = 1, not {self.tables[0][0]}")
        ends = self.limits[0]
        for s in range(1, self.segments):
            if self.tables[0][s] < ends[s - 1]:
                raise ValueError(
                    f"tables[0][{s}] must be at least {ends[s - 1]}, where the segment before ends, so that the result "
                    f"is monotone, not {self.tables[0][s]}"
                )
        if ends[-1] >= 2 * one:
            raise ValueError(f"the last segment must stay below {2 * one}, it reaches {ends[-1]}")

    @property
    def degree(self) -> int:
        """1 of lines, 2 of parabolas."""
        return len(self.tables) - 1

    @property
    def segments(self) -> int:
        """Parts of [0, 1)."""
        return len(self.tables[0])

    @property
    def place_bits(self) -> int:
        """Bits of f that say where in its segment it lies."""
        return self.frac_bits - self.segments.bit_length() + 1

    def product_shift(self, k: int) -> int:
        """Return the bits that the product added to ``tables[k]`` loses at its low end."""
        return self.table_bits[k + 1] + self.frac_bits - self.place_bits + self.operand_bits[k] - self.table_bits[k]

    @property
    def core_bits(self) -> int:
        """Fraction bits of the constant table and of the result."""
        return self.table_bits[0]

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Segments, degree and word lengths."""
        bits = {f"c{k}_bits": bits for k, bits in enumerate(self.table_bits)}
        return {"segments": self.segments, "degree": self.degree, "frac_bits": self.frac_bits, **bits}

    @property
    def steps(self) -> int:
        """Steps of the datapath: log2(e), shift, tables, one product a degree, scaling, rounding."""
        return self.degree + 5

    @property
    def limits(self) -> tuple[tuple[int, ...], ...]:
        """Largest value of every sum in every segment, index k after adding ``tables[k]``: reached at its end."""
        last = ((np.arange(self.segments) + 1) << self.place_bits) - 1
        return tuple(tuple(sums.tolist()) for sums in self._sums(last))

    def _sums(self, f: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """Return every sum, index k after adding ``tables[k]``."""
        s = f >> self.place_bits
        u = f & ((1 << self.place_bits) - 1)
        sums = [np.array(self.tables[-1], dtype=np.int64)[s]]
        for k in reversed(range(self.degree)):
            product = sums[-1] * (u >> (self.place_bits - self.operand_bits[k]))
            sums.append((product >> self.product_shift(k)) + np.array(self.tables[k], dtype=np.int64)[s])
        return sums[::-1]

    def core(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the line or parabola of each f; see :meth:`ReducedSpec.core`."""
        return self._sums(f)[0]

    def core_float(self, f: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the same lines or parabolas with exact products."""
        s = (f * self.segments).astype(np.int64)
        u = f - s / self.segments
        h = np.zeros_like(f)
        for table, bits in zip(reversed(self.tables), reversed(self.table_bits), strict=True):
            h = h * u + np.array(table)[s] * 2.0**-bits
        return h


def word_lengths(
    segments: int, degree: int, core_bits: int, place_bits: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return ``table_bits`` and ``operand_bits`` with which two bits more would not show in the result.

    Parameters
    ----------
    segments, degree : int
        As in :class:`SegmentSpec`.
    core_bits : int
        Fraction bits of the result.
    place_bits : int
        Bits of the place within a segment.
    """
    choice = max(segments, 1).bit_length() - 1
    # A last place of tables[k] is worth 2^-(k * choice) of one in the result at the end of the segment.
    table_bits = (core_bits, *(max(1, core_bits - k * choice + 2) for k in range(1, degree + 1)))
    operand_bits = (place_bits, max(1, min(place_bits, core_bits - 2 * choice + 2)))[:degree]
    return table_bits, operand_bits


def interpolating(
    *,
    name: str,
    segments: int,
    degree: int,
    frac_bits: int,
    core_bits: int | None = None,
    **rest: Any,
) -> SegmentSpec:
    """Return the unit that meets ``2^f`` at the ends of its segments (and middles), every number rounded down.

    It is the naive choice of coefficients, valid at all word lengths, and so the start of
    :func:`golden.exp.fit.segments.fit` and what a fit is to be compared with.

    Parameters
    ----------
    name : str
        Name of the unit.
    segments, degree : int
        2 to 64, a power of two; 1 or 2.
    frac_bits : int
        Fraction bits of t.
    core_bits : int, optional
        Fraction bits of the result; by default ``frac_bits``. The others follow by :func:`word_lengths`.
    **rest
        Other fields of :class:`SegmentSpec`.

    Raises
    ------
    ValueError
        If ``degree`` is neither 1 nor 2, or :class:`SegmentSpec` refuses the word lengths.
    """
    if degree not in (1, 2):
        raise ValueError(f"degree must be 1 (linear) or 2 (quadratic), not {degree!r}")
    table_bits, operand_bits = word_lengths(
        segments, degree, core_bits or frac_bits, frac_bits - segments.bit_length() + 1
    )
    start = 2.0 ** (np.arange(segments) / segments)
    step = 2.0 ** (1 / segments) - 1
    # With w the place in units of a segment, 2^(f) / start is 1 + step * w, or the parabola through w = 0, 1/2, 1.
    curve = 0.0 if degree == 1 else 2 * (step - 2 * (2.0 ** (0.5 / segments) - 1))
    real = (start, start * (step - curve) * segments, start * curve * segments**2)
    tables = tuple(
        tuple(np.floor(values * 2.0**bits).astype(np.int64).tolist())
        for values, bits in zip(real, table_bits, strict=False)
    )
    return SegmentSpec(
        name=name, frac_bits=frac_bits, tables=tables, table_bits=table_bits, operand_bits=operand_bits, **rest
    )
