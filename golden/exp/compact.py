"""Small exponential units for fp16: product, interpolation, exponent and rounding in two short column heaps.

There is no multiplier and no rounding adder; :mod:`golden.exp.compact_units` says what made them small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from golden.checks import require_int
from golden.exp.compact_shape import CompactShape
from golden.exp.spec import ExpSpec
from golden.formats import FP16, FloatFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CompactSpec"]


@dataclass(frozen=True, kw_only=True)
class CompactSpec(ExpSpec):
    """Exponential of one fp16 code by two column heaps.

    Parameters
    ----------
    shape : CompactShape
        Word lengths and rows.
    product_constant : int
        Added to the rows of the product, in units of ``2^-product_bits``: log2(e) for the hidden bit, what inversion
        left over, and half of what the cut columns may hold.
    slopes : tuple of tuple of int
        For each segment the choice of each slope row: 0 for nothing, k for its k-th shift.
    offsets : tuple of int
        For each segment what is added to ``1 + f``, in units of ``2^-offset_bits``; half a unit in the last place of
        the result is in it.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or lies out of range, or if the unit is not exact at 0 or not monotone.

    Notes
    -----
    With ``m`` the fraction of the significand in units of 1 and e the exponent field of the operand, sign apart::

        P = product_constant + rows of m                     about (1 + m) * log2(e)
        t = P * 2^(e - 15), cut to ``frac_bits``; inverted, all of it, if the operand is negative
        n, f = floor and fraction of t
        g = position of f in its segment, inverted in the lower half of [0, 1), where 2^f is less steep than 1 + f
        y = n + 15 + f + offsets[segment] + rows of g + parabola

    Cut to ten fraction bits, ``y`` is the code of the result: its whole part is the exponent field, carry included.
    Where that is 0 or less, the significand with its hidden bit moves right and is rounded once more, to nearest with
    halves up. A subnormal result is so within 0.51 units of its last place, and what the relative error of the sum
    comes to in such units, of the exact exponential: less than 1 beyond the half in the uppermost subnormal binade, and
    half as much in each below it.

    Operands of a field above ``shape.largest_field`` take the limit. If that is 18, those of field 19 that are not
    below -17.25 give two or one of the smallest number, with the step between them at -16.25 (the nearest step lies at
    -16.23; that to zero at -17.33). A ``flushed`` unit returns +0 for a result that rounds below the smallest normal
    number at ten fraction bits. A ``nonpositive`` unit does not look at the sign: for an operand above zero it returns
    exp of its negative.
    """

    fmt: FloatFormat = FP16
    shape: CompactShape
    product_constant: int
    slopes: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]

    family: ClassVar[str] = "compact"
    formats: ClassVar[tuple[FloatFormat, ...]] = (FP16,)

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.shape
        if not isinstance(shape, CompactShape):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"shape must be a CompactShape, not {shape!r}")
        require_int("product_constant", self.product_constant, 1, (2 << shape.product_bits) - 1)
        if len(self.offsets) != shape.segments:
            raise ValueError(f"offsets must number {shape.segments}, not {len(self.offsets)}")
        for segment, offset in enumerate(self.offsets):
            # 2^f - 1 - f lies above -0.0861, and folding takes up to 0.31 of a segment more.
            require_int(f"offsets[{segment}]", offset, -(1 << shape.offset_bits - 2), 1 << shape.offset_bits - 2)
        if len(self.slopes) != shape.segments:
            raise ValueError(f"slopes must number {shape.segments}, not {len(self.slopes)}")
        for segment, choices in enumerate(self.slopes):
            if len(choices) != len(shape.slope_rows):
                raise ValueError(f"slopes[{segment}] must number {len(shape.slope_rows)}, not {len(choices)}")
            for row, ((shifts, _), choice) in enumerate(zip(shape.slope_rows, choices, strict=True)):
                require_int(f"slopes[{segment}][{row}]", choice, 0, len(shifts))
        self._require_exact_and_monotone()

    def _require_exact_and_monotone(self) -> None:
        fmt = self.fmt
        zero, minus_zero = self.evaluate_codes([0, fmt.sign_mask]).tolist()
        if not zero == minus_zero == fmt.one_code:
            raise ValueError(f"exp(+0) and exp(-0) must be {fmt.one_code:#x}, not {zero:#x} and {minus_zero:#x}")
        # From the largest negative operand up; -0 gives what +0 does.
        rising = np.concatenate((np.arange(fmt.sign_mask + fmt.inf_code, fmt.sign_mask, -1), np.arange(fmt.inf_code)))
        rising = rising if self.domain == "full" else rising[: fmt.inf_code + 1]
        falls = np.flatnonzero(np.diff(self.evaluate_codes(rising).astype(np.int64)) < 0)
        if falls.size:
            x = float(fmt.from_codes(rising[falls[:1]])[0])
            raise ValueError(f"the result must not fall as x rises, it does after {x!r}")

    @property
    def parameters(self) -> Mapping[str, int | str]:
        """Segments, word lengths, and the rows of both heaps."""
        shape = self.shape
        return {
            "segments": shape.segments,
            "frac_bits": shape.frac_bits,
            "core_bits": shape.core_bits,
            "product_bits": shape.product_bits,
            "product_rows": len(shape.product_rows),
            "slope_rows": len(shape.slope_rows),
            "parabola": len(shape.parabola),
        }

    @property
    def steps(self) -> int:
        """Steps of the datapath: one; a pipelined unit gives its ``registers`` to the synthesiser to place."""
        return 1

    def core(self, f: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return ``2^f - 1`` plus half a unit in the last place, in units of ``2^-core_bits``.

        Parameters
        ----------
        f : ndarray of int64
            Fractions in units of ``2^-frac_bits``.
        """
        shape = self.shape
        segment = shape.segment(f)
        offsets = np.array(self.offsets, dtype=np.int64) << shape.core_bits - shape.offset_bits
        total = shape.linear(f) + offsets[segment] + shape.parabola_at(f)
        choices = np.array(self.slopes)
        for row, values in enumerate(shape.row_values(f)):
            total += np.choose(choices[segment, row], values)
        return total

    def evaluate_float(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return ``2^n`` times the interpolation of ``2^f`` on real numbers; see :class:`ExpSpec`.

        :meth:`golden.exp.compact_shape.CompactShape.interpolate` is what the constants stand for.
        """
        x = np.asarray(x, dtype=np.float64)
        finite = np.isfinite(x)
        t = np.clip(np.where(finite, x, 0.0) * np.log2(np.e), -1100.0, 1100.0)
        n = np.floor(t)
        with np.errstate(over="ignore", under="ignore"):
            return np.where(finite, np.ldexp(self.shape.interpolate(t - n), n.astype(np.int64)), np.exp(x))

    def evaluate_codes(self, codes: npt.ArrayLike) -> npt.NDArray[np.uint16]:
        """Return what the hardware returns, bit for bit; see :class:`ExpSpec`."""
        fmt, shape = self.fmt, self.shape
        code = np.asarray(codes).astype(np.int64)
        if self.domain == "nonpositive":
            code = code | fmt.sign_mask
        field = code >> fmt.significand_bits & fmt.exponent_mask
        fraction = code & ((1 << fmt.significand_bits) - 1)
        negative = (code & fmt.sign_mask) != 0
        n, f = shape.reduce(code, self.product_constant)
        beyond = field > shape.largest_field
        total = (n + fmt.bias << shape.core_bits) + self.core(f) >> shape.core_bits - fmt.significand_bits
        result = np.where(beyond, 0, self._place(total))
        if self.subnormals == "rounded":
            last = np.where(fraction < 16, 2, np.where(fraction < 80, 1, 0))
            result = np.where(beyond & (field == 19), last, result)
        result = np.where(~negative & (beyond | (n > fmt.bias)), fmt.inf_code, result)
        nan = (field == fmt.exponent_mask) & (fraction != 0)
        return np.where(nan, fmt.nan_code, result).astype(np.uint16)

    def _place(self, total: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the code of every sum cut to ten fraction bits: shifted and rounded where its field is below 1."""
        bits = self.fmt.significand_bits
        field = total >> bits
        if self.subnormals == "flushed":
            return np.where(field < 1, 0, total)
        significand = total & ((1 << bits) - 1) | 1 << bits
        moved = significand << 1 >> np.clip(1 - field, 0, 15)
        return np.where(field < 1, (moved >> 1) + (moved & 1), total)
