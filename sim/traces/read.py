"""Reads a trace file, whichever format it has."""

from __future__ import annotations

import hashlib
import itertools
from decimal import Decimal
from typing import TYPE_CHECKING

from sim.errors import ConfigError
from sim.traces.fields import FieldError
from sim.traces.formats import FORMATS, RowRequest, find_format
from sim.traces.rows import split_rows
from sim.traces.trace import SkippedLine, Trace, TraceRequest

if TYPE_CHECKING:
    from pathlib import Path

    from sim.traces.formats import TraceFormat
    from sim.traces.rows import Rows

__all__ = ["read_trace"]

_NO_INPUT = "no input tokens"
_NO_OUTPUT = "no output tokens: a request that failed"


def read_trace(path: Path) -> Trace:
    """Return the requests of a file.

    The format is told by the header or the keys of the first object. Rows that are no request, for example those that
    failed and have no output, are kept with their reason. Arrivals are counted from the first request's.

    Parameters
    ----------
    path : Path
        A file of one of :data:`sim.traces.formats.FORMATS`.

    Raises
    ------
    ConfigError
        If the file can't be read, is no text, or has the keys of no format.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: trace must be a readable file: {error.strerror}") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: trace must be a text file in UTF-8") from None
    rows = split_rows(text, where=str(path))
    sha256 = hashlib.sha256(content).hexdigest()
    if not rows.keys and not rows.rows:
        return Trace(
            name=path.name, format="empty", sha256=sha256, requests=(), skipped=(), oddities={}, has_arrivals=False
        )
    form = find_format(rows.keys)
    if form is None:
        wanted = "; ".join(f"{form.name}: {', '.join(sorted(form.keys))}" for form in FORMATS)
        raise ConfigError(
            f"{path}: trace must have the keys of a format ({wanted}), not {', '.join(sorted(rows.keys))}"
        )
    return _trace(path.name, sha256, form, rows)


def _trace(name: str, sha256: str, form: TraceFormat, rows: Rows) -> Trace:
    """Return the trace of a file whose format is known."""
    found: list[tuple[int, RowRequest]] = []
    skipped: list[SkippedLine] = []
    for row in rows.rows:
        try:
            if row.fault:
                raise FieldError(row.fault)
            request = form.read(row.fields)
            if not request.input_tokens or not request.output_tokens:
                raise FieldError(_NO_OUTPUT if request.input_tokens else _NO_INPUT)
        except FieldError as error:
            skipped.append(SkippedLine(row.line, str(error)))
        else:
            found.append((row.line, request))
    has_arrivals = any(key in rows.keys for key in form.arrival_keys)
    requests, oddities = _in_time(found)
    return Trace(
        name=name,
        format=form.name,
        sha256=sha256,
        requests=requests,
        skipped=tuple(skipped),
        oddities=oddities,
        has_arrivals=has_arrivals,
        block_tokens=form.block_tokens,
    )


def _in_time(found: list[tuple[int, RowRequest]]) -> tuple[tuple[TraceRequest, ...], dict[str, int]]:
    """Return the requests in the order of arrival, and how often something odd was met."""
    arrivals = _arrivals(found)
    order = sorted(range(len(found)), key=arrivals.__getitem__)
    start = arrivals[order[0]] if order else Decimal(0)
    counts = {
        "rows out of order": sum(now < before for before, now in itertools.pairwise(arrivals)),
        "arrivals of one moment": len(arrivals) - len(set(arrivals)),
        "contexts that shrink": 0,
        "calls before the end of the one before": 0,
    }
    requests: list[TraceRequest] = []
    last: dict[str, tuple[RowRequest, Decimal]] = {}
    for index in order:
        line, row = found[index]
        gap = Decimal(0)
        if row.session and row.session in last:
            before, before_arrival = last[row.session]
            gap = arrivals[index] - (before.end_s if before.end_s is not None else before_arrival)
            counts["contexts that shrink"] += row.input_tokens < before.input_tokens
            counts["calls before the end of the one before"] += gap < 0
        if row.session:
            last[row.session] = (row, arrivals[index])
        requests.append(
            TraceRequest(
                line=line,
                arrival_s=float(arrivals[index] - start),
                input_tokens=row.input_tokens,
                output_tokens=row.output_tokens,
                session=row.session,
                gap_s=float(max(gap, Decimal(0))),
                blocks=row.blocks,
            )
        )
    return tuple(requests), {name: count for name, count in counts.items() if count}


def _arrivals(found: list[tuple[int, RowRequest]]) -> list[Decimal]:
    """Return when each request arrives, in the file's own time; 0 where the file does not say."""
    moments: list[Decimal] = []
    last: dict[str, Decimal] = {}
    for _, row in found:
        moment = row.arrival_s if row.arrival_s is not None else Decimal(0)
        if row.since_last_s is not None:
            moment = last.get(row.session, Decimal(0)) + (row.since_last_s if row.session in last else 0)
            last[row.session] = moment
        moments.append(moment)
    return moments
