"""Every family of exponential units by name, and the units that are measured when none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.exp.compact import CompactSpec
from golden.exp.compact_bf16 import CompactBf16Spec
from golden.exp.compact_bf16_units import COMPACT_BF16_SPECS
from golden.exp.compact_polynomial import COMPACT_POLYNOMIAL_SPECS, CompactPolynomialSpec, SerialPolynomialSpec
from golden.exp.compact_units import COMPACT_SPECS
from golden.exp.direct import DIRECT_SPECS, DirectSpec
from golden.exp.fixed import FixedPolynomialSpec
from golden.exp.polynomial import POLY6, POLY6_SERIAL, PolynomialSpec
from golden.exp.polynomial_specs import FIXED_SPECS, POLYNOMIAL_SPECS
from golden.exp.schraudolph import SCHRAUDOLPH_SPECS, SchraudolphSpec
from golden.exp.segment_units import SEGMENT_SPECS
from golden.exp.segments import SegmentSpec
from golden.exp.shift_add import SHIFT_ADD_SPECS, ShiftAddSpec
from golden.exp.table import TableSpec
from golden.exp.table_units import TABLE_SPECS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from golden.exp.spec import ExpSpec

__all__ = ["DEFAULT_UNITS", "FAMILIES", "FULL_PRECISION", "LARGE_UNITS", "UNITS"]

FAMILIES: dict[str, type[ExpSpec]] = {
    family.family: family
    for family in (
        PolynomialSpec,
        FixedPolynomialSpec,
        SegmentSpec,
        TableSpec,
        SchraudolphSpec,
        DirectSpec,
        ShiftAddSpec,
        CompactSpec,
        CompactBf16Spec,
        CompactPolynomialSpec,
        SerialPolynomialSpec,
    )
}
"""Class of each family, by the name that its rows carry."""


def _by_name(specs: Iterable[ExpSpec]) -> dict[str, ExpSpec]:
    """Return ``specs`` by name; raise if two share one."""
    units: dict[str, ExpSpec] = {}
    for spec in specs:
        if spec.name in units:
            raise ValueError(f"name of a unit must be its own, {spec.name!r} is that of two")
        units[spec.name] = spec
    return units


FULL_PRECISION = PolynomialSpec(
    name="poly6-full",
    coefficients=(16777216, 11629077, 4030388, 930856, 162384, 20870, 3641),
    frac_bits=20,
    guard_bits=4,
    log2e=24204406,
    log2e_bits=24,
    evaluation="combinational",
)
"""Degree 6 in words of 24 bits, the significand of fp32: what a unit made for single precision would spend."""

UNITS: dict[str, ExpSpec] = _by_name(
    (
        POLY6,
        POLY6_SERIAL,
        FULL_PRECISION,
        *POLYNOMIAL_SPECS,
        *FIXED_SPECS,
        *SEGMENT_SPECS,
        *TABLE_SPECS,
        *SCHRAUDOLPH_SPECS,
        *DIRECT_SPECS,
        *SHIFT_ADD_SPECS,
        *COMPACT_SPECS.values(),
        *COMPACT_BF16_SPECS,
        *COMPACT_POLYNOMIAL_SPECS,
    )
)
"""All units that ship, by name."""

LARGE_UNITS = frozenset(("poly6-full", "direct-6-8", "direct-6-4"))
"""Units of 10,000 gates and more, on which a thorough synthesis spends many minutes."""

# Of the small ones each is a near twin of one that stays.
_NOT_BY_DEFAULT = {
    *LARGE_UNITS,
    *("poly2-f14", "poly4-f14-tapered", "poly6-f16-tapered", "poly4-f14-estrin", "poly6-f16-estrin", "poly3-f14-cut"),
    *("poly6-f14-taylor", "linear-8-14", "linear-64-16", "quadratic-2-12", "quadratic-4-12", "quadratic-16-16"),
    *("table-128", "table-512", "schraudolph-offset", "poly4-f18-q0.16", "poly5-f14", "poly7-f16"),
    *(f"compact16-{accuracy}-{kind}" for accuracy in ("0.1", "95", "99") for kind in ("np", "ftz")),
    *("compact-poly6-flushed", "compact-bf16-nonpositive"),
}

DEFAULT_UNITS: dict[str, ExpSpec] = {name: spec for name, spec in UNITS.items() if name not in _NOT_BY_DEFAULT}
"""The default set of ``nearkv study exp``, by name, in the order of its rows."""
