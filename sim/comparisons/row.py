"""The row of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["calibrated_row", "comparison_row", "comparison_table"]


def comparison_row(
    name: str, reference: float, ours: float | None, *, unit: str, source: str, within: bool, note: str
) -> dict[str, Any]:
    """Return one row of a comparison that no calibrated factor enters.

    Parameters
    ----------
    name : str
        What is compared.
    reference, ours : float
        The published number and ours; ours is None where we have no unit of the kind.
    unit : str
        Unit of both.
    source : str
        Where the reference stands.
    within : bool
        Whether ours is as good, or the claim holds.
    note : str
        Reference, domain and sampling of the numbers.
    """
    return calibrated_row(name, reference, ours, ours, unit=unit, source=source, within=within, fit=False, note=note)


def calibrated_row(
    name: str,
    reference: float,
    ours: float | None,
    ours_default: float | None,
    *,
    unit: str,
    source: str,
    within: bool,
    fit: bool,
    note: str,
) -> dict[str, Any]:
    """Return one row of a comparison that calibrated factors enter.

    Parameters
    ----------
    name, reference, ours, unit, source, within, note
        As in :func:`comparison_row`.
    ours_default : float
        Ours with all factors at their defaults.
    fit : bool
        Factors were fitted to the reference, so that ours near it shows nothing.
    """
    return {
        "name": name,
        "reference": reference,
        "ours": ours,
        "ours_default": ours_default,
        "ratio": None if ours is None else ours / reference,
        "unit": unit,
        "source": source,
        "within": within,
        "fit": fit,
        "note": note,
    }


def comparison_table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    """Return the rows as a table for people."""
    table = Table(title=title, title_justify="left")
    for column in ("what", "reference", "ours", "ratio", "unit", "holds", "note"):
        table.add_column(column, justify="right" if column in ("reference", "ours", "ratio") else "left")
    for row in rows:
        ours, ratio = row["ours"], row["ratio"]
        table.add_row(
            row["name"],
            _shown(row["reference"]),
            "-" if ours is None else _shown(ours),
            "-" if ratio is None else f"{ratio:.3f}",
            row["unit"],
            "fitted" if row["fit"] else "yes" if row["within"] else "no",
            row["note"],
        )
    return table


def _shown(number: float) -> str:
    """Return counts and what has four digits before the point in full, other numbers to four digits."""
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
