"""Promise: flash returns what was last written through any collection, and says what it cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.dma.memory import UncorrectableError
from golden.dma.nand import NandGeometry, NandMemory, NandTimes

TIMES = NandTimes(read_s=30e-6, program_s=750e-6, erase_s=3800e-6)


def memory(slots: int, *, dies: int = 1, blocks: int = 4, pages: int = 3, page_slots: int = 2) -> NandMemory:
    geometry = NandGeometry(dies=dies, blocks=blocks, pages=pages, page_slots=page_slots)
    return NandMemory("ssd", slots, 4, geometry, TIMES)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(2, 5),
    st.integers(2, 4),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 1000), st.booleans()), max_size=300),
)
def test_the_last_bytes_written_are_read(
    dies: int, blocks: int, pages: int, page_slots: int, operations: list[tuple[int, bool]]
) -> None:
    """At the largest size a geometry allows, so that collection has the least room."""
    geometry = NandGeometry(dies=dies, blocks=blocks, pages=pages, page_slots=page_slots)
    flash = NandMemory("ssd", geometry.max_slots, 4, geometry, TIMES)
    wanted = dict.fromkeys(range(flash.slots), bytes(4))
    for number, (choice, is_write) in enumerate(operations):
        slot = choice % flash.slots
        if is_write:
            wanted[slot] = number.to_bytes(4, "little")
            flash.write(slot, wanted[slot])
        else:
            assert flash.read(slot) == wanted[slot]
    assert flash.read_many(list(wanted)) == list(wanted.values())


def test_once_through_costs_nothing_extra() -> None:
    flash = memory(12)
    for slot in range(12):
        flash.write(slot, bytes([slot]))
    assert (flash.programmed_pages, flash.erased_blocks, flash.write_amplification) == (6, 0, 1.0)


def test_write_amplification_by_hand() -> None:
    """4 blocks of 3 pages of 2 slots, 12 slots. Pages: (0 1)(2 3)(4 5) (6 7)(8 9)(10 11) fill blocks 0 and 1.

    Writing 0, 2, 4, 6, 8, 10 again fills block 2 with pages (0 2)(4 6)(8 10) and leaves one free block: every old page
    has one valid slot. Block 0 (1, 3, 5 valid) goes into block 3 as pages (1 3)(5 -), and is erased.
    """
    flash = memory(12)
    for slot in [*range(12), 0, 2, 4, 6, 8, 10]:
        flash.write(slot, bytes([slot]))
    assert (flash.programmed_pages, flash.erased_blocks, flash.collected_pages) == (9 + 2, 1, 3)
    assert flash.write_amplification == 11 * 2 / 18
    assert [content[0] for content in flash.read_many(list(range(12)))] == list(range(12))


def test_reads_are_of_pages() -> None:
    """A lone slot of 512 B costs its page of 16 KB; 32 slots that were written together cost one page, too."""
    geometry = NandGeometry(dies=1, blocks=4, pages=4, page_slots=32)
    flash = NandMemory("ssd", 64, 512, geometry, TIMES)
    for slot in range(64):
        flash.write(slot, b"")
    flash.read_many(list(range(32)))
    assert (flash.read_pages, flash.read_amplification) == (1, 1.0)
    flash.read(40)
    assert flash.read_amplification == 2 * 32 / 33


def test_what_is_buffered_costs_no_page() -> None:
    flash = memory(12)
    flash.write(3, b"x")
    flash.write(3, b"yz")
    assert flash.read(3) == b"yz\0\0"
    assert (flash.read_pages, flash.programmed_pages, flash.ready_s) == (0, 0, 0.0)


def test_a_read_waits_for_a_program_of_its_die_only() -> None:
    flash = memory(12, dies=2)
    for slot in (0, 2, 1, 3):
        flash.write(slot, b"")
    flash.now_s = 1.0
    flash.write(4, b"")
    flash.write(6, b"")
    assert flash.ready_s == pytest.approx(1.0 + 750e-6)
    flash.read(1)
    assert flash.ready_s == pytest.approx(1.0 + 30e-6)
    flash.read(0)
    assert flash.ready_s == pytest.approx(1.0 + 780e-6)


def test_a_damaged_slot_is_unreadable_until_it_is_written() -> None:
    """Wherever it is copied to: collection moves it from page to page as it is (the writes are those by hand above)."""
    flash = memory(12)
    for slot in range(12):
        flash.write(slot, bytes([slot]))
    flash.damage(1)
    for slot in (0, 2, 4, 6, 8, 10):
        flash.write(slot, b"")
    assert flash.page_of(1) == (3, 0)
    with pytest.raises(UncorrectableError, match=r"^slot 1 of ssd must be readable, it is damaged$"):
        flash.read(1)
    assert flash.read(3) == b"\3\0\0\0"
    assert (flash.read_pages, flash.held(1)) == (2, b"\1\0\0\0")
    flash.write(1, b"x")
    assert (flash.page_of(1), flash.read(1)) == (None, b"x\0\0\0")


def test_a_page_can_be_read_where_there_is_one() -> None:
    flash = memory(12, dies=2)
    for slot in (0, 2, 4):
        flash.write(slot, b"")
    flash.read_page(2)
    assert (flash.read_pages, flash.busy_until_s(0)) == (1, pytest.approx(780e-6))
    assert (flash.buffered(0), flash.buffered(1), flash.busy_until_s(1)) == ({4}, set(), 0.0)
    for slot in (4, 1):
        with pytest.raises(ValueError, match=rf"^slot {slot} of ssd must be in a page, it is not$"):
            flash.read_page(slot)


def test_more_spare_room_costs_fewer_copies() -> None:
    """The same random writes over 70 slots, of which 6, 9 and 18 blocks of 16 hold 27, 51 and 76 % more."""
    rng = np.random.default_rng(1)
    order = rng.integers(0, 70, 3000).tolist()
    found = []
    for blocks in (6, 9, 18):
        flash = memory(70, blocks=blocks, pages=8, page_slots=2)
        for slot in order:
            flash.write(slot, b"")
        found.append(flash.write_amplification)
    assert found[0] > found[1] > found[2]


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"^slots must be from 0 to 12, not 13$"):
        memory(13)
    with pytest.raises(ValueError, match=r"^pages must be at least 2, not 1$"):
        memory(1, pages=1)
    with pytest.raises(ValueError, match=r"^page_slots must be at least 1, not 0$"):
        memory(1, page_slots=0)
    flash = memory(12)
    for refused in (flash.read, flash.held, flash.damage, lambda slot: flash.write(slot, b"")):
        with pytest.raises(ValueError, match=r"^slot of ssd must be from 0 to 11, not 12$"):
            refused(12)
    with pytest.raises(ValueError, match=r"^content bytes must be from 0 to 4, not 5$"):
        flash.write(0, bytes(5))
