"""Promise: in any order of moves, reads, faults and resets no token is lost, doubled or torn, and no slot leaks."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from golden.dma.descriptors import Operation, Status
from golden.dma.mover import BusyError
from golden.kv.block_table import Place, TokenAddress
from tests.helpers.mover import SLOTS, Rig, expanded


class Moves(RuleBasedStateMachine):
    """Moves, reads, faults and resets in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.reads: list[tuple[Place, bytes]] = []
        self.may_be: dict[TokenAddress, set[bytes]] = {}
        self.accepted = 0

    @rule(device=st.sampled_from(sorted(SLOTS)), request=st.integers(0, 1))
    def append(self, device: str, request: int) -> None:
        if self.rig.table.free_list(device).free:
            address = self.rig.append(device, request)
            self.may_be[address] = {self.rig.written[address]}

    @precondition(lambda self: self.may_be)
    @rule(
        data=st.data(),
        to=st.sampled_from(sorted(SLOTS)),
        operation=st.sampled_from(list(Operation)),
        compressed=st.booleans(),
    )
    def ask(self, data: st.DataObject, to: str, operation: Operation, compressed: bool) -> None:
        some = data.draw(st.lists(st.sampled_from(sorted(self.may_be)), min_size=1, max_size=3))
        if self.rig.ask(*some, to=to, operation=operation, compressed=compressed) is Status.OK:
            self.accepted += 1
            if compressed:
                for address in some:
                    self.may_be[address].add(expanded(self.rig.written[address]))

    @precondition(lambda self: self.rig.mover.pending)
    @rule(data=st.data(), steps=st.integers(1, 12))
    def step(self, data: st.DataObject, steps: int) -> None:
        for _ in range(steps):
            if self.rig.mover.pending:
                self.rig.mover.step(data.draw(st.sampled_from(self.rig.mover.runnable())))

    @rule(bit=st.one_of(st.none(), st.integers(0, 400)))
    def disturb(self, bit: int | None) -> None:
        self.rig.copier.wire.cut() if bit is None else self.rig.copier.wire.corrupt(bit)

    @precondition(lambda self: self.may_be)
    @rule(data=st.data())
    def begin_read(self, data: st.DataObject) -> None:
        place = self.rig.mover.begin_read(data.draw(st.sampled_from(sorted(self.may_be))))
        self.reads.append((place, self.rig.content(place)))

    @precondition(lambda self: self.reads)
    @rule(data=st.data())
    def end_read(self, data: st.DataObject) -> None:
        place, before = self.reads.pop(data.draw(st.integers(0, len(self.reads) - 1)))
        assert self.rig.content(place) == before
        self.rig.mover.end_read(place)

    @rule()
    def reset(self) -> None:
        self.rig.mover.reset()
        self.rig.mover.recover()

    @rule(request=st.integers(0, 1))
    def remove(self, request: int) -> None:
        try:
            self.rig.mover.remove_request(request)
        except BusyError:
            return
        for address in [address for address in self.may_be if address.request == request]:
            del self.may_be[address]

    @invariant()
    def every_token_is_there_whole(self) -> None:
        assert sorted(self.rig.table.addresses()) == sorted(self.may_be)
        for address, contents in self.may_be.items():
            assert self.rig.read(address) in contents
            assert all(self.rig.content(Place(*copy)) in contents for copy in self.rig.table.copies(address).items())

    @invariant()
    def no_slot_is_held_twice_or_by_nobody(self) -> None:
        copies = [copy for address in self.may_be for copy in self.rig.table.copies(address).items()]
        assert len(set(copies)) == len(copies)
        taken = sum(len(self.rig.table.free_list(name).taken) for name in SLOTS)
        assert 0 <= taken - len(copies) <= self.rig.mover.pending
        assert len(self.rig.mover.completions) + self.rig.mover.pending == self.accepted

    def teardown(self) -> None:
        for place, before in self.reads:
            assert self.rig.content(place) == before
            self.rig.mover.end_read(place)
        self.rig.mover.run()
        self.rig.mover.recover()
        copies = sum(len(self.rig.table.copies(address)) for address in self.may_be)
        assert sum(len(self.rig.table.free_list(name).taken) for name in SLOTS) == copies
        self.every_token_is_there_whole()


TestMoves = Moves.TestCase
TestMoves.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
