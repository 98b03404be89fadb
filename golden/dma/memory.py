"""A memory as the DMA sees it: slots of bytes, some of which can't be read."""

from __future__ import annotations

from typing import Protocol

from golden.checks import require_int

__all__ = ["Memory", "SlotMemory", "UncorrectableError"]


class UncorrectableError(Exception):
    """A slot's bytes are lost to the memory itself: its error correction gave up."""


class Memory(Protocol):
    """What a move asks of a memory, whatever it is made of."""

    name: str
    slots: int
    slot_bytes: int

    def read(self, slot: int) -> bytes:
        """Return the bytes of a slot; raise :class:`UncorrectableError` where they are lost."""
        ...

    def write(self, slot: int, content: bytes) -> None:
        """Write the first bytes of a slot; the rest becomes zeros."""
        ...


class SlotMemory:
    """Slots of one memory; what was not written reads as zeros.

    Parameters
    ----------
    name : str
        The memory.
    slots, slot_bytes : int
        Slots, and bytes of each.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer, ``slots`` below 0 or ``slot_bytes`` below 1.
    """

    def __init__(self, name: str, slots: int, slot_bytes: int) -> None:
        require_int("slots", slots, 0)
        require_int("slot_bytes", slot_bytes, 1)
        self.name = name
        self.slots = slots
        self.slot_bytes = slot_bytes
        self._content: dict[int, bytes] = {}
        self._damaged: set[int] = set()

    def read(self, slot: int) -> bytes:
        """Return the bytes of a slot.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot.
        UncorrectableError
            If it is damaged.
        """
        self._check(slot)
        if slot in self._damaged:
            raise UncorrectableError(f"slot {slot} of {self.name} must be readable, it is damaged")
        return self._content.get(slot, bytes(self.slot_bytes))

    def write(self, slot: int, content: bytes) -> None:
        """Write the first bytes of a slot; the rest becomes zeros, and damage is gone.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot, or it has fewer bytes.
        """
        self._check(slot)
        require_int("content bytes", len(content), 0, self.slot_bytes)
        self._content[slot] = content + bytes(self.slot_bytes - len(content))
        self._damaged.discard(slot)

    def damage(self, slot: int) -> None:
        """Make a slot unreadable until it is written again.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot.
        """
        self._check(slot)
        self._damaged.add(slot)

    def _check(self, slot: int) -> None:
        require_int(f"slot of {self.name}", slot, 0, self.slots - 1)
