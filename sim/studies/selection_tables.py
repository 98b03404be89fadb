"""What ``nearkv study selection`` shows to people, and its rows flattened for CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["csv_rows", "selection_tables"]


def csv_rows(kinds: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the rows of every kind under one set of keys, the kind first; empty where a kind has no such number."""
    keys = dict.fromkeys(key for rows in kinds.values() for row in rows for key in row)
    return [
        {"kind": kind, **{key: _flat(row.get(key)) for key in keys}} for kind, rows in kinds.items() for row in rows
    ]


def _flat(value: Any) -> Any:
    """Return the class alone of a provenance, the only value of many."""
    return cast("dict[str, Any]", value)["class"] if isinstance(value, dict) else value


def selection_tables(
    rows: Sequence[Mapping[str, Any]], balance: Sequence[Mapping[str, Any]], labels: Sequence[Mapping[str, Any]]
) -> list[Table | str]:
    """Return the tables of the study."""
    first = rows[0]
    chosen = _table(
        f"{first['parts'] * first['part_tokens']:,} tokens a channel, head dimension {first['head_dim']}, no refresh "
        "[measured-rtl]",
        ("selected", "wanted a part", "positions read", "rows opened", "columns", "cycles", "of all", "useful"),
    )
    for row in rows:
        chosen.add_row(
            row["name"],
            f"{row['wanted_tokens']:,.0f} of {row['part_tokens']:,}",
            f"{row['positions_read']:,}",
            f"{row['openings']:,}",
            f"{row['columns_read']:,}",
            f"{row['cycles']:,}",
            f"{100 * row['relative_cycles']:.1f}%",
            f"{100 * row['useful_share']:.1f}%",
        )
    placed = _table(
        f"activated tokens of the fullest of {balance[0]['groups']} bank groups, mean of {balance[0]['steps']:,} steps "
        "[modelled]",
        ("new tokens", "fullest group", "if even", "ratio", "again in the next step"),
    )
    for row in balance:
        placed.add_row(
            row["name"],
            f"{row['intra_tokens']:.1f}",
            f"{row['even_tokens']:.1f}",
            f"{row['relative_to_even']:.2f}",
            f"{100 * row['activated_again']:.0f}%",
        )
    scans = _table(
        "scoring the labels of the same tokens [formula-rtl; bus modelled]",
        ("labels", "rows opened", "columns", "cycles", "last score", "of all", "bytes of it", "bus meanwhile"),
    )
    for row in labels:
        scans.add_row(
            row["name"],
            f"{row['openings']:,}",
            f"{row['columns_read']:,}",
            f"{row['cycles']:,}",
            f"{row['score_cycles']:,}",
            f"{100 * row['relative_cycles']:.1f}%",
            f"{100 * row['byte_share']:.1f}%",
            f"{row['bus_cycles']:,}",
        )
    greedy = next(row for row in balance if row["policy"] == "greedy")
    tables = (
        f"greedy placement on 1,280 bank groups: ids {greedy['group_id_bytes']:,} B, "
        f"tracking {greedy['tracking_bytes']:,} B (PAM prints 2.8 KB and less than 50 KB)"
    )
    return [chosen, placed, tables, scans]


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table
