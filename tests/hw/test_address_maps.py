"""Promise: every byte of PAM's memories has one physical address, under every order, and slots lie as units read."""

from __future__ import annotations

import numpy as np
import pytest

from golden.dma.relayout import slot_addresses
from hw.memory.address_maps import (
    DimmOrganisation,
    DriveOrganisation,
    dimm_interleaved,
    dimm_token_major,
    drive_page_packed,
    drive_token_major,
    stack_interleaved,
    stack_token_major,
)
from hw.presets import DRAM_ORGANISATIONS
from hw.presets.organisations import DIMM_ORGANISATIONS, DRIVE_ORGANISATIONS

HBM = DRAM_ORGANISATIONS["hbm3-16gb"].spec
DIMM = DIMM_ORGANISATIONS["ddr4-32gb"].spec
DRIVE = DRIVE_ORGANISATIONS["nvme-1tb"].spec
# A token's key and value of one KV head at head dimension 128 in fp16.
SLOT = 512
PAIRS = {
    "hbm": (stack_token_major(40, HBM, slot_bytes=SLOT), stack_interleaved(40, HBM, slot_bytes=SLOT)),
    "ddr": (dimm_token_major(40, DIMM, slot_bytes=SLOT), dimm_interleaved(40, DIMM, slot_bytes=SLOT)),
    "ssd": (drive_token_major(8, DRIVE, slot_bytes=SLOT), drive_page_packed(8, DRIVE, slot_bytes=SLOT)),
}
MEMORIES = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())


def test_capacities_are_the_papers() -> None:
    assert [pair[0].capacity_bytes for pair in PAIRS.values()] == [640 << 30, 1280 << 30, 8 * 64 * 3725 * 256 * 16384]
    assert DRIVE.channels * DRIVE.dies * DRIVE.planes * DRIVE.pages * DRIVE.page_bytes * (DRIVE.blocks + 1) > 10**12
    assert all(a.slots == b.slots and a.slot_bytes == b.slot_bytes == SLOT for a, b in PAIRS.values())


@MEMORIES
def test_addresses_are_one_to_one_over_the_whole_range(pair) -> None:
    """Both ends, and 200,000 indices from everywhere; an order's coordinates go back through the other order."""
    rng = np.random.default_rng(1)
    for space in pair:
        size = space.capacity_bytes
        index = np.concatenate(
            [np.arange(100_000), size - 1 - np.arange(100_000), rng.integers(0, size, 200_000)], dtype=np.int64
        )
        found = space.decode(index)
        assert np.array_equal(space.encode(found), index)
        assert all(0 <= part.min() <= part.max() < space.sizes[name] for name, part in found.items())
    first, second = pair
    assert np.array_equal(second.encode(first.decode(first.encode(second.decode(index)))), index)


def test_small_memories_are_permuted_whole() -> None:
    dimm = DimmOrganisation(ranks=2, chips=3, bankgroups=2, banks=4, rows=5, columns=8, column_bytes=8)
    drive = DriveOrganisation(channels=3, dies=2, planes=2, blocks=3, pages=4, page_bytes=96)
    for image, order in (
        (dimm_token_major(2, dimm, slot_bytes=64), dimm_interleaved(2, dimm, slot_bytes=64)),
        (drive_token_major(2, drive, slot_bytes=32), drive_page_packed(2, drive, slot_bytes=32)),
    ):
        addresses = slot_addresses(image, order, np.arange(order.slots))
        assert np.array_equal(np.sort(addresses.ravel()), np.arange(image.capacity_bytes))


def test_a_slot_of_hbm_lies_in_the_same_columns_of_the_banks_of_a_group() -> None:
    """512 B over 4 banks are 4 columns of 32 B each; slot 16 is the first group's second."""
    space = PAIRS["hbm"][1]
    found = space.decode(np.arange(16 * SLOT, 17 * SLOT))
    assert {name: set(part.tolist()) for name, part in found.items() if name != "byte"} == {
        "column": {4, 5, 6, 7},
        "bank": {0, 1, 2, 3},
        **{name: {0} for name in ("bankgroup", "rank", "pseudochannel", "channel", "stack", "row")},
    }
    places = space.decode(np.arange(0, 17 * SLOT, SLOT))
    groups = [
        HBM.group_index(int(p), int(r), int(g))
        for p, r, g in zip(places["pseudochannel"], places["rank"], places["bankgroup"], strict=True)
    ]
    assert sorted(groups) == [0, *range(16)]


def test_a_slot_of_ddr_and_of_a_page() -> None:
    found = PAIRS["ddr"][1].decode(np.arange(SLOT))
    assert sorted(set(found["column"].tolist())) == list(range(16))
    assert set(found["chip"].tolist()) == {0}
    pages = PAIRS["ssd"][1].decode(np.arange(0, 33 * SLOT, SLOT))
    # 32 slots fill a page of 16 KB, the next page is another channel's.
    assert pages["channel"].tolist() == [0] * 32 + [1]
    assert pages["offset"].tolist() == [*range(0, 16384, SLOT), 0]


def test_slots_that_fit_nothing_are_refused() -> None:
    for make, organisation, slot_bytes, message in (
        (stack_token_major, HBM, 96, "slot_bytes must be 32 bytes times a divisor of 32, not 96"),
        (stack_interleaved, HBM, 500, "slot_bytes must be 128 bytes times a divisor of 32, not 500"),
        (stack_interleaved, HBM, 64, "slot_bytes must be from 128 to 4096, not 64"),
        (dimm_interleaved, DIMM, 8192, "slot_bytes must be from 32 to 4096, not 8192"),
        (dimm_token_major, DIMM, 24, "slot_bytes must be 8 bytes times a divisor of 128, not 24"),
        (drive_page_packed, DRIVE, 520, "slot_bytes must be 1 bytes times a divisor of 16384, not 520"),
        (drive_token_major, DRIVE, 0, "slot_bytes must be from 1 to 16384, not 0"),
    ):
        with pytest.raises(ValueError, match=rf"^{message}$"):
            make(1, organisation, slot_bytes=slot_bytes)
    with pytest.raises(ValueError, match=r"^size of level stack must be at least 1, not 0$"):
        stack_token_major(0, HBM, slot_bytes=SLOT)
    with pytest.raises(ValueError, match=r"^chips must be at least 1, not 0$"):
        DimmOrganisation(ranks=1, chips=0, bankgroups=1, banks=1, rows=1, columns=1, column_bytes=1)
    with pytest.raises(TypeError, match=r"^pages must be an integer, not 1\.5$"):
        DriveOrganisation(channels=1, dies=1, planes=1, blocks=1, pages=1.5, page_bytes=1)
