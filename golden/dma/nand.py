"""A flash memory behind slots: pages written out of place, a write buffer, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, field

from golden.checks import require_int
from golden.dma.memory import UncorrectableError
from golden.dma.nand_geometry import NandGeometry, NandTimes

__all__ = ["NandGeometry", "NandMemory", "NandTimes"]


@dataclass
class _Die:
    """State of one die; a page holds the slots that were programmed to it, valid or not."""

    free: list[int]
    open_block: int
    open_page: int = 0
    buffer: dict[int, bytes] = field(default_factory=dict[int, bytes])
    pages: dict[tuple[int, int], dict[int, bytes]] = field(default_factory=dict[tuple[int, int], dict[int, bytes]])
    where: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    busy_until_s: float = 0.0


class NandMemory:
    """Slots on flash. Slot s belongs to die ``s % dies``; within a die it may lie in any page.

    A written slot waits in its die's write buffer until a page of them has gathered, and is then programmed with them
    to the next page of the open block. The page that held it before keeps the old bytes until its block is erased. When
    the open block is full and one free block is left, that block becomes the open one, the block with the fewest valid
    slots (the lowest number among several) is copied into it and erased.

    The write buffer counts as part of the memory: it must survive what the memory must survive.

    Parameters
    ----------
    name : str
        The memory.
    slots, slot_bytes : int
        Slots offered, at most ``geometry.max_slots``, and bytes of each.
    geometry : NandGeometry
        Division.
    times : NandTimes
        Durations.

    Attributes
    ----------
    now_s : float
        Time of the next operation; the caller sets it.
    ready_s : float
        When the last operation ended: a die does one thing at a time, so that a read waits for a program before it.
    written_slots, programmed_pages, erased_blocks, requested_slots, read_pages : int
        What was asked for, and what was done for it. ``read_pages`` leaves collection out; its reads are
        ``collected_pages``.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or out of range.
    """

    def __init__(self, name: str, slots: int, slot_bytes: int, geometry: NandGeometry, times: NandTimes) -> None:
        require_int("slots", slots, 0, geometry.max_slots)
        require_int("slot_bytes", slot_bytes, 1)
        self.name = name
        self.slots = slots
        self.slot_bytes = slot_bytes
        self.geometry = geometry
        self.times = times
        self.now_s = self.ready_s = 0.0
        self.written_slots = self.programmed_pages = self.erased_blocks = 0
        self.requested_slots = self.read_pages = self.collected_pages = 0
        self._dies = [_Die(list(range(1, geometry.blocks)), 0) for _ in range(geometry.dies)]
        self._damaged: set[int] = set()

    @property
    def write_amplification(self) -> float:
        """Slots' room programmed, collection included, for each slot written; 0 before the first program."""
        return self.programmed_pages * self.geometry.page_slots / self.written_slots if self.written_slots else 0.0

    @property
    def read_amplification(self) -> float:
        """Slots read from flash for each slot asked for; 0 before the first read."""
        return self.read_pages * self.geometry.page_slots / self.requested_slots if self.requested_slots else 0.0

    def read(self, slot: int) -> bytes:
        """Return the bytes of a slot, zeros where it was never written.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot.
        UncorrectableError
            If it is damaged.
        """
        return self.read_many([slot])[0]

    def read_many(self, slots: list[int]) -> list[bytes]:
        """Return the bytes of several slots; a page that holds more than one of them is read once.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot.
        UncorrectableError
            If one is damaged.
        """
        found: list[bytes] = []
        seen: set[tuple[int, tuple[int, int]]] = set()
        self.requested_slots += len(slots)
        self.ready_s = self.now_s
        for slot in slots:
            place = self.page_of(slot)
            die = slot % self.geometry.dies
            if place is not None and (die, place) not in seen:
                seen.add((die, place))
                self.read_page(slot)
            if self.is_damaged(slot):
                raise UncorrectableError(f"slot {slot} of {self.name} must be readable, it is damaged")
            found.append(self.held(slot))
        return found

    def read_page(self, slot: int) -> None:
        """Read the page that holds a slot, which keeps its die busy.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot, or no page holds it.
        """
        if self.page_of(slot) is None:
            raise ValueError(f"slot {slot} of {self.name} must be in a page, it is not")
        self.read_pages += 1
        self._occupy(self._die(slot), self.times.read_s)

    def page_of(self, slot: int) -> tuple[int, int] | None:
        """Return block and page of a slot in its die; None while it is in the write buffer or was never written.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot.
        """
        die = self._die(slot)
        return None if slot in die.buffer else die.where.get(slot)

    def held(self, slot: int) -> bytes:
        """Return the bytes of a slot as they lie there, damaged or not, at no cost.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot.
        """
        place, die = self.page_of(slot), self._die(slot)
        return die.buffer.get(slot, bytes(self.slot_bytes)) if place is None else die.pages[place][slot]

    def busy_until_s(self, slot: int) -> float:
        """Return when the die of a slot has done all that it was given.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot.
        """
        return self._die(slot).busy_until_s

    def buffered(self, slot: int) -> frozenset[int]:
        """Return the slots in the write buffer of a slot's die.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot.
        """
        return frozenset(self._die(slot).buffer)

    def damage(self, slot: int) -> None:
        """Make a slot unreadable until it is written again, whichever page it is copied to.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot.
        """
        self._die(slot)
        self._damaged.add(slot)

    def is_damaged(self, slot: int) -> bool:
        """Return whether a slot is unreadable."""
        return slot in self._damaged

    def write(self, slot: int, content: bytes) -> None:
        """Write the first bytes of a slot; the rest becomes zeros, and damage is gone.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot, or it has fewer bytes.
        """
        die = self._die(slot)
        require_int("content bytes", len(content), 0, self.slot_bytes)
        self._damaged.discard(slot)
        self.written_slots += 1
        self.ready_s = self.now_s
        die.buffer[slot] = content + bytes(self.slot_bytes - len(content))
        if len(die.buffer) == self.geometry.page_slots:
            gathered, die.buffer = die.buffer, {}
            self._program(die, gathered)
            self._make_room(die)

    def _die(self, slot: int) -> _Die:
        require_int(f"slot of {self.name}", slot, 0, self.slots - 1)
        return self._dies[slot % self.geometry.dies]

    def _occupy(self, die: _Die, duration_s: float) -> None:
        die.busy_until_s = max(die.busy_until_s, self.now_s) + duration_s
        self.ready_s = max(self.ready_s, die.busy_until_s)

    def _program(self, die: _Die, content: dict[int, bytes]) -> None:
        place = (die.open_block, die.open_page)
        die.pages[place] = content
        die.where |= dict.fromkeys(content, place)
        die.open_page += 1
        self.programmed_pages += 1
        self._occupy(die, self.times.program_s)

    def _make_room(self, die: _Die) -> None:
        """Have a page to program to: the next block, or the last free one with another block's valid slots in it."""
        if die.open_page < self.geometry.pages:
            return
        die.open_block, die.open_page = die.free.pop(0), 0
        if die.free:
            return
        valid = {block: self._valid(die, block) for block in range(self.geometry.blocks) if block != die.open_block}
        victim = min(valid, key=lambda block: (len(valid[block]), block))
        for page in range(self.geometry.pages):
            if any(die.where.get(slot) == (victim, page) for slot in die.pages[victim, page]):
                self.collected_pages += 1
                self._occupy(die, self.times.read_s)
        moved = list(valid[victim].items())
        for start in range(0, len(moved), self.geometry.page_slots):
            self._program(die, dict(moved[start : start + self.geometry.page_slots]))
        for page in range(self.geometry.pages):
            del die.pages[victim, page]
        die.free.append(victim)
        self.erased_blocks += 1
        self._occupy(die, self.times.erase_s)

    def _valid(self, die: _Die, block: int) -> dict[int, bytes]:
        return {
            slot: content
            for page in range(self.geometry.pages)
            for slot, content in die.pages[block, page].items()
            if die.where[slot] == (block, page)
        }
