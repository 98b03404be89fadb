"""Promise: flash behind columns answers with what was written, and counts what its buffers save and conflicts cost."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.dma.nand import NandGeometry, NandMemory, NandTimes
from golden.dma.nand_columns import NandColumns

TIMES = NandTimes(read_s=3.0, program_s=20.0, erase_s=50.0)
"""In cycles."""


def flash(*, dies: int = 1, page_slots: int = 2, slots: int = 8) -> NandColumns:
    geometry = NandGeometry(dies=dies, blocks=4, pages=3, page_slots=page_slots)
    return NandColumns(NandMemory("ssd", slots, 4, geometry, TIMES), columns=2, cycle_s=1.0)


def put(unit: NandColumns, *slots: int) -> None:
    for slot in slots:
        for column in range(2):
            unit.write(slot, column, bytes([slot, column]))


def answered(unit: NandColumns, cycles: int) -> list[tuple[int, object]]:
    """Let cycles pass; return cycle and ticket of every answer."""
    return [(unit.cycle, answer.ticket) for _ in range(cycles) for answer in unit.tick()]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 1 << 30))
def test_columns_come_back_as_they_were_written(dies: int, page_slots: int, seed: int) -> None:
    """Slots are written in any order of their columns and read while others are written; each read is answered once."""
    random = Random(seed)
    geometry = NandGeometry(dies=dies, blocks=3, pages=3, page_slots=page_slots)
    memory = NandMemory("ssd", geometry.max_slots, 4, geometry, TIMES)
    unit = NandColumns(memory, columns=2, cycle_s=1.0)
    wanted = {(slot, column): bytes(2) for slot in range(memory.slots) for column in range(2)}
    asked: dict[int, tuple[int, int]] = {}
    due: dict[int, bytes] = {}
    for number in range(400):
        if random.random() < 0.2 and not unit.full:
            slot = random.randrange(memory.slots)
            if all(slot != read for read, _ in asked.values()):
                for column in random.sample(range(2), 2):
                    wanted[slot, column] = number.to_bytes(2, "little")
                    unit.write(slot, column, wanted[slot, column])
        if random.random() < 0.2:
            place = random.choice(list(wanted))
            asked[number], due[number] = place, wanted[place]
            unit.ask(number, *place)
        for answer in unit.tick():
            assert (answer.content, answer.error) == (due.pop(answer.ticket), False)
            del asked[answer.ticket]
    for _ in range(4000):
        for answer in unit.tick():
            assert answer.content == due.pop(answer.ticket)
    assert not due
    assert not unit.full


def test_what_was_just_written_is_read_from_the_write_buffer() -> None:
    """Slot 0 waits for another, then both are programmed in cycles 2 to 22, and still are in the buffer meanwhile."""
    unit = flash()
    put(unit, 0)
    unit.ask("alone", 0, 1)
    unit.tick()
    put(unit, 1)
    assert answered(unit, 1) == [(2, "alone")]
    for column in range(2):
        unit.ask(column, 0, column)
    assert answered(unit, 1) == [(3, 0), (3, 1)]
    assert (unit.buffer_columns, unit.page_columns, unit.memory.read_pages) == (3, 0, 0)


def test_a_page_is_read_once_for_all_that_is_asked_of_it() -> None:
    """Both slots, both columns, in any order and late: one read, of 3 cycles. Another page takes another."""
    unit = flash()
    put(unit, 0, 1, 2, 3)
    answered(unit, 50)
    for ticket in ("a", "b"):
        unit.ask(ticket, 1, 0)
    unit.ask("c", 0, 1)
    assert answered(unit, 4) == [(54, "a"), (54, "b"), (54, "c")]
    unit.ask("late", 0, 0)
    assert answered(unit, 1) == [(55, "late")]
    assert (unit.memory.read_pages, unit.page_columns, unit.read_amplification) == (1, 4, 1.0)
    unit.ask("other", 2, 0)
    assert answered(unit, 4) == [(59, "other")]
    assert (unit.memory.read_pages, unit.read_amplification) == (2, 8 / 5)


def test_a_lone_slot_costs_its_page() -> None:
    """A slot of 512 B in a page of 32 of them: 32 times what was asked for."""
    geometry = NandGeometry(dies=1, blocks=4, pages=2, page_slots=32)
    unit = NandColumns(NandMemory("ssd", 32, 512, geometry, TIMES), columns=16, cycle_s=1.0)
    for slot in range(32):
        for column in range(16):
            unit.write(slot, column, bytes(32))
    answered(unit, 30)
    for column in range(16):
        unit.ask(column, 7, column)
    assert len(answered(unit, 5)) == 16
    assert unit.read_amplification == 32.0


def test_a_read_waits_for_a_program_of_its_die_only() -> None:
    """Die 0 programs slots 4 and 6 in cycles 41 to 61 while slot 0, which it holds too, and slot 1 are read."""
    unit = flash(dies=2)
    put(unit, 0, 2, 1, 3)
    assert answered(unit, 40) == []
    put(unit, 4, 6)
    unit.tick()
    unit.ask("in conflict", 0, 0)
    unit.ask("free", 1, 0)
    unit.ask("buffer", 6, 0)
    assert answered(unit, 40) == [(42, "buffer"), (45, "free"), (64, "in conflict")]
    # It found the die at work in cycles 42 to 60.
    assert (unit.conflict_columns, unit.conflict_cycles) == (1, 19)


def test_a_slot_that_fills_a_page_waits_for_its_die() -> None:
    """Slots 0 and 1 are programmed from cycle 1 to 21, 2 waits in the buffer, 3 and all behind it before the buffer."""
    unit = flash(dies=1)
    put(unit, 0, 1, 2, 3, 4)
    unit.ask("buffer", 2, 0)
    unit.ask("behind", 3, 0)
    assert answered(unit, 20) == [(2, "buffer")]
    assert unit.full
    assert unit.memory.programmed_pages == 1
    assert answered(unit, 2) == [(22, "behind")]
    assert not unit.full
    assert unit.memory.programmed_pages == 2


def test_collection_and_erasing_keep_a_die_busy() -> None:
    """The page that opens the last free block has another block read, copied and erased behind it: 20 + 3 + 20 + 50.

    Blocks of 3 pages: (0 1)(2 3)(4 5), (6 7)(0 2)(4 6), (0 2)(4 6)(1 3): then block 0 holds slot 5 and block 1 slot 7.
    """
    unit = flash()
    order = [0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 6, 0, 2, 4, 6, 1, 3]
    for slot in order[:-1]:
        put(unit, slot)
        answered(unit, 25)
    assert (unit.memory.programmed_pages, unit.memory.erased_blocks) == (8, 0)
    begun = unit.cycle
    put(unit, order[-1])
    unit.tick()
    assert (unit.memory.programmed_pages, unit.memory.collected_pages, unit.memory.erased_blocks) == (10, 1, 1)
    unit.ask("erasing", 7, 0)
    assert answered(unit, 120) == [(begun + 1 + 93 + 3, "erasing")]


def test_a_damaged_slot_is_told_until_it_is_written_again() -> None:
    unit = flash()
    put(unit, 0, 1)
    answered(unit, 30)
    unit.memory.damage(0)
    unit.ask("damaged", 0, 0)
    unit.ask("beside it", 1, 0)
    found = [answer for _ in range(5) for answer in unit.tick()]
    assert [(answer.ticket, answer.error) for answer in found] == [("damaged", True), ("beside it", False)]
    put(unit, 0)
    unit.ask("again", 0, 1)
    found = [answer for _ in range(3) for answer in unit.tick()]
    assert found == [("again", b"\0\1", False)]


def test_a_reset_leaves_whole_slots() -> None:
    unit = flash()
    put(unit, 0)
    unit.write(1, 0, b"xy")
    unit.ask("forgotten", 0, 0)
    unit.tick()
    unit.ask("forgotten", 0, 1)
    unit.reset()
    unit.write(1, 1, b"zz")
    unit.ask("kept", 0, 1)
    unit.ask("half", 1, 0)
    found = [answer for _ in range(3) for answer in unit.tick()]
    assert found == [("kept", b"\0\1", False), ("half", b"\0\0", False)]


def test_bad_arguments() -> None:
    unit = flash()
    with pytest.raises(ValueError, match=r"^columns must divide the slot of 4 bytes, not 3$"):
        NandColumns(unit.memory, columns=3, cycle_s=1.0)
    with pytest.raises(ValueError, match=r"^columns must be from 1 to 4, not 0$"):
        NandColumns(unit.memory, columns=0, cycle_s=1.0)
    for refused in (
        lambda slot, column: unit.write(slot, column, b"xy"),
        lambda slot, column: unit.ask(1, slot, column),
    ):
        with pytest.raises(ValueError, match=r"^slot must be from 0 to 7, not 8$"):
            refused(8, 0)
        with pytest.raises(ValueError, match=r"^column must be from 0 to 1, not 2$"):
            refused(0, 2)
    with pytest.raises(ValueError, match=r"^content must have the 2 bytes of a column, not 1$"):
        unit.write(0, 0, b"x")
