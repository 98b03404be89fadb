"""Rows of a trace file as text by lower-case key: CSV, TSV or one JSON object a line, whatever its line ends."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Row", "Rows", "split_rows"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its line, from 1, its fields, and why it can't be read, if it can't."""

    line: int
    fields: dict[str, Any]
    fault: str = ""


@dataclass(frozen=True)
class Rows:
    """All rows of a file, and the keys by which its format is told: the header, or the keys of the first object."""

    keys: frozenset[str]
    rows: tuple[Row, ...]


def split_rows(text: str, *, where: str) -> Rows:
    """Return the rows of ``text``; blank lines are none.

    Parameters
    ----------
    text : str
        The file, decoded; a byte-order mark may be left.
    where : str
        Name of the file, for errors.

    Raises
    ------
    ConfigError
        If a header names a column twice.
    """
    lines = [
        (number, line) for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1) if line.strip()
    ]
    if not lines:
        return Rows(frozenset(), ())
    if lines[0][1].lstrip().startswith("{"):
        rows = tuple(_object(number, line) for number, line in lines)
        first = next((row for row in rows if not row.fault), Row(0, {}))
        return Rows(frozenset(first.fields), rows)
    delimiter = "\t" if "\t" in lines[0][1] else ","
    header = [name.strip().lower() for name in next(csv.reader([lines[0][1]], delimiter=delimiter))]
    named = [name for name in header if name]
    if len(set(named)) != len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise ConfigError(f"{where}: header must name every column once, it names {twice!r} twice")
    return Rows(frozenset(named), tuple(_cells(header, lines[1:], delimiter)))


def _object(number: int, line: str) -> Row:
    """Return the row of one JSON object."""
    try:
        value: Any = json.loads(line)
    except ValueError:
        return Row(number, {}, "not a JSON object")
    if not isinstance(value, dict):
        return Row(number, {}, "not a JSON object")
    entries = cast("dict[str, Any]", value)
    return Row(number, {key.strip().lower(): entry for key, entry in entries.items()})


def _cells(header: list[str], lines: list[tuple[int, str]], delimiter: str) -> Iterator[Row]:
    """Yield the rows below a header."""
    for number, line in lines:
        # Line by line: a stray quote then spoils its own row, not all below it.
        cells = next(csv.reader([line], delimiter=delimiter))
        if len(cells) < len(header):
            yield Row(number, {}, f"fewer than the header's {len(header)} columns")
            continue
        # Columns beyond the header have no name, so nothing can ask for them.
        yield Row(number, {name: cell.strip() for name, cell in zip(header, cells, strict=False) if name})
