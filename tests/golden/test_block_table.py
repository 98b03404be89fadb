"""Promise: what is not mapped is an error, a token frees exactly its slots, and free and taken slots add up."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from golden.kv.block_table import BlockTable, Place, TokenAddress, UnmappedError
from golden.kv.free_list import FreeList, FullError

SLOTS = {"hbm": 3, "ddr": 5, "ssd": 4}


def test_nothing_is_mapped_at_first() -> None:
    table = BlockTable(SLOTS)
    assert table.end(0, 0, 0) == 0
    message = r"^address must be of a mapped token, not TokenAddress\(.*token=0\): its sequence has 0$"
    for query in (table.place, table.copies):
        with pytest.raises(UnmappedError, match=message):
            query(TokenAddress(0, 0, 0, 0))


def test_nothing_past_the_end_is_read() -> None:
    table = BlockTable(SLOTS)
    address, place = table.append(7, 2, 1, "ddr")
    assert (address, place) == (TokenAddress(7, 2, 1, 0), Place("ddr", 0))
    assert table.place(address) == place
    for other in (address._replace(token=1), address._replace(token=-1), address._replace(kv_head=0)):
        with pytest.raises(UnmappedError):
            table.place(other)


def test_one_token_too_many_maps_nothing() -> None:
    table = BlockTable(SLOTS)
    for _ in range(3):
        table.append(0, 0, 0, "hbm")
    with pytest.raises(FullError, match=r"^hbm must have a free slot, all 3 are taken$"):
        table.append(0, 0, 0, "hbm")
    assert table.end(0, 0, 0) == 3
    assert [table.append(0, 0, 0, "ddr")[0].token, table.end(0, 0, 0)] == [3, 4]


def test_copies_and_the_one_that_is_read() -> None:
    table = BlockTable(SLOTS)
    address, _ = table.append(0, 0, 0, "ddr")
    other, _ = table.append(0, 0, 0, "ddr")
    copy = Place("hbm", table.free_list("hbm").take())
    table.add_copy(address, copy)
    assert table.place(address).device == "ddr"
    with pytest.raises(ValueError, match=r"must hold a copy of .* that is not read, not 'ddr'"):
        table.release(address, "ddr")
    table.switch(address, "hbm")
    assert table.place(address) == copy
    table.release(address, "ddr")
    assert table.copies(address) == {"hbm": copy.slot}
    assert table.free_list("ddr").taken == {1}
    for refused in (copy, Place("ddr", 1), Place("ddr", 2)):
        with pytest.raises(ValueError, match=r"^place must be "):
            table.add_copy(address if refused.device == "ddr" else other, refused)
    with pytest.raises(ValueError, match="must hold a copy"):
        table.switch(address, "ssd")
    with pytest.raises(ValueError, match=r"^device must be one of hbm, ddr, ssd, not 'tape'$"):
        table.append(0, 0, 0, "tape")
    with pytest.raises(ValueError, match=r"^layer must be at least 0, not -1$"):
        table.append(0, -1, 0, "hbm")


def test_what_a_reset_leaves_behind_is_found() -> None:
    table = BlockTable(SLOTS)
    address, _ = table.append(0, 0, 0, "ddr")
    table.free_list("hbm").take()
    table.free_list("ddr").take()
    assert table.recover() == 2
    assert table.recover() == 0
    assert (table.free_list("hbm").free, table.free_list("ddr").free) == (3, 4)
    assert table.place(address) == Place("ddr", 0)


def test_free_lists_refuse_what_is_free() -> None:
    free = FreeList("hbm", 2)
    slot = free.take()
    free.release(slot)
    for refused in (0, 1):
        with pytest.raises(ValueError, match=rf"^slot of hbm must be a taken one, not {refused}$"):
            free.release(refused)
    with pytest.raises(ValueError, match=r"^slot of hbm must be from 0 to 1, not 2$"):
        free.release(2)
    assert [free.take(), free.take()] == [1, 0]
    with pytest.raises(ValueError, match=r"^slots must name at least one memory, not none$"):
        BlockTable({})


class Table(RuleBasedStateMachine):
    """Any order of appends, copies, switches, releases and removals, beside a dictionary that a test can trust."""

    def __init__(self) -> None:
        super().__init__()
        self.table = BlockTable(SLOTS)
        self.copies: dict[TokenAddress, dict[str, int]] = {}
        self.home: dict[TokenAddress, str] = {}

    @rule(request=st.integers(0, 2), head=st.integers(0, 1), device=st.sampled_from(sorted(SLOTS)))
    def append(self, request: int, head: int, device: str) -> None:
        if self.table.free_list(device).free:
            address, place = self.table.append(request, 0, head, device)
            assert address not in self.copies
            self.copies[address], self.home[address] = {device: place.slot}, device
        else:
            with pytest.raises(FullError):
                self.table.append(request, 0, head, device)

    @precondition(lambda self: self.copies)
    @rule(data=st.data(), device=st.sampled_from(sorted(SLOTS)))
    def copy_or_switch(self, data: st.DataObject, device: str) -> None:
        address = data.draw(st.sampled_from(sorted(self.copies)))
        if device in self.copies[address]:
            self.table.switch(address, device)
            self.home[address] = device
        elif self.table.free_list(device).free:
            slot = self.table.free_list(device).take()
            self.table.add_copy(address, Place(device, slot))
            self.copies[address][device] = slot

    @precondition(lambda self: self.copies)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        address = data.draw(st.sampled_from(sorted(self.copies)))
        for device in sorted(set(self.copies[address]) - {self.home[address]})[:1]:
            before = self.table.free_list(device).free
            self.table.release(address, device)
            assert self.table.free_list(device).free == before + 1
            del self.copies[address][device]

    @rule(request=st.integers(0, 2))
    def remove(self, request: int) -> None:
        gone = [address for address in self.copies if address.request == request]
        assert self.table.remove_request(request) == sum(len(self.copies[address]) for address in gone)
        for address in gone:
            del self.copies[address], self.home[address]

    @invariant()
    def agrees(self) -> None:
        assert sorted(self.table.addresses()) == sorted(self.copies)
        for address, slots in self.copies.items():
            assert self.table.copies(address) == slots
            assert self.table.place(address) == Place(self.home[address], slots[self.home[address]])
        for device, count in SLOTS.items():
            held = [slots[device] for slots in self.copies.values() if device in slots]
            assert len(set(held)) == len(held)
            assert self.table.free_list(device).taken == set(held)
            assert self.table.free_list(device).free == count - len(held)


TestTable = Table.TestCase
TestTable.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
