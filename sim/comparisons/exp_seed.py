"""The claim "6th-order polynomial, loss < 0.1 %, 40 % less area", against baselines that have names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.comparisons.row import comparison_row
from sim.studies.exp import TOOL_NOISE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BASELINES", "CLAIMED_LOSS", "CLAIMED_SAVING", "FORMS", "seed_rows", "verdict", "wanted_units"]

CLAIMED_LOSS = 1e-3
"""Largest relative error claimed."""

CLAIMED_SAVING = 0.40
"""Part of the baseline's area that is claimed to be saved."""

FORMS = {
    "poly6-f14": "degree 6, Horner, one multiplier a degree",
    "compact-poly6": "degree 6, smallest combinational unit found",
    "compact-poly6-serial": "degree 6 on one multiplier, registers included",
}
"""Units of degree 6 that the claim may mean."""

BASELINES = {
    "poly6-full": "full precision: words of fp32's 24 bits inside, the same polynomial (by abc's quick script)",
    "shift-add14": "CORDIC class: shifts and adds, one bit a step",
    "table-1024": "table of 1,024 entries, no arithmetic",
    "poly3-f14": "degree 3, Horner, the same frame and word length",
    "linear-16-14": "16 line segments",
    "linear-64-14": "64 line segments, of degree 6's accuracy",
}
"""Units that the claim may be against."""

_SOURCE = "the seed of pam-seed: '6th-order polynomial, loss < 0.1 %, 40 % less area'; it names no baseline"


def wanted_units() -> list[str]:
    """Return the names of the units that :func:`seed_rows` needs."""
    return [*FORMS, *BASELINES]


def seed_rows(measured: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the comparison.

    Parameters
    ----------
    measured : sequence of mapping
        Rows of :func:`sim.studies.exp.exp_rows` with the units of :func:`wanted_units`, all of one library.

    Returns
    -------
    list of dict
        For each form of degree 6 its error beside the claimed one, then the part of each baseline's area that it saves
        beside the claimed 40 %. ``within`` allows for the tool noise of the area.
    """
    rows = {row["name"]: row for row in measured}
    result: list[dict[str, Any]] = []
    for form in FORMS:
        ours = rows[form]
        result.append(
            comparison_row(
                f"{form}: largest error",
                CLAIMED_LOSS,
                ours["max_rel"],
                unit="relative error",
                source=_SOURCE,
                within=ours["max_rel"] < CLAIMED_LOSS,
                note=f"{ours['normal_codes']:,} codes with a normal result, against exact exp",
            )
        )
        for name in BASELINES:
            base = rows[name]
            saved = 1 - ours["area_ge"] / base["area_ge"]
            result.append(
                comparison_row(
                    f"{form}: area saved against {name}",
                    CLAIMED_SAVING,
                    saved,
                    unit="of its area",
                    source=_SOURCE,
                    within=ours["area_ge"] <= (1 - CLAIMED_SAVING) * base["area_ge"] * (1 + TOOL_NOISE),
                    note=f"{ours['area_ge']:,.0f} of {base['area_ge']:,.0f} GE; baseline errs {base['max_rel']:.3%}",
                )
            )
    return result


def verdict(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in words for which baselines each form's saving holds."""
    lines: list[str] = []
    for form, text in FORMS.items():
        held = [
            str(row["name"]).rsplit(" ", 1)[1]
            for row in rows
            if row["name"].startswith(f"{form}: area") and row["within"]
        ]
        lines.append(f"{form} ({text}): 40 % less area holds against {', '.join(held) or 'none of them'}")
    return lines
