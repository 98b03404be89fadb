"""What ``nearkv study policies`` shows to people, and its rows flattened for CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["NOTES", "csv_rows", "fit_table", "granularity_tables", "policy_tables"]

NOTES = (
    "oracle: a bound on tokens read outside HBM, which knows what is read next and keeps to no budget; not on time",
    "pam-seed counts reads of 50 steps, from 0 on: what is read in a third of them reaches 5.0 after 4 such intervals",
    "pam-seed-step counts those of one step, as the seed is written: no importance exceeds 1.0, nothing goes nearest",
    "locality seed: 0.85 of the reads come again at once; of real tensors 0.63 to 0.70 do, by page of 16 0.77 to 0.88",
    "the seed also has what is read within 20 tokens of the last: of real tensors 0.02 to 0.04 of the reads are there",
    "far: part of the reads outside the nearest memory; moved: tokens that change memory, part of those held",
    "a page of flash is read for any token of it: 32 of a KV head, of which hardly a page goes unread",
)


def csv_rows(kinds: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the single values of the rows of every kind under one set of keys, the kind first."""
    flat = [(kind, _flat(row)) for kind, rows in kinds.items() for row in rows]
    keys = dict.fromkeys(key for _, row in flat for key in row)
    return [{"kind": kind, **{key: row.get(key) for key in keys}} for kind, row in flat]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in row.items():
        if key == "provenance":
            found[key] = value["class"]
        elif isinstance(value, dict):
            parts = cast("dict[str, Any]", value)
            found |= {f"{key}.{name}": part for name, part in parts.items()}
        else:
            found[key] = value
    return found


def policy_tables(rows: Sequence[Mapping[str, Any]], reads: Sequence[Mapping[str, Any]]) -> list[Table | str]:
    """Return a table a load, one of single tokens' reads, and notes."""
    tables: list[Table | str] = []
    for load in dict.fromkeys(row["load"] for row in rows):
        of_load = [row for row in rows if row["load"] == load]
        first = of_load[0]
        table = _table(
            f"{load}: {first['requests']} requests of {first['prompt_tokens']:,} tokens, {first['model']}, "
            f"{first['outside_share']:.0%} outside HBM, {first['last_share']:.0%} on drives [modelled]",
            ("policy", "step ms", "tbt p50", "tbt p99", "far", "moved a step", "from drives", "waited s"),
        )
        for row in of_load:
            table.add_row(
                row["policy"],
                f"{row['decode_step_ms']:,.1f}",
                f"{row['tbt_ms']['p50']:,.1f}",
                f"{row['tbt_ms']['p99']:,.1f}",
                f"{row['far_share']:.1%}",
                f"{row['moved_share']:.2%}",
                f"{row['moved_share_last']:.2%}",
                f"{row['migration']['exposed_s']:,.1f}",
            )
        tables.append(table)
    if reads:
        tables.append(_reads_table(reads))
    return [*tables, *NOTES]


def granularity_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table | str]:
    """Return a table of one step by what is placed, and a note."""
    table = _table(
        "one step without moves, the most important nearest [modelled]",
        ("load", "placed by", "reads in common", "far", "step ms", "attention ms", "table entries"),
    )
    for row in rows:
        table.add_row(
            row["load"],
            row["granularity"],
            "any" if row["alike"] is None else f"{row['alike']:g}",
            f"{row['far_share']:.1%}",
            f"{row['step_ms']:,.1f}",
            f"{row['attention_ms']:,.1f}",
            f"{row['table_entries']:,}",
        )
    note = (
        "reads in common: of two heads; 0.37 in a layer and 0.21 in two of a real encoder, 0.125 by chance; the tables "
        "above follow whole tokens whose heads all read the same, which is like token-layer-head"
    )
    return [table, note]


def _reads_table(reads: Sequence[Mapping[str, Any]]) -> Table:
    localities = list(dict.fromkeys(row["locality"] for row in reads))
    table = _table(
        "reads outside HBM of the last 50 steps, single tokens, over seeds [modelled]", ("policy", *localities)
    )
    for policy in dict.fromkeys(row["policy"] for row in reads):
        shares = [
            [row["far_share"] for row in reads if (row["policy"], row["locality"]) == (policy, locality)]
            for locality in localities
        ]
        table.add_row(policy, *(f"{min(found):.1%} - {max(found):.1%}" for found in shares))
    return table


def fit_table(rows: Sequence[Mapping[str, Any]], best: Mapping[str, Any]) -> list[Table | str]:
    """Return the time of a step at each ratio, geometric mean over the loads as part of that without moves."""
    xs, ys = (list(dict.fromkeys(row[key] for row in rows)) for key in ("x", "y"))
    table = _table("steps at x : y : 1, part of those without moves [modelled]", ("x", *(f"y = {y:g}" for y in ys)))
    values = np.array([row["relative"] for row in rows]).reshape(len(xs), len(ys))
    for x, line in zip(xs, values, strict=True):
        table.add_row(f"{x:g}", *(f"{value:.4f}" for value in line))
    edge = "larger and smaller ones were tried" if best["bracketed"] else "at the edge of the grid"
    return [table, f"shortest at {best['name']}: {best['relative']:.4f}; {edge}"]


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table
