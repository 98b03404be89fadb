"""The compact units that ship, and what made them small.

Roughly in the order of what it saved:

* log2(e) times the significand as seven or eight signed shifts in one heap, before the shift, each cut to the columns
  that some result needs; only the fraction bits that the interpolation needs are shifted out of it;
* ``2^f`` as ``1 + f`` less at most 0.0861: the operand itself is the first row of the second heap, exponent and all, so
  that the offsets are three bits shorter and all slopes lie below 0.39;
* slopes folded about the middle of the octave, where 2^f is as steep as 1 + f: one row of XOR gates, and no signs;
* word lengths searched one dropped bit at a time, the constants refitted to every operand after each
  (:mod:`golden.exp.fit.compact_search`): 27, 160 and 99 of the gate equivalents counted at its start;
* rows that take one of two shifts of the position: an and-or gate is a quarter of a full adder;
* ones' complement for negative operands: truncate and invert is floor, and exp(-0) comes out as 1;
* half a unit in the last place in the offsets, so that cutting the sum rounds it;
* one shifter for subnormal results, zero and infinity, all of which clear the significand's high bits;
* a small table of what linear interpolation lacks, in place of twice as many segments or a product more.

What did not pay: eight segments, which miss the bounds at the word lengths that make them small, and sixty-four, whose
tables outweigh the shorter rows (1,187 gate equivalents of sg13g2 against 1,160 where 99 % are to be correct, before
the gates around them were trimmed). Counted and not built: rows with signs, whose XOR gates cost what the row saves;
log2(e) as a product of two sums, as many adders as one and slower; reducing by ln 2 in place of log2(e).
"""

from __future__ import annotations

from golden.exp.compact import CompactSpec
from golden.exp.compact_shape import CompactShape

__all__ = ["COMPACT_BOUNDS", "COMPACT_SPECS"]


def _choices(text: str) -> tuple[tuple[int, ...], ...]:
    """Return the slope choices of all segments from one word of digits a segment."""
    return tuple(tuple(int(digit) for digit in word) for word in text.split())


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split())


_COMPACT_TENTH = CompactSpec(
    name="compact16-0.1",
    evaluation="combinational",
    shape=CompactShape(
        frac_bits=11,
        smallest_field=4,
        product_bits=15,
        product_rows=((0, 1, 15), (1, 1, 15), (4, -1, 15), (8, 1, 15), (10, 1, 15), (12, 1, 15), (13, 1, 14)),
        segment_bits=5,
        core_bits=12,
        slope_rows=(((2, 4), 12), ((3, 4, 5), 12)),
        offset_bits=11,
        parabola_index=(0, 0),
        parabola_bits=0,
    ),
    product_constant=45229,
    slopes=_choices("12 13 13 10 10 10 21 21 21 01 01 01 23 02 02 03 00 00 03 02 23 01 01 01 21 21 10 10 13 12 12 11"),
    offsets=_numbers(
        "-18 -36 -53 -69 -85 -99 -111 -123 -134 -143 -151 -159 -164 -169 -173 -174 -175 -175 -174 -172 -168 "
        "-164 -156 -147 -138 -126 -114 -99 -82 -64 -43 -22"
    ),
)

_COMPACT_95 = CompactSpec(
    name="compact16-95",
    evaluation="combinational",
    shape=CompactShape(
        frac_bits=13,
        smallest_field=3,
        product_bits=17,
        product_rows=((0, 1, 17), (1, 1, 17), (4, -1, 17), (8, 1, 16), (10, 1, 16), (12, 1, 17), (14, 1, 16)),
        segment_bits=5,
        core_bits=16,
        slope_rows=(((2, 3), 15), ((4,), 13), ((5,), 16), ((6,), 15), ((8,), 16)),
        offset_bits=16,
        parabola_index=(2, 0),
        parabola_bits=15,
    ),
    product_constant=180915,
    slopes=_choices(
        "10111 10101 10011 10000 21110 21100 21010 21000 20110 20011 20001 01110 01100 01001 00111 00100 "
        "00001 00010 00101 01000 01011 01110 20001 20100 20111 21011 21110 10001 10101 11000 11100 11111"
    ),
    offsets=_numbers(
        "-580 -1163 -1712 -2228 -2703 -3155 -3572 -3950 -4297 -4594 -4861 -5083 -5277 -5413 -5526 -5593 -5610 "
        "-5614 -5582 -5514 -5391 -5231 -5016 -4756 -4433 -4072 -3653 -3178 -2655 -2066 -1428 -712"
    ),
)

_COMPACT_99 = CompactSpec(
    name="compact16-99",
    evaluation="combinational",
    shape=CompactShape(
        frac_bits=15,
        smallest_field=3,
        product_bits=17,
        product_rows=(
            (0, 1, 17),
            (1, 1, 17),
            (4, -1, 17),
            (8, 1, 17),
            (10, 1, 17),
            (12, 1, 17),
            (14, 1, 17),
            (16, 1, 17),
        ),
        segment_bits=5,
        core_bits=17,
        slope_rows=(((2, 3), 16), ((4,), 17), ((5,), 17), ((6,), 17), ((7,), 17), ((8,), 17)),
        offset_bits=17,
        parabola_index=(4, 2),
        parabola_bits=17,
    ),
    product_constant=180914,
    slopes=_choices(
        "101101 101001 100101 100001 211100 211000 210100 210000 201011 200110 200001 011101 010111 010010 "
        "001101 001000 000001 000011 001001 001111 010101 011011 200001 200111 201110 210100 211011 100010 "
        "101001 110000 110111 111111"
    ),
    offsets=_numbers(
        "-1170 -2333 -3430 -4466 -5425 -6325 -7157 -7914 -8593 -9201 -9731 -10194 -10559 -10853 -11062 -11191 "
        "-11218 -11224 -11174 -11034 -10799 -10467 -10041 -9512 -8889 -8151 -7316 -6377 -5320 -4151 -2862 "
        "-1468"
    ),
)

COMPACT_BOUNDS: dict[str, tuple[float, float]] = {
    "compact16-0.1": (0.000999, 0.0),
    "compact16-95": (0.00054, 0.95),
    "compact16-99": (0.0008, 0.99),
}
"""Bound of the relative error, and share of correctly rounded results, that each unit was fitted to."""


def _variants(spec: CompactSpec) -> list[CompactSpec]:
    """Return the unit and those that do less: for operands up to 0, with subnormal results flushed, and both."""
    nonpositive = spec.replace(name=f"{spec.name}-np", domain="nonpositive")
    flushed = [one.replace(name=f"{one.name}-ftz", subnormals="flushed") for one in (spec, nonpositive)]
    return [spec, nonpositive, *flushed]


COMPACT_SPECS: dict[str, CompactSpec] = {
    one.name: one for spec in (_COMPACT_TENTH, _COMPACT_95, _COMPACT_99) for one in _variants(spec)
}
"""Combinational units by name: errors below 0.1 %, and at least 95 and 99 % of the results correctly rounded, each
also for operands up to 0 (``-np``) and with subnormal results flushed (``-ftz``)."""
