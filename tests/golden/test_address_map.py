"""Promise: indices and physical addresses are one to one in every memory, and orders differ in the order alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.dma.relayout import column_addresses, read_slots, slot_addresses, write_slots
from golden.kv.address_map import AddressMap, Level

TOKEN_MAJOR = AddressMap("token-major", (Level("byte", 4), Level("column", 6), Level("row", 5), Level("bank", 3)), 2)
INTERLEAVED = AddressMap(
    "interleaved",
    (Level("byte", 4), Level("column", 2), Level("bank", 3), Level("column", 3), Level("row", 5)),
    3,
)
NAMES = st.sampled_from(["byte", "column", "bank", "row", "die"])
LEVELS = st.lists(st.builds(Level, NAMES, st.integers(1, 7)), min_size=1, max_size=7)


@given(LEVELS, st.data())
def test_every_index_has_coordinates_of_its_own(levels: list[Level], data: st.DataObject) -> None:
    space = AddressMap("any", tuple(levels), data.draw(st.integers(1, len(levels))))
    everything = np.arange(min(space.capacity_bytes, 3000))
    found = space.decode(everything)
    assert np.array_equal(space.encode(found), everything)
    assert len(set(zip(*(part.tolist() for part in found.values()), strict=True))) == everything.size
    assert all(part.max() < space.sizes[name] for name, part in found.items())
    assert space.slots * space.slot_bytes == space.capacity_bytes


def test_a_hand_count() -> None:
    """Byte 77 = 1 + 4 * 19; 19 = 1 + 2 * 9; 9 = 0 + 3 * 3; 3 = 0 + 3 * 1: columns 1 and 0, bank 0, row 1."""
    found = INTERLEAVED.decode(77)
    assert {name: int(part) for name, part in found.items()} == {"byte": 1, "column": 1, "bank": 0, "row": 1}
    assert INTERLEAVED.index(3, 5) == 77
    assert int(TOKEN_MAJOR.encode(found)) == 1 + 4 * (1 + 6 * (1 + 5 * 0))


def test_what_is_out_of_range_is_refused() -> None:
    for refused in (-1, 360):
        with pytest.raises(ValueError, match=rf"^index of interleaved must be from 0 to 359, not {refused}$"):
            INTERLEAVED.decode([0, refused])
    with pytest.raises(TypeError, match=r"^index of interleaved must be an integer, not float64$"):
        INTERLEAVED.decode(1.0)
    with pytest.raises(ValueError, match=r"^slot of interleaved must be from 0 to 14, not 15$"):
        INTERLEAVED.index(15, 0)
    with pytest.raises(ValueError, match=r"^offset in a slot of interleaved must be from 0 to 23, not 24$"):
        INTERLEAVED.index(0, 24)
    place = {"byte": 0, "column": 0, "bank": 0, "row": 0}
    with pytest.raises(ValueError, match=r"^bank of interleaved must be from 0 to 2, not 3$"):
        INTERLEAVED.encode(place | {"bank": 3})
    with pytest.raises(ValueError, match=r"^coordinates of interleaved must be byte, column, bank, row, not byte$"):
        INTERLEAVED.encode({"byte": 0})
    with pytest.raises(ValueError, match=r"^size of level row must be at least 1, not 0$"):
        Level("row", 0)
    with pytest.raises(ValueError, match=r"^name of a level must say something, not ''$"):
        Level("", 1)
    with pytest.raises(ValueError, match=r"^levels of none must be at least one, not \(\)$"):
        AddressMap("none", (), 1)
    with pytest.raises(ValueError, match=r"^slot_levels must be from 1 to 4, not 5$"):
        AddressMap("long", TOKEN_MAJOR.levels, 5)


def test_slots_are_whole_under_any_order() -> None:
    rng = np.random.default_rng(1)
    content = np.zeros(360, np.uint8)
    slots = rng.permutation(15)
    rows = rng.integers(0, 256, (15, 24), dtype=np.uint8)
    write_slots(content, TOKEN_MAJOR, INTERLEAVED, slots, rows)
    assert np.array_equal(read_slots(content, TOKEN_MAJOR, INTERLEAVED, slots), rows)
    assert np.array_equal(np.sort(content), np.sort(rows.ravel()))
    # Slot 0 lies in columns 0 and 1 of the same row of all banks: in the image each bank holds 120 bytes.
    assert slot_addresses(TOKEN_MAJOR, INTERLEAVED, np.array([0]))[0].tolist() == [
        bank * 120 + byte for bank in range(3) for byte in range(8)
    ]


def test_there_and_back_changes_nothing() -> None:
    content = np.random.default_rng(2).integers(0, 256, 360, dtype=np.uint8)
    every = np.arange(15)
    moved = np.zeros_like(content)
    write_slots(moved, TOKEN_MAJOR, INTERLEAVED, every, read_slots(content, TOKEN_MAJOR, TOKEN_MAJOR, every))
    back = np.zeros_like(content)
    write_slots(back, TOKEN_MAJOR, TOKEN_MAJOR, every, read_slots(moved, TOKEN_MAJOR, INTERLEAVED, every))
    assert np.array_equal(back, content)
    assert not np.array_equal(moved, content)


def test_columns_come_in_the_order_of_the_bytes() -> None:
    found = column_addresses(INTERLEAVED, 4, 4)
    assert [(c["bank"], c["column"], c["row"]) for c in found] == [
        (bank, 2 + low, 1) for bank in range(3) for low in range(2)
    ]
    with pytest.raises(ValueError, match=r"^column_bytes must be 4, not 8$"):
        column_addresses(INTERLEAVED, 4, 8)


def test_bad_slots_are_refused() -> None:
    content = np.zeros(360, np.uint8)
    twice = np.array([1, 1])
    with pytest.raises(ValueError, match=r"^slots must be named once each, not \[1, 1\]$"):
        write_slots(content, TOKEN_MAJOR, INTERLEAVED, twice, np.zeros((2, 24), np.uint8))
    with pytest.raises(ValueError, match=r"^rows must be of shape \(1, 24\), not \(1, 23\)$"):
        write_slots(content, TOKEN_MAJOR, INTERLEAVED, twice[:1], np.zeros((1, 23), np.uint8))
    other = AddressMap("other", (Level("byte", 4),), 1)
    with pytest.raises(ValueError, match=r"^order must have the coordinates of token-major \{.*\}, not \{'byte': 4\}$"):
        slot_addresses(TOKEN_MAJOR, other, twice)
    with pytest.raises(ValueError, match=r"^index of interleaved must be from 0 to 359, not 383$"):
        read_slots(content, TOKEN_MAJOR, INTERLEAVED, np.array([15]))
