"""Division of a flash memory, and how long its dies are busy."""

from __future__ import annotations

from dataclasses import dataclass, fields

from golden.checks import require_int

__all__ = ["NandGeometry", "NandTimes"]


@dataclass(frozen=True, kw_only=True)
class NandGeometry:
    """Division of the memory.

    Parameters
    ----------
    dies, blocks, pages, page_slots : int
        Dies, blocks of a die, pages of a block, slots of a page. Each at least 1, blocks and pages at least 2.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or too small.
    """

    dies: int
    blocks: int
    pages: int
    page_slots: int

    def __post_init__(self) -> None:
        for item in fields(self):
            require_int(item.name, getattr(self, item.name), 2 if item.name in ("blocks", "pages") else 1)

    @property
    def max_slots(self) -> int:
        """Most slots that a memory of this geometry may offer: ``dies * (blocks - 1) * (pages - 1) * page_slots``.

        One block a die is free for collection. The fullest choice it can have is that every other block holds
        ``(pages - 1) * page_slots`` valid slots: it then moves one and still gains a page.
        """
        return self.dies * (self.blocks - 1) * (self.pages - 1) * self.page_slots


@dataclass(frozen=True, kw_only=True)
class NandTimes:
    """How long a die is busy.

    Parameters
    ----------
    read_s, program_s, erase_s : float
        Reading a page, programming a page, erasing a block: tR, tPROG, tBERS.
    """

    read_s: float
    program_s: float
    erase_s: float
