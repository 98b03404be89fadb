"""Area of a compact unit before synthesis: adders, gates and table bits, counted.

Only differences between shapes matter to the search, so what all shapes have in common, subnormal results and special
operands, is left out. Wherever two shapes for one target were synthesised for sg13g2 and the counts differed by more
than 10, the larger count had the larger area.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.formats import FP16

if TYPE_CHECKING:
    from golden.exp.compact_shape import CompactShape
    from golden.exp.fit.compact import CompactFit

__all__ = ["estimate"]

_FULL_ADDER, _HALF_ADDER, _INVERTER, _XOR = 6.2, 3.0, 0.4, 2.0
"""Gate equivalents in a heap, as sg13g2 is mapped; a half adder is also a full adder with a constant 1."""
_SELECT = {1: 1.1, 2: 1.75, 3: 2.9}
"""Gates to choose from so many shifts, or none, a bit."""
_TABLE = {2: 1.2, 3: 2.0, 4: 3.6, 5: 7.5, 6: 15.0, 7: 30.0}
"""Gates of a table with so many inputs, a bit."""
_SHIFTER = 7.0
"""Four levels of multiplexers, a bit."""


def estimate(shape: CompactShape, constants: CompactFit | None = None) -> float:
    """Return the area of product, shifter and interpolation in gate equivalents of sg13g2, about.

    Parameters
    ----------
    shape : CompactShape
        Its rows are counted, and gates of its tables by their inputs.
    constants : CompactFit, optional
        Whose constants count; without, typical ones do.
    """
    bits = FP16.significand_bits
    if constants is None:
        constant = round(
            float((2.0**shape.product_bits * np.log2(np.e) * (1 + np.arange(1024) / 1024) - shape.products).mean())
        )
        base, offset_bits = 1 << shape.offset_bits - 3, shape.offset_bits - 3
    else:
        constant = constants.product_constant
        base = 1 << (-min(constants.offsets) - 1).bit_length()
        offset_bits = (max(constants.offsets) + base).bit_length()
    columns: dict[int, int] = {}
    for shift, _, kept in shape.product_rows:
        for column in range(max(0, bits + shift - kept), bits):
            _dot(columns, column - bits - shift + shape.product_bits)
    area = _adders(columns, constant, shape.product_bits + 2)

    t_bits = shape.frac_bits + 2 + shape.smallest_field
    area += _SHIFTER * t_bits + _XOR * (t_bits + shape.position_bits)

    table = _TABLE[shape.segment_bits]
    area += table * offset_bits
    columns = {}
    for column in range(t_bits):
        _dot(columns, column - shape.frac_bits + shape.core_bits)
    for column in range(offset_bits):
        _dot(columns, column - shape.offset_bits + shape.core_bits)
    for shifts, kept in shape.slope_rows:
        area += 0.9 * table * len(shifts)
        sources: dict[int, int] = {}
        for shift in shifts:
            for bit in range(shape.position_bits):
                column = bit - shape.frac_bits - shift
                if column >= -kept:
                    _dot(sources, column + shape.core_bits)
        for column, choices in sources.items():
            _dot(columns, column)
            area += _SELECT[choices]
    if shape.parabola:
        width = max(1, max(shape.parabola).bit_length())
        area += 0.8 * _TABLE[min(7, max(2, sum(shape.parabola_index)))] * width
        for column in range(width):
            _dot(columns, column - shape.parabola_bits + shape.core_bits)
    constant = (FP16.bias << shape.core_bits) - (base << shape.core_bits - shape.offset_bits)
    return area + _adders(columns, constant, shape.core_bits + FP16.exponent_bits)


def _dot(columns: dict[int, int], column: int) -> None:
    if column >= 0:
        columns[column] = columns.get(column, 0) + 1


def _adders(columns: dict[int, int], constant: int, width: int) -> float:
    """Return the area of a heap of so many bits a column and a constant, reduced from the lowest column."""
    area, carries = 0.0, 0
    for column in range(width):
        height = columns.get(column, 0) + carries
        carries = 0
        if constant >> column & 1 and height:
            area += _HALF_ADDER if height > 1 else _INVERTER
            carries += 1
            height = max(1, height - 1)
        full, half = divmod(max(0, height - 1), 2)
        area += full * _FULL_ADDER + half * _HALF_ADDER
        carries += full + half
    return area
