"""What ``nearkv study migration`` shows to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["migration_tables"]

_SHARE = "of the link"
_STEP_LINES = (
    "moved: 0.7 % of all tokens change their memory in a step; each way: 0.7 % go up, and as many down; GB, ms: what",
    "moved moves, and the time of the memories for it; open rows; rows, each way: the two, with buses of HBM and",
    "DIMMs used as far as in RTL, else at their full rate; runs: as moved, but tokens leave flash in runs that fill",
    "its pages; fast: into newer flash; kept: flash still has what goes down to it; copies: each way, but memories",
    "below still have it; copies 8: and links carry 8 bits; checks: each way, but units at the banks read back what",
    "was written; no gaps: moved, if it has to take its time of the GPUs' memory from their reads; alone: growth of",
    "attention if nothing moves while the GPUs work; -: tokens lie in one memory, none in flash, or no room for",
    "copies",
)


def migration_tables(rows: Sequence[dict[str, Any]]) -> list[Table | str]:
    """Return a table a kind of rows, and how many of what was asked for is reached.

    Parameters
    ----------
    rows : sequence of dict
        All rows of the study.
    """
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_kind.setdefault(str(row["kind"]), []).append(row)
    tables: list[Table | str] = [
        *([_rate_table(by_kind["rate"])] if "rate" in by_kind else []),
        *([_memory_table(by_kind["memory bound"])] if "memory bound" in by_kind else []),
        _read_table(by_kind["flash read"]),
        _placement_table(by_kind["flash placement"]),
        _write_table(by_kind["flash write"]),
        *_step_tables(by_kind["step"]),
        *_STEP_LINES,
        _host_table(by_kind["host"]),
        _host_line(by_kind["host"]),
    ]
    if "area" in by_kind:
        tables.append(_area_table(by_kind["area"]))
    judged = [row for row in rows if row["within"] is not None]
    tables.append(f"{sum(bool(row['within']) for row in judged)} of {len(judged)} rows reach what is asked for")
    return tables


def _rate_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return what of a link is tokens, a line a point, memories that answer at once beside such with rows."""
    kinds = list(dict.fromkeys(str(row["memories"]) for row in rows))
    table = _table(
        "bytes of tokens over those a link could take, the slower direction [measured-rtl]",
        ("what", "direction", "link's beats", *kinds, "asked", "held"),
    )
    lines: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        what = row["point"] if row["unit"] == _SHARE else f"{row['point']}, over 16 bits"
        lines.setdefault((what, row["direction"], row["link_beats"]), {})[str(row["memories"])] = row
    for (what, direction, link), found in lines.items():
        shown = ["-" if kind not in found else _share(found[kind]["reached"], found[kind]["unit"]) for kind in kinds]
        judged = next(iter(found.values()))
        asked = "-" if judged["asked"] is None else _share(judged["asked"], judged["unit"])
        table.add_row(what, direction, link, *shown, asked, ", ".join(dict.fromkeys(map(_held, found.values()))))
    return table


def _memory_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = _table("8 bits where memories with rows set the pace [modelled]", ("what", "bound", "unit", "note"))
    for row in rows:
        table.add_row(row["name"], f"{row['reached']:.2f}", row["unit"], row["note"])
    return table


def _share(number: float, unit: str) -> str:
    """Return a share in hundredths, a ratio as it is."""
    return f"{number:.1%}" if unit == _SHARE else f"{number:.2f}"


def _read_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = _table(
        "reads from flash [modelled]", ("slots of a page wanted", "bytes read a byte", "GB/s wanted", "bound")
    )
    for row in rows:
        rate = f"{row['wanted_bytes_per_s'] / 1e9:.1f}"
        table.add_row(f"{row['wanted_slots']} of {row['page_slots']}", f"{row['reached']:.1f}", rate, row["bound"])
    return table


