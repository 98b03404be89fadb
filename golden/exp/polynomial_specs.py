"""Polynomials for the study: degree, word length, order of evaluation and rounding, each varied by itself.

All coefficients but those of ``naive`` and ``taylor`` are found by :func:`golden.exp.fit.polynomial.fit` with the
lattice; the test suite repeats a few of the fits. A name says degree, fraction bits of the core, and what is unusual.
"""

from __future__ import annotations

from golden.exp.fixed import FixedPolynomialSpec
from golden.exp.polynomial import POLY6, PolynomialSpec
from golden.formats import BF16, UQ0_16

__all__ = ["FIXED_SPECS", "POLYNOMIAL_SPECS"]


def _poly(bits: int, *coefficients: int, kind: str = "", **changes: object) -> PolynomialSpec:
    """Return a combinational unit whose f, sums and coefficients have ``bits`` fraction bits."""
    name = "-".join(filter(None, (f"poly{len(coefficients) - 1}", f"f{bits}", kind)))
    given = {"name": name, "coefficients": coefficients, "frac_bits": bits, "evaluation": "combinational", **changes}
    return POLY6.replace(**given)


_DEGREE_6_BITS_14 = _poly(14, 16385, 11357, 3938, 903, 171, 10, 8)

POLYNOMIAL_SPECS: tuple[PolynomialSpec, ...] = (
    # Degree and word length.
    _poly(12, 4096, 4095),
    _poly(12, 4097, 2795, 1301),
    _poly(14, 16386, 10814, 5567),
    _poly(12, 4097, 2847, 931, 319),
    _poly(14, 16384, 11399, 3702, 1284),
    _poly(16, 65536, 45584, 14826, 5125),
    _poly(14, 16385, 11356, 3950, 862, 218),
    _poly(16, 65537, 45416, 15834, 3394, 893),
    _poly(14, 16385, 11357, 3938, 911, 149, 31),
    _poly(16, 65537, 45427, 15738, 3665, 585, 123),
    _poly(12, 4097, 2838, 985, 228, 47, 0, 1),
    _DEGREE_6_BITS_14,
    _poly(16, *POLY6.coefficients),
    _poly(16, 65537, 45427, 15744, 3639, 626, 93, 9, 2),
    _poly(16, 65537, 45427, 15741, 3642, 627, 93, 9, 0, 1),
    # f in no more bits than each product can use.
    _poly(14, 16385, 11355, 3961, 844, 227, kind="tapered", factor_bits=(14, 12, 10, 8)),
    _poly(14, 16385, 11357, 3945, 885, 184, 17, 1, kind="tapered", factor_bits=(14, 12, 10, 8, 5, 2)),
    _poly(16, 65537, 45429, 15726, 3704, 534, 144, 4, kind="tapered", factor_bits=(16, 14, 12, 10, 7, 4)),
    _poly(
        14,
        *(23171, 16061, 2788, 323, 21, 2, 5),
        kind="centred",
        centred=True,
        sum_bits=(14, 14, 13, 12, 11, 10, 9),
        factor_bits=(14, 13, 11, 9, 6, 4),
    ),
    # Order of evaluation.
    _poly(14, 16385, 11358, 3959, 837, 232, kind="estrin", scheme="estrin"),
    _poly(14, 16385, 11363, 3919, 938, 128, 39, 1, kind="estrin", scheme="estrin"),
    _poly(16, 65537, 45428, 15756, 3586, 721, 8, 40, kind="estrin", scheme="estrin"),
    # Coefficients rounded with no thought for one another.
    _poly(14, 16384, 11357, 3936, 909, 159, 20, 4, kind="naive"),
    _poly(14, 16384, 11357, 3936, 909, 158, 22, 3, kind="taylor"),
    # Rounding of products and of the result.
    _poly(14, 16384, 11357, 3944, 886, 183, 11, 3, kind="rounded", products="rounded"),
    _poly(14, 16384, 11399, 3702, 1284, kind="up", rounding="nearest_up"),
    _poly(14, 16392, 11399, 3702, 1284, kind="cut", rounding="truncated"),
    # The operands of a softmax alone.
    _poly(14, 16384, 11359, 3934, 918, 152, 16, 9, kind="softmax", domain="nonpositive", subnormals="flushed"),
    # On one multiplier.
    _DEGREE_6_BITS_14.replace(name="poly6-f14-serial", evaluation="serial"),
    # bfloat16.
    _poly(10, 1027, 670, 350, kind="bf16", fmt=BF16),
    _poly(10, 1025, 714, 229, 82, kind="bf16", fmt=BF16),
    _poly(11, 2049, 1419, 492, 118, 21, kind="bf16", fmt=BF16),
)
"""Floating-point polynomials, combinational unless the name says serial."""


def _fixed(name: str, *coefficients: int, bits: int, **changes: object) -> FixedPolynomialSpec:
    """Return a combinational fixed-point unit."""
    spec = FixedPolynomialSpec(name=name, coefficients=coefficients, frac_bits=bits, evaluation="combinational")
    return spec.replace(**changes)


FIXED_SPECS: tuple[FixedPolynomialSpec, ...] = (
    _fixed("poly3-f17-q1.15", 131072, 91141, 29713, 10181, bits=17),
    _fixed("poly4-f18-q1.15", 262146, 181651, 63367, 13526, 3600, bits=18),
    _fixed("poly4-f18-q0.16", 262146, 181660, 63321, 13602, 3560, bits=18, result=UQ0_16),
)
"""Fixed-point polynomials: Q5.10 operands, unsigned fractions as results."""
