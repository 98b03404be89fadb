"""Timing tables and arcs of liberty files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.liberty_groups import Group, LibertyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Arc", "Table", "read_arcs"]

_KINDS = {
    "combinational": "combinational",
    "rising_edge": "edge",
    "falling_edge": "edge",
    "setup_rising": "setup",
    "setup_falling": "setup",
}


@dataclass(frozen=True)
class Table:
    """A table over input transition (rows) and load (columns), bilinear between its points and beyond them.

    Parameters
    ----------
    slews, loads : tuple of float
        Axes; one point means that the value does not depend on that axis.
    values : tuple of tuple of float
        One row a slew.
    """

    slews: tuple[float, ...]
    loads: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]

    def at(self, slew: float, load: float) -> float:
        """Return the value at a transition and a load, in the units of the library."""
        row, upper_row, weight = _bracket(self.slews, slew)
        column, upper_column, along = _bracket(self.loads, load)
        low, high = self.values[row], self.values[upper_row]
        left = low[column] + weight * (high[column] - low[column])
        right = low[upper_column] + weight * (high[upper_column] - low[upper_column])
        return left + along * (right - left)


@dataclass(frozen=True)
class Arc:
    """How an edge of one input becomes edges of one output, or what setup an input needs.

    Parameters
    ----------
    source : str
        Input pin.
    sense : str
        ``positive_unate``, ``negative_unate`` or ``non_unate``.
    kind : {"combinational", "edge", "setup"}
        ``edge`` runs from the clock of a flip-flop to its output. Of a ``setup`` arc, ``rise`` and ``fall`` are
        the times by which the data pin must be there before the clock edge, over its own and the clock's transition.
    rise, fall : Table
        Delay of the output's edges.
    rise_slew, fall_slew : Table
        Transition of the output's edges; nothing for setup.
    """

    source: str
    sense: str
    kind: str
    rise: Table
    fall: Table
    rise_slew: Table
    fall_slew: Table


_NO_TIME = Table((0.0,), (0.0,), ((0.0,),))


def read_arcs(timing: Group, templates: Mapping[str, Group]) -> Iterable[Arc]:
    """Yield the arcs of a ``timing`` group, one a related pin; kinds that say nothing of delay or setup have none."""
    kind = timing.attributes.get("timing_type", "combinational")
    if kind not in _KINDS:
        return
    names = ("rise_constraint", "fall_constraint") if _KINDS[kind] == "setup" else ("cell_rise", "cell_fall")
    tables = {
        name: _table(group, templates)
        for name in (*names, "rise_transition", "fall_transition")
        for group in timing.groups(name)
    }
    if not tables.keys() & set(names):
        return
    # A gate may list one edge only; it then counts for both.
    rise, fall = (tables.get(name) or tables[next(n for n in names if n in tables)] for name in names)
    for source in timing.attributes.get("related_pin", "").split():
        yield Arc(
            source=source,
            sense=timing.attributes.get("timing_sense", "non_unate"),
            kind=_KINDS[kind],
            rise=rise,
            fall=fall,
            rise_slew=tables.get("rise_transition", _NO_TIME),
            fall_slew=tables.get("fall_transition", _NO_TIME),
        )


def _table(group: Group, templates: Mapping[str, Group]) -> Table:
    template = templates.get(group.label)
    axes: dict[str, tuple[float, ...]] = {}
    for number in (1, 2):
        text = group.lists.get(f"index_{number}") or (template.lists.get(f"index_{number}") if template else None)
        variable = template.attributes.get(f"variable_{number}", "") if template else ""
        axes[f"{number}"] = tuple(float(entry) for entry in text or ()) if variable or text else ()
    numbers = [float(entry) for entry in group.lists.get("values", ())]
    first = template.attributes.get("variable_1", "") if template else ""
    loads_first = "capacitance" in first
    one, two = axes["1"] or (0.0,), axes["2"] or (0.0,)
    if len(numbers) == 1:
        one, two = (0.0,), (0.0,)
    if len(numbers) != len(one) * len(two):
        raise LibertyError(
            f"table {group.label or 'scalar'} must have {len(one) * len(two)} values, not {len(numbers)}"
        )
    rows = [tuple(numbers[i * len(two) : (i + 1) * len(two)]) for i in range(len(one))]
    if loads_first:
        return Table(two, one, tuple(zip(*rows, strict=True)))
    return Table(one, two, tuple(rows))


def _bracket(axis: tuple[float, ...], value: float) -> tuple[int, int, float]:
    """Return the two points around ``value`` and its place between them; beyond the ends, those of the last pair."""
    if len(axis) == 1:
        return 0, 0, 0.0
    upper = 1
    while upper < len(axis) - 1 and axis[upper] < value:
        upper += 1
    return upper - 1, upper, (value - axis[upper - 1]) / (axis[upper] - axis[upper - 1])