def _placement_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return bytes read a byte wanted, a line a question and a column a placement."""
    placements = list(dict.fromkeys(str(row["placement"]) for row in rows))
    table = _table("bytes read from flash a byte wanted, by placement of slots [modelled]", ("who asks", *placements))
    found = {(row["question"], row["placement"]): row["reached"] for row in rows}
    for question in dict.fromkeys(str(row["question"]) for row in rows):
        table.add_row(question, *(f"{found[question, placement]:.1f}" for placement in placements))
    return table


def _write_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = _table("bytes programmed to flash a byte written [modelled]", tuple(str(row["name"]) for row in rows))
    table.add_row(*(f"{row['reached']:.2f}" for row in rows))
    return table


def _step_tables(rows: Sequence[dict[str, Any]]) -> list[Table | str]:
    """Return by how much steps grow, two tables a model, a line a step, a column a manner that differs from the first.

    The first table has the manners that something is asked of, the second what would make them cheaper.
    """
    first, *others = dict.fromkeys(str(row["manner"]) for row in rows)
    judged = {str(row["manner"]) for row in rows if row["asked"] is not None}
    steps: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("model", "context", "batch", "keep"))
        steps.setdefault(key, {})[str(row["manner"])] = row
    same = [
        manner
        for manner in others
        if all(found[manner]["reached"] == found[first]["reached"] for found in steps.values() if manner in found)
    ]
    shown = [first, *(manner for manner in others if manner not in same)]
    asked = [manner for manner in shown if manner in judged]
    cheaper = [manner for manner in shown if manner not in judged]
    tables: dict[tuple[str, str], Table] = {}
    for (model, context, batch, keep), found in steps.items():
        if (model, "asked") not in tables:
            title = f"{model}: growth of a step while tokens move, asked: at most 1 % [modelled]"
            columns = ("context x batch", "keep", "step ms", "GB", "ms", *asked, "no gaps", "alone")
            tables[model, "asked"] = _table(title, columns)
            title = f"{model}: the same, made cheaper [modelled]"
            tables[model, "cheaper"] = _table(title, ("context x batch", "keep", *cheaper))
        step = f"{context:,} x {batch:,}", f"{keep:g}"
        tables[model, "asked"].add_row(
            *step,
            f"{found[first]['step_us'] / 1e3:,.1f}",
            f"{found[first]['moved_bytes'] / 1e9:,.1f}",
            f"{found[first]['unhidden_us'] / 1e3:,.1f}",
            *_growths(found, asked),
            _percent(found[first]["no_gaps"]),
            _percent(found[first]["attention_growth"]),
        )
        if any(manner in found for manner in cheaper):
            tables[model, "cheaper"].add_row(*step, *_growths(found, cheaper))
    return [*tables.values(), *(f"as {first} everywhere: {manner}" for manner in same)]


def _growths(found: Mapping[str, Mapping[str, Any]], manners: Sequence[str]) -> list[str]:
    """Return the growth of a step in each manner, - where there is none."""
    return [_percent(found[manner]["reached"]) if manner in found else "-" for manner in manners]


def _host_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return times over the DMA's, a line a rate of the memory and software, a column a size of pieces."""
    pieces = list(dict.fromkeys(int(row["piece_bytes"]) for row in rows))
    asked = rows[0]["asked"]
    title = f"host's way over the DMA's, by bytes that lie together; asked: {asked:g} [modelled]"
    table = _table(title, ("memory", "us a copy", *(f"{piece:,}" for piece in pieces)))
    found = {(row["memory_share"], row["call_us"], row["piece_bytes"]): row["reached"] for row in rows}
    for share, call in dict.fromkeys((row["memory_share"], row["call_us"]) for row in rows):
        table.add_row(f"{share:.0%}", f"{call:g}", *(f"{found[share, call, piece]:,.1f}" for piece in pieces))
    return table


def _host_line(rows: Sequence[dict[str, Any]]) -> str:
    """Return what a MiB takes the host with software, in pieces of one slot."""
    times = [row["mib_us"] / 1e3 for row in rows if row["asked"] is not None and row["call_us"]]
    piece = min(int(row["piece_bytes"]) for row in rows)
    return f"a MiB in pieces of {piece} B takes the host {min(times):.1f} to {max(times):.1f} ms; PAM prints above 500"


def _area_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = _table("area [measured-rtl; wires modelled: none]", ("what", "asked", "reached", "unit", "held", "note"))
    for row in rows:
        whole = row["unit"] == "GE"
        asked = "-" if row["asked"] is None else f"{row['asked']:.3f}"
        reached = f"{row['reached']:,.0f}" if whole else f"{row['reached']:.3f}"
        table.add_row(row["name"], asked, reached, row["unit"], _held(row), row["note"])
    return table


def _percent(part: float | None) -> str:
    """Return a part in hundredths, - for none."""
    return "-" if part is None else f"{part:.2%}" if part < 1 else f"{part:.0%}"


def _held(row: dict[str, Any]) -> str:
    """Return whether a row reaches what is asked of it."""
    return "-" if row["within"] is None else "yes" if row["within"] else "no"


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    left = {"model", "bound", "who asks", "held", "what", "unit", "note", "memory", "direction"}
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right")
    return table
