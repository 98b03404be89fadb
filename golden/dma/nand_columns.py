"""A flash memory as an interface sees it that writes and reads columns, cycle by cycle."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from golden.checks import require_int

if TYPE_CHECKING:
    from collections.abc import Hashable

    from golden.dma.nand import NandMemory

__all__ = ["NandAnswer", "NandColumns"]


class NandAnswer(NamedTuple):
    """A column that was read, and whether its page could not be corrected."""

    ticket: Hashable
    content: bytes
    error: bool


@dataclass
class _Read:
    ticket: Hashable
    slot: int
    column: int
    in_conflict: bool = False


@dataclass
class _Die:
    """What a die's buffers hold: slots of the page that it programs, and the page that it read last."""

    programmed: frozenset[int] = frozenset()
    programs: bool = False
    page: tuple[int, int] | None = None


class NandColumns:
    """The write buffer, the page buffers and the conflicts of a flash memory behind columns.

    =============  ====================================================================================================
    write          columns gather into a slot, which enters its die's write buffer when the last one is there. One that
                   completes a page waits while the die is busy, and all columns behind it: the memory is :attr:`full`
    read a buffer  a column that gathers, or whose slot waits in the write buffer or in the page that its die programs,
                   is answered at once. So is nearly every read-back of what was just written: it proves what arrived in
                   the write buffer, as the die itself checks what it programs
    read a page    any other waits until its die is idle and has read the page into its page buffer. Whatever was asked
                   of that page meanwhile, or is before the die does something else, costs nothing more
    conflict       a read that finds its die programming, collecting or erasing
    =============  ====================================================================================================

    An idle die reads before it programs: a read is short. Reads of one slot see every column of it that was written
    before they were asked for.

    Parameters
    ----------
    memory : NandMemory
        The memory; its times are those of its dies.
    columns : int
        Columns of a slot; they divide its bytes.
    cycle_s : float
        A cycle; dies are busy for whole ones, rounded up.

    Attributes
    ----------
    buffer_columns, page_columns : int
        Columns that were answered from the write buffer, and from pages.
    conflict_columns, conflict_cycles : int
        Columns that found their die at work on something else than a read, and cycles in which they did, summed.

    Raises
    ------
    TypeError, ValueError
        If ``columns`` is no integer or does not divide a slot.
    """

    def __init__(self, memory: NandMemory, *, columns: int, cycle_s: float) -> None:
        require_int("columns", columns, 1, memory.slot_bytes)
        if memory.slot_bytes % columns:
            raise ValueError(f"columns must divide the slot of {memory.slot_bytes} bytes, not {columns!r}")
        self.memory, self.columns, self.cycle_s = memory, columns, cycle_s
        self.cycle = 0
        self.buffer_columns = self.page_columns = self.conflict_columns = self.conflict_cycles = 0
        self._dies = [_Die() for _ in range(memory.geometry.dies)]
        self._arriving: deque[tuple[int, int, bytes]] = deque()
        self._gathering: dict[int, dict[int, bytes]] = {}
        self._reads: list[_Read] = []

    @property
    def full(self) -> bool:
        """Whether a column that was taken waits for its die."""
        return bool(self._arriving)

    @property
    def read_amplification(self) -> float:
        """Columns of the pages read for each column that was answered from one; 0 before the first."""
        read = self.memory.read_pages * self.memory.geometry.page_slots * self.columns
        return read / self.page_columns if self.page_columns else 0.0

    def write(self, slot: int, column: int, content: bytes) -> None:
        """Take a column.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot or column, or the column has other bytes.
        """
        self._check(slot, column)
        size = self.memory.slot_bytes // self.columns
        if len(content) != size:
            raise ValueError(f"content must have the {size} bytes of a column, not {len(content)}")
        self._arriving.append((slot, column, content))

    def ask(self, ticket: Hashable, slot: int, column: int) -> None:
        """Ask for a column, which is answered with ``ticket``.

        Raises
        ------
        TypeError, ValueError
            If there is no such slot or column.
        """
        self._check(slot, column)
        self._reads.append(_Read(ticket, slot, column))

    def reset(self) -> None:
        """Forget reads, and slots of which a column is missing; what is in the write buffer or in a page stays."""
        self._arriving.clear()
        self._gathering.clear()
        self._reads.clear()

    def tick(self) -> list[NandAnswer]:
        """Let a cycle pass; return what is answered in it."""
        self.cycle += 1
        self.memory.now_s = self.cycle * self.cycle_s
        for number, die in enumerate(self._dies):
            if die.programs and self._is_idle(number):
                self._dies[number] = _Die()
        answers = self._answers()
        while self._arriving and self._gather(*self._arriving[0]):
            self._arriving.popleft()
        return answers

    def _check(self, slot: int, column: int) -> None:
        require_int("slot", slot, 0, self.memory.slots - 1)
        require_int("column", column, 0, self.columns - 1)

    def _is_idle(self, slot: int) -> bool:
        """Return whether a slot's die has nothing to do."""
        return ceil(self.memory.busy_until_s(slot) / self.cycle_s - 1e-6) <= self.cycle

    def _gather(self, slot: int, column: int, content: bytes) -> bool:
        """Put a column to the others of its slot unless that has to wait; return whether it did not."""
        gathered = self._gathering.get(slot, {}) | {column: content}
        if len(gathered) < self.columns:
            self._gathering[slot] = gathered
            return True
        page = self.memory.buffered(slot) | {slot}
        fills = len(page) == self.memory.geometry.page_slots
        if fills and not self._is_idle(slot):
            return False
        self._gathering.pop(slot, None)
        self.memory.write(slot, b"".join(gathered[place] for place in range(self.columns)))
        if fills:
            self._dies[slot % len(self._dies)] = _Die(programmed=page, programs=True)
        return True

    def _answers(self) -> list[NandAnswer]:
        """Answer what can be, and have idle dies read the pages of the oldest other reads."""
        answers: list[NandAnswer] = []
        waiting: list[_Read] = []
        behind = {slot for slot, _, _ in self._arriving}
        for read in self._reads:
            answer = None if read.slot in behind else self._answer(read)
            if answer is None:
                waiting.append(read)
            else:
                answers.append(answer)
        self._reads = waiting
        return answers

    def _answer(self, read: _Read) -> NandAnswer | None:
        memory, slot = self.memory, read.slot
        gathered = self._gathering.get(slot, {}).get(read.column)
        if gathered is not None:
            self.buffer_columns += 1
            return NandAnswer(read.ticket, gathered, error=False)
        die, page = self._dies[slot % len(self._dies)], memory.page_of(slot)
        if page is None or slot in die.programmed:
            self.buffer_columns += 1
            return self._held(read)
        if not self._is_idle(slot):
            self.conflict_columns += die.programs and not read.in_conflict
            self.conflict_cycles += die.programs
            read.in_conflict |= die.programs
            return None
        if page == die.page:
            self.page_columns += 1
            return self._held(read)
        memory.read_page(slot)
        die.page = page
        return None

    def _held(self, read: _Read) -> NandAnswer:
        size = self.memory.slot_bytes // self.columns
        content = self.memory.held(read.slot)[read.column * size : (read.column + 1) * size]
        return NandAnswer(read.ticket, content, error=self.memory.is_damaged(read.slot))
