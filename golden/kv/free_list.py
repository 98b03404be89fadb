"""Free slots of one memory."""

from __future__ import annotations

from collections import deque

from golden.checks import require_int

__all__ = ["FreeList", "FullError"]


class FullError(Exception):
    """A memory has no free slot."""


class FreeList:
    """Slots of a memory, each either free or taken; ``free + taken == slots`` at every time.

    Slots are given out in the order in which they became free, so that none is used again sooner than it must.

    Parameters
    ----------
    name : str
        The memory, for messages.
    slots : int
        Its slots, all free at first.

    Raises
    ------
    TypeError, ValueError
        If ``slots`` is no integer of at least 0.
    """

    def __init__(self, name: str, slots: int) -> None:
        require_int("slots", slots, 0)
        self.name = name
        self.slots = slots
        self._free = deque(range(slots))
        self._taken: set[int] = set()

    @property
    def free(self) -> int:
        """Number of free slots."""
        return len(self._free)

    @property
    def taken(self) -> frozenset[int]:
        """The slots that are taken."""
        return frozenset(self._taken)

    def take(self) -> int:
        """Take one free slot and return its number.

        Raises
        ------
        FullError
            If there is none.
        """
        if not self._free:
            raise FullError(f"{self.name} must have a free slot, all {self.slots} are taken")
        slot = self._free.popleft()
        self._taken.add(slot)
        return slot

    def release(self, slot: int) -> None:
        """Make one taken slot free.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot, or it is free already.
        """
        require_int(f"slot of {self.name}", slot, 0, self.slots - 1)
        if slot not in self._taken:
            raise ValueError(f"slot of {self.name} must be a taken one, not {slot!r}")
        self._taken.remove(slot)
        self._free.append(slot)
