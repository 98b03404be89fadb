"""What ``nearkv study retrieval`` shows to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from sim.studies.retrieval_scan import CLAIM_FROM, KEY_RATE, LIMIT, RATE_FROM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["retrieval_study_tables"]


def retrieval_study_tables(
    scans: Sequence[Mapping[str, Any]], quality: Sequence[Mapping[str, Any]]
) -> list[Table | str]:
    """Return a table of scoring and selecting, and two of each source of tokens: quality, and cost.

    Parameters
    ----------
    scans : sequence of mapping
        Rows of :func:`sim.studies.retrieval_scan.scan_rows`.
    quality : sequence of mapping
        Rows of :func:`sim.studies.retrieval_quality.quality_rows`.
    """
    tables: list[Table | str] = [_scan_table(scans)]
    claimed = [row for row in scans if row["within"] is not None]
    held = sum(bool(row["within"]) for row in claimed)
    rated = [row for row in scans if row["keeps_up"] is not None]
    kept = sum(bool(row["keeps_up"]) for row in rated)
    tables.append(
        f"scoring keeps at least {KEY_RATE:.0%} of the keys' rate from {RATE_FROM:,} tokens on: {kept} of {len(rated)} "
        f"points; selection adds at most {LIMIT:.0%} from {CLAIM_FROM:,} tokens on: {held} of {len(claimed)} points"
    )
    for source in dict.fromkeys(str(row["source"]) for row in quality):
        rows = [row for row in quality if row["source"] == source]
        tables += [_quality_table(source, rows), _cost_table(source, rows)]
    return tables


def _scan_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return scoring and selecting, a line a model and number of tokens."""
    table = _table(
        "one selection, cycles of the cores' clock: score [modelled: keys at the memory's rate; its unit formula-rtl], "
        "select [formula-rtl]",
        ("model", "tokens", "candidates", "score", "its unit", "of keys' rate", "select", "adds"),
    )
    for row in rows:
        table.add_row(
            row["model"],
            f"{row['tokens']:,}",
            f"{row['candidates']:,}",
            f"{row['score_cycles']:,.0f}",
            f"{row['score_unit_cycles']:,}",
            f"{row['key_stream_share']:.2%}",
            f"{row['select_cycles']:,}",
            f"{row['select_share']:.2%}",
        )
    return table


def _quality_table(source: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return recall and kept mass of every method, a column a k."""
    ks = sorted({int(row["k"]) for row in rows})
    first = rows[0]
    table = _table(
        f"{source}, {first['tokens']:,.0f} tokens, {first['queries']} queries: recall / kept mass in % [modelled]",
        ("method", *(f"k = {k}" for k in ks)),
    )
    by_method: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        by_method.setdefault(str(row["method"]), {})[int(row["k"])] = row
    for method, found in by_method.items():
        table.add_row(method, *(f"{100 * found[k]['recall']:.1f} / {100 * found[k]['kept_mass']:.1f}" for k in ks))
    return table


def _cost_table(source: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return what every method reads and computes at the largest k."""
    most = max(int(row["k"]) for row in rows)
    table = _table(
        f"{source}: what a query of one head costs at k = {most} [modelled]",
        ("method", "candidates", "index KB", "KV KB", "of all KV", "score kFLOP", "attend kFLOP"),
    )
    for row in rows:
        if row["k"] == most and row["index_bytes"] is not None:
            table.add_row(
                row["method"],
                f"{row['candidates']:,.0f}",
                f"{row['index_bytes'] / 1e3:,.1f}",
                f"{row['kv_bytes'] / 1e3:,.1f}",
                f"{row['bytes_share']:.1%}",
                f"{row['score_flops'] / 1e3:,.0f}",
                f"{row['attend_flops'] / 1e3:,.0f}",
            )
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in ("model", "method") else "right")
    return table
