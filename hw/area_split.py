"""Area of the two large units as datapath, buffer and control, which published splits speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.synth_parts import sum_areas

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hw.synth_parts import CellArea, ModuleArea

__all__ = ["DATAPATHS", "AreaSplit", "split_area"]

DATAPATHS = {
    "processing": frozenset({"array", "softmax"}),
    "reduction": frozenset({"lanes", "compare", "exponentials", "multiply", "add"}),
}
"""Instances in which a unit computes, pipeline registers included; beside them stands what controls them."""


@dataclass(frozen=True)
class AreaSplit:
    """Area of a unit.

    Parameters
    ----------
    datapath : CellArea
        Arithmetic with its pipeline registers, arrays left out.
    buffer : CellArea
        Arrays wherever they are: vectors, scores, sums, queues.
    control : CellArea
        The rest: sequencers, permissions, handshakes, registers of results.
    """

    datapath: CellArea
    buffer: CellArea
    control: CellArea

    @property
    def total(self) -> CellArea:
        """All three."""
        return sum_areas([self.datapath, self.buffer, self.control])

    def share(self, kind: str) -> float:
        """Return the part of the area that is ``datapath``, ``buffer`` or ``control``."""
        return getattr(self, kind).area_ge / self.total.area_ge


def split_area(areas: Iterable[ModuleArea], unit: str) -> AreaSplit:
    """Split the modules of a unit.

    Parameters
    ----------
    areas : iterable of ModuleArea
        Those of the unit, from :func:`hw.synth_parts.module_areas`.
    unit : str
        Key of :data:`DATAPATHS`.

    Raises
    ------
    KeyError
        If there is no such unit.
    ValueError
        If none of the modules is part of a datapath.
    """
    computing = DATAPATHS[unit]
    found: dict[bool, list[CellArea]] = {True: [], False: []}
    memories: list[CellArea] = []
    for area in areas:
        found[not computing.isdisjoint(area.path.split("/"))].append(area.logic)
        memories.append(area.memory)
    if not found[True]:
        raise ValueError(f"modules of {unit} must be in one of {', '.join(sorted(computing))}, none is")
    return AreaSplit(sum_areas(found[True]), sum_areas(memories), sum_areas(found[False]))
