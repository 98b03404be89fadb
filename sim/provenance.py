"""What a number is: measured, proven, printed, fitted or modelled, and what it was made from.

The classes from strongest to weakest:

``measured-rtl``
    read from a simulation of the Verilog, whose sha256 the source names;
``formula-rtl``
    a formula of :mod:`hw.timing`, which the test suite holds equal to the RTL;
``literature``
    printed in the source named;
``calibrated``
    a free factor of ``calibration.toml``, within its bounds;
``modelled``
    follows from assumptions of this program.

A number made from several carries the weakest class among them, and lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CLASSES", "Part", "Provenance", "combine"]

CLASSES = ("measured-rtl", "formula-rtl", "literature", "calibrated", "modelled")


@dataclass(frozen=True)
class Part:
    """One ingredient of a number.

    Parameters
    ----------
    name : str
        What the ingredient is.
    kind : str
        Its class, one of :data:`CLASSES`.
    source : str
        Where it comes from.

    Raises
    ------
    ValueError
        If ``kind`` is not a class or ``source`` is empty.
    """

    name: str
    kind: str
    source: str

    def __post_init__(self) -> None:
        if self.kind not in CLASSES:
            raise ValueError(f"kind must be one of {', '.join(CLASSES)}, not {self.kind!r}")
        if not self.source:
            raise ValueError(f"source of {self.name} must say where the number comes from, not be empty")

    def to_dict(self) -> dict[str, str]:
        """Return the part as it stands in a report."""
        return {"name": self.name, "class": self.kind, "source": self.source}


@dataclass(frozen=True)
class Provenance:
    """Class and ingredients of one number.

    Parameters
    ----------
    kind : str
        The weakest class among ``parts``.
    parts : tuple of Part
        In the order in which they were named first.
    """

    kind: str
    parts: tuple[Part, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return class and parts as they stand in a report."""
        return {"class": self.kind, "parts": [part.to_dict() for part in self.parts]}


def combine(items: Iterable[Part | Provenance]) -> Provenance:
    """Return the provenance of a number made from ``items``: the weakest class, every part once.

    Raises
    ------
    ValueError
        If there are no items.
    """
    parts: dict[Part, None] = {}
    for item in items:
        parts.update(dict.fromkeys(item.parts if isinstance(item, Provenance) else (item,)))
    if not parts:
        raise ValueError("items must hold at least one part, not none")
    return Provenance(max((part.kind for part in parts), key=CLASSES.index), tuple(parts))
