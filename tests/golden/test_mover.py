"""Promise: whatever fails and whenever, no token is lost, doubled or torn, and no slot leaks."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from golden.dma.copier import Copier
from golden.dma.descriptors import Completion, Descriptor, Operation, Segment, Status, check_segments
from golden.dma.memory import UncorrectableError
from golden.dma.mover import BusyError, Mover
from golden.dma.nand import NandGeometry, NandMemory, NandTimes
from golden.dma.wire import Wire
from golden.kv.block_table import Place
from tests.helpers.mover import COMPRESSION, FLITS, SLOTS, Rig, expanded

MOVE, COPY = Operation.MOVE, Operation.COPY


def test_a_move_takes_one_slot_and_gives_one_back() -> None:
    rig = Rig()
    address, other = rig.append("ddr"), rig.append("ddr")
    assert rig.ask(address, to="hbm") is Status.OK
    assert rig.end() == [Completion(9, Status.OK, 1)]
    assert rig.table.copies(address) == {"hbm": 0}
    assert rig.read(address) == rig.written[address]
    assert rig.table.place(other) == Place("ddr", 1)
    assert [rig.table.free_list(name).free for name in SLOTS] == [2, 4, 4]
    assert rig.copier.wire.sent_bytes == 2 * 20


def test_what_is_there_already_is_not_sent_again() -> None:
    rig = Rig()
    address = rig.append("ddr")
    rig.ask(address, to="hbm", operation=COPY)
    assert rig.end() == [Completion(9, Status.OK, 1)]
    assert rig.table.copies(address) == {"ddr": 0, "hbm": 0}
    sent = rig.copier.wire.sent_bytes
    rig.ask(address, to="ddr")
    assert rig.end() == [Completion(9, Status.OK, 1)]
    assert rig.table.copies(address) == {"ddr": 0}
    assert (rig.copier.wire.sent_bytes, rig.mover.without_transfer) == (sent, 1)
    assert rig.table.free_list("hbm").free == 3
    assert rig.read(address) == rig.written[address]


def test_compressed_tokens_are_those_of_the_compression() -> None:
    rig = Rig()
    address = rig.append("ddr")
    rig.ask(address, to="hbm", compressed=True)
    rig.end()
    assert rig.read(address) == expanded(rig.written[address]) != rig.written[address]
    # Again, in the same blocks, nothing more is lost.
    before = rig.read(address)
    rig.ask(address, to="ssd", compressed=True)
    rig.end()
    assert rig.read(address) == before
    # 8 bytes of header and 10 of two blocks, filled to 20, are two flits of 12; raw 24 would be two as well.
    assert rig.copier.wire.sent_bytes == 2 * 2 * 20


def test_flash_is_a_destination_like_any_other() -> None:
    rig = Rig()
    geometry = NandGeometry(dies=1, blocks=4, pages=2, page_slots=2)
    times = NandTimes(read_s=30e-6, program_s=750e-6, erase_s=3800e-6)
    flash = NandMemory("ssd", 4, 20, geometry, times)
    rig.copier.memories = rig.memories = {**rig.memories, "ssd": flash}
    tokens = [rig.append("ddr") for _ in range(4)]
    for round_trip in range(10):
        rig.ask(*tokens, to="ssd")
        rig.ask(*tokens[:3], to="hbm")
        rig.ask(tokens[3], to="ddr")
        assert [completion.status for completion in rig.end()] == [Status.OK] * 3, round_trip
    assert all(rig.read(token) == rig.written[token] for token in tokens)
    assert flash.erased_blocks > 0


def test_refused_descriptors_change_nothing() -> None:
    rig = Rig()
    address, other = rig.append("ddr"), rig.append("ddr")
    assert rig.ask(to="hbm") is Status.ZERO_LENGTH
    assert rig.ask(address, address._replace(token=2), to="hbm") is Status.UNMAPPED
    assert rig.ask(address, to="tape") is Status.UNMAPPED
    assert rig.ask(address, other, address, to="hbm") is Status.OVERLAP
    assert rig.ask(other, address, to="ddr") is Status.SAME_PLACE
    assert [rig.ask(address, to="hbm") for _ in range(4)] == [Status.OK] * 3 + [Status.QUEUE_FULL]
    assert [completion.status for completion in rig.end()] == [Status.OK] * 3
    assert rig.table.copies(address) == {"hbm": 0}
    with pytest.raises(ValueError, match=r"^number must be one of \[\], not 0$"):
        rig.mover.step(0)


def test_a_full_destination_is_told_and_what_fitted_stays() -> None:
    rig = Rig()
    tokens = [rig.append("ddr") for _ in range(5)]
    rig.ask(*tokens, to="hbm")
    assert rig.end() == [Completion(9, Status.DESTINATION_FULL, 3)]
    assert [rig.table.place(token).device for token in tokens] == ["hbm"] * 3 + ["ddr"] * 2
    assert all(rig.read(token) == rig.written[token] for token in tokens)


@pytest.mark.parametrize("bit", [0, 17, 70, 40 * 8 - 1])
def test_damaged_bursts_are_sent_again(bit: int) -> None:
    rig = Rig()
    address = rig.append("ddr")
    rig.copier.wire.corrupt(bit)
    rig.ask(address, to="hbm")
    assert rig.end() == [Completion(9, Status.OK, 1)]
    assert (rig.read(address), rig.copier.retries) == (rig.written[address], 1)


@pytest.mark.parametrize(("fault", "status"), [("corrupt", Status.CRC_MISMATCH), ("cut", Status.LINK_DOWN)])
def test_a_link_that_fails_every_time_leaves_the_token(fault: str, status: Status) -> None:
    rig = Rig()
    address = rig.append("ddr")
    for _ in range(2):
        rig.copier.wire.corrupt(3) if fault == "corrupt" else rig.copier.wire.cut()
    rig.ask(address, to="hbm")
    assert rig.end() == [Completion(9, status, 0)]
    assert rig.table.copies(address) == {"ddr": 0}
    assert rig.read(address) == rig.written[address]
    assert rig.table.free_list("hbm").free == 3


def test_an_unreadable_copy_is_told_and_another_is_taken() -> None:
    rig = Rig()
    address = rig.append("ssd")
    rig.memories["ssd"].damage(0)
    rig.ask(address, to="hbm")
    assert rig.end() == [Completion(9, Status.READ_ERROR, 0)]
    assert rig.table.copies(address) == {"ssd": 0}
    with pytest.raises(UncorrectableError, match=r"^slot 0 of ssd must be readable, it is damaged$"):
        rig.read(address)
    rig.memories["ssd"].write(0, rig.written[address])
    rig.ask(address, to="ddr", operation=COPY)
    rig.end()
    rig.memories["ddr"].damage(0)
    rig.ask(address, to="hbm")
    assert rig.end() == [Completion(9, Status.OK, 1)]
    # Slots are used in turn: the failed attempts had the first.
    assert (rig.table.copies(address), rig.read(address)) == ({"hbm": 1}, rig.written[address])


def test_a_destination_that_keeps_something_else_is_found_out() -> None:
    rig = Rig()
    address = rig.append("ddr")
    rig.ask(address, to="hbm")
    plain = rig.memories["hbm"].write
    writes = []

    def weak(slot: int, content: bytes) -> None:
        writes.append(slot)
        plain(slot, content if len(writes) > 2 else bytes([content[0] ^ 1]) + content[1:])

    rig.memories["hbm"].write = weak
    assert rig.end() == [Completion(9, Status.OK, 1)]
    assert (rig.copier.retries, rig.read(address)) == (1, rig.written[address])


def test_the_old_copy_waits_for_its_readers() -> None:
    rig = Rig()
    address = rig.append("ddr")
    place = rig.mover.begin_read(address)
    rig.ask(address, to="hbm")
    for _ in range(50):
        rig.mover.step(0)
    assert rig.table.place(address).device == "hbm"
    assert rig.content(place) == rig.written[address]
    for refused, message in ((rig.mover.run, "readers"), (lambda: rig.mover.remove_request(0), "request 0")):
        with pytest.raises(BusyError, match=f"^{message} must be "):
            refused()
    rig.mover.end_read(place)
    assert rig.end() == [Completion(9, Status.OK, 1)]
    assert rig.table.free_list("ddr").free == 5
    assert rig.mover.remove_request(0) == 1
    with pytest.raises(ValueError, match=r"^place must be one that is read, not Place"):
        rig.mover.end_read(place)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("operation", list(Operation))
def test_reset_at_any_step_loses_and_leaks_nothing(operation: Operation, compressed: bool) -> None:
    ended = False
    steps = 0
    while not ended:
        rig = Rig()
        tokens = [rig.append("ddr"), rig.append("ddr")]
        rig.ask(*tokens, to="ssd", operation=operation, compressed=compressed)
        for _ in range(steps):
            if rig.mover.pending:
                rig.mover.step(0)
        ended = not rig.mover.pending
        rig.mover.reset()
        (completion,) = rig.mover.completions
        assert completion.status is (Status.OK if ended else Status.RESET)
        homes = [rig.table.place(token).device for token in tokens]
        assert homes == ["ssd"] * completion.done + ["ddr"] * (2 - completion.done)
        rig.mover.recover()
        # A copy's old place stays, a move's is given up.
        kept = 2 if operation is COPY else 2 - completion.done
        assert [rig.table.free_list(name).free for name in SLOTS] == [3, 5 - kept, 4 - completion.done]
        for token, home in zip(tokens, homes, strict=True):
            wanted = expanded(rig.written[token]) if compressed and home == "ssd" else rig.written[token]
            assert rig.read(token) == wanted
        steps += 1
    assert steps > 10


def test_lists_of_bytes_are_checked_before_anything_moves() -> None:
    limits = {"granule_bytes": 8, "source_bytes": 64, "destination_bytes": 32, "same_memory": True}
    cases = {
        (): Status.ZERO_LENGTH,
        (Segment(0, 0, 0),): Status.ZERO_LENGTH,
        (Segment(0, 16, 8), Segment(8, 24, -8)): Status.ZERO_LENGTH,
        (Segment(57, 0, 8),): Status.UNMAPPED,
        (Segment(0, 25, 8),): Status.UNMAPPED,
        (Segment(-8, 0, 8),): Status.UNMAPPED,
        (Segment(32, 0, 12),): Status.MISALIGNED,
        (Segment(33, 0, 8),): Status.MISALIGNED,
        (Segment(32, 4, 8),): Status.MISALIGNED,
        (Segment(32, 0, 16), Segment(48, 8, 8)): Status.OVERLAP,
        (Segment(32, 8, 8), Segment(40, 0, 16)): Status.OVERLAP,
        (Segment(8, 0, 16),): Status.SAME_PLACE,
        (Segment(32, 0, 16), Segment(8, 16, 8)): Status.SAME_PLACE,
        (Segment(32, 0, 16), Segment(48, 16, 16)): Status.OK,
        (Segment(32, 0, 8), Segment(32, 8, 8)): Status.OK,
    }
    for segments, status in cases.items():
        assert check_segments(segments, **limits) is status, segments
    assert check_segments((Segment(8, 0, 16),), **(limits | {"same_memory": False})) is Status.OK


def test_bad_arguments() -> None:
    rig = Rig()
    good = {"token_bytes": 16, "compression": COMPRESSION, "flits": FLITS, "attempts": 1}
    for wrong, message in (
        ({"token_bytes": 18}, "token_bytes must be from 2 to 16, not 18"),
        ({"token_bytes": 15}, "token_bytes must be a multiple of 2, not 15"),
        ({"attempts": 0}, "attempts must be at least 1, not 0"),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            Copier(rig.memories, Wire(), **(good | wrong))
    with pytest.raises(ValueError, match=r"^queue_depth must be at least 1, not 0$"):
        Mover(rig.table, rig.copier, queue_depth=0)
    with pytest.raises(ValueError, match=r"^memories must be those of the table, \{'hbm': 3, .*\}, not \['hbm'\]$"):
        Mover(rig.table, Copier({"hbm": rig.memories["hbm"]}, Wire(), **good), queue_depth=1)
    with pytest.raises(ValueError, match=r"^tag must be from 0 to 4294967295, not -1$"):
        replace(Descriptor(tag=0, operation=MOVE, addresses=(), destination="hbm"), tag=-1)
    with pytest.raises(ValueError, match=r"^slot of hbm must be from 0 to 2, not 3$"):
        rig.memories["hbm"].damage(3)


def test_moves_of_one_token_keep_their_order() -> None:
    rig = Rig()
    address, other = rig.append("ddr"), rig.append("ddr")
    for to, token in (("hbm", address), ("ssd", address), ("hbm", other)):
        assert rig.ask(token, to=to) is Status.OK
    assert rig.mover.runnable() == [0, 2]
    with pytest.raises(ValueError, match=r"^number must be one of \[0, 2\], not 1$"):
        rig.mover.step(1)
    homes = []
    while rig.mover.pending:
        rig.mover.step(rig.mover.runnable()[-1])
        homes.append(rig.table.place(address).device)
    changes = [after for before, after in pairwise(["ddr", *homes]) if before != after]
    assert changes == ["hbm", "ssd"]
    assert rig.table.copies(other) == {"hbm": 0}
