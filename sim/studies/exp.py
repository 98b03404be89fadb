"""The study of exponential units: a row a unit, with its error over all codes, its area and its delay."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sim.parallel import spread
from sim.studies.exp_area import pipelines
from sim.studies.exp_measure import UNIT_TOP, measure_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from golden.exp import ExpSpec

__all__ = ["RANKED_DIFFERENCE", "TOOL_NOISE", "combinational_units", "exp_rows", "mark_front"]

TOOL_NOISE = 0.035
"""Part of an area by which four paths through synthesis tools differ on one and the same design, up and down."""

RANKED_DIFFERENCE = 0.05
"""Part of an area below which a difference is no evidence."""


def exp_rows(
    units: Sequence[ExpSpec],
    liberty: Path | None = None,
    *,
    jobs: int = 1,
    progress: Callable[[str], None] = lambda text: None,
    pipelined: Callable[[Sequence[Mapping[str, Any]]], set[str]],
) -> list[dict[str, Any]]:
    """Return the rows of ``units``, in their order.

    Parameters
    ----------
    units : sequence of ExpSpec
        With different names.
    liberty : Path or None
        Cell library; None is the technology-neutral one of the package.
    jobs : int
        Units measured at a time, each in a process of its own.
    progress : callable
        Told of every unit that is done, and of the time that the rest will take.
    pipelined : callable
        Given all rows, names the combinational units to pipeline, each a minute of work or so.

    Returns
    -------
    list of dict
        Rows of :func:`sim.studies.exp_measure.measure_unit`, with ``pareto`` by :func:`mark_front`, and ``pipelined``
        by :func:`sim.studies.exp_area.pipelines` for the units that ``pipelined`` names.
    """
    say = _Progress(progress, len(units))
    measured: dict[int, dict[str, Any]] = {}
    for place, row in spread(measure_unit, ((spec, liberty) for spec in units), jobs=jobs):
        measured[place] = row
        say.done(f"{row['name']}: accuracy and area")
    rows = [measured[place] for place in range(len(units))]
    mark_front(rows)
    named = pipelined(rows) & combinational_units(rows)
    chosen = [(row, spec) for row, spec in zip(rows, units, strict=True) if row["name"] in named]
    say = _Progress(progress, len(chosen))
    for place, clocks in spread(pipelines, ((spec, UNIT_TOP, liberty) for _, spec in chosen), jobs=jobs):
        row, spec = chosen[place]
        row["pipelined"] = clocks
        say.done(f"{spec.name}: pipelines")
    return rows


class _Progress:
    """A line for each thing done, with the time that the rest will take at the pace so far."""

    def __init__(self, tell: Callable[[str], None], total: int) -> None:
        self._tell, self._total = tell, total
        self._start, self._done = time.monotonic(), 0

    def done(self, what: str) -> None:
        self._done += 1
        spent = time.monotonic() - self._start
        left = spent / self._done * (self._total - self._done)
        self._tell(f"[{self._done:2}/{self._total}, {spent:3.0f} s, about {left:.0f} s left] {what}")


def mark_front(rows: Sequence[dict[str, Any]]) -> None:
    """Set ``pareto`` of every row: whether no other unit beats it in largest error and area.

    One unit beats another if it serves wherever the other does (same format and layout in time; a full domain serves
    for a nonpositive one, rounded subnormals for flushed ones; its results come no more rarely), is neither larger nor
    errs more, and errs less or is smaller by at least :data:`RANKED_DIFFERENCE`. A unit that fails a property (bits of
    the golden model, monotone, specials) is on no front and beats none.
    """
    sound = [row for row in rows if _sound(row)]
    for row in rows:
        row["pareto"] = _sound(row) and not any(_beats(other, row) for other in sound)


def combinational_units(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of the sound combinational units: those that can be pipelined."""
    return {row["name"] for row in rows if _sound(row) and row["parameters"]["evaluation"] == "combinational"}


def _sound(row: Mapping[str, Any]) -> bool:
    return row["equal_to_golden"] and row["monotone"] and row["specials"]


def _beats(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if not _serves(one, other) or one["area_ge"] > other["area_ge"] or one["max_rel"] > other["max_rel"]:
        return False
    smaller = one["area_ge"] <= (1 - RANKED_DIFFERENCE) * other["area_ge"]
    return smaller or one["max_rel"] < other["max_rel"]


def _serves(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (
        one["format"] == other["format"]
        and one["parameters"]["evaluation"] == other["parameters"]["evaluation"]
        and one["interval_cycles"] <= other["interval_cycles"]
        and (one["domain"] == "full" or other["domain"] == "nonpositive")
        and (one["subnormals"] == "rounded" or other["subnormals"] == "flushed")
    )
