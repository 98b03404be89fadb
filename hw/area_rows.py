"""Area of a design by what it is made of, each kind of module counted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.synth_parts import sum_areas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hw.synth_parts import CellArea, ModuleArea

__all__ = ["AreaRow", "area_rows"]

_NUMBER = re.compile(r"_\d+$")


@dataclass(frozen=True)
class AreaRow:
    """Alike modules of a design, those that have rows of their own left out.

    Parameters
    ----------
    name : str
        Module, or block of the top module.
    count : int
        How often it stands there.
    total, memory : CellArea
        All of them together, and the arrays in them.
    """

    name: str
    count: int
    total: CellArea
    memory: CellArea

    @property
    def each_ge(self) -> float:
        """Area of one, the mean where neighbours make them differ."""
        return self.total.area_ge / self.count


def area_rows(areas: Sequence[ModuleArea], modules: Sequence[str], blocks: Sequence[str]) -> list[AreaRow]:
    """Sum the modules of a design up to rows.

    Parameters
    ----------
    areas : sequence of ModuleArea
        Every module, those above before those inside.
    modules : sequence of str
        Names of modules with a row of their own, the top one last; the row holds all inside that has none.
    blocks : sequence of str
        Instances of the top module with a row of their own; those whose names differ in a number behind an underscore
        share it.

    Returns
    -------
    list of AreaRow
        In the order of ``modules``, then of ``blocks``.
    """
    order = dict.fromkeys([*modules, *(_NUMBER.sub("", block) for block in blocks)])
    counts = dict.fromkeys(order, 0)
    held: dict[str, list[ModuleArea]] = {name: [] for name in order}
    rows: dict[str, str] = {}
    for area in areas:
        above, _, instance = area.path.rpartition("/")
        if area.module in order or (above == "" and instance in blocks):
            row = area.module if area.module in order else _NUMBER.sub("", instance)
            counts[row] += 1
        else:
            row = rows[above]
        rows[area.path] = row
        held[row].append(area)
    return [
        AreaRow(
            name,
            counts[name],
            sum_areas([part for area in held[name] for part in (area.logic, area.memory)]),
            sum_areas(area.memory for area in held[name]),
        )
        for name in order
        if counts[name]
    ]
