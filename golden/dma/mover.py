"""How a token moves without ever being lost: copy, verify, switch, release.

Each step is atomic, and between any two steps anything may happen: other moves, reads, faults, a reset.

=========  ==========================================================================================================
reserve    a free slot at the destination is taken
copy       the bytes are read, framed with a check sum, carried over the link and written; what arrives damaged isn't
verify     what was written is read back and compared by its check sum
switch     the copy enters the block table, and becomes the one that is read
release    once nobody reads the old copies they are given up
=========  ==========================================================================================================

Until the switch every reader gets the old copy, which nobody writes; after it the new one, which was verified whole. A
fault before the switch costs another attempt or the slot's reservation, one after it costs nothing.

A reset forgets the queue and the moves under way, wherever they are. The block table, the free lists, the note of
copies that a switch made superfluous and the readers survive it, as they are the host's. What is taken but in no entry
then was a reservation, and :meth:`Mover.recover` frees it.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import takewhile
from typing import TYPE_CHECKING

from golden.checks import require_int
from golden.dma.descriptors import Completion, Descriptor, Operation, Status
from golden.kv.block_table import BlockTable, Place, TokenAddress, UnmappedError
from golden.kv.free_list import FullError

if TYPE_CHECKING:
    from collections.abc import Generator

    from golden.dma.copier import Copier

__all__ = ["BusyError", "Mover"]


class BusyError(Exception):
    """A request can't be removed while its tokens are moved or read."""


class Mover:
    """Moves of tokens between memories, step by step.

    Descriptors that share a token are carried out in the order in which they came; all others in any order, as
    :meth:`step` is told.

    Parameters
    ----------
    table : BlockTable
        Where tokens are.
    copier : Copier
        Of the memories of the table.
    queue_depth : int
        Descriptors that are accepted and not ended, at most.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or out of range, or the memories are not those of the table.
    """

    def __init__(self, table: BlockTable, copier: Copier, *, queue_depth: int) -> None:
        sizes = {name: free_list.slots for name, free_list in table.free_lists.items()}
        if {name: memory.slots for name, memory in copier.memories.items()} != sizes:
            raise ValueError(f"memories must be those of the table, {sizes}, not {sorted(copier.memories)}")
        require_int("queue_depth", queue_depth, 1)
        self.table = table
        self.copier = copier
        self.queue_depth = queue_depth
        self.completions: deque[Completion] = deque()
        self.without_transfer = 0
        self._moves: list[tuple[Descriptor, Generator[None, None, Completion]]] = []
        self._superfluous: set[tuple[TokenAddress, Place]] = set()
        self._readers: Counter[Place] = Counter()

    @property
    def pending(self) -> int:
        """Descriptors accepted and not ended."""
        return len(self._moves)

    def submit(self, descriptor: Descriptor) -> Status:
        """Accept a descriptor, or refuse it without any effect; an accepted one has a completion some time."""
        if self.pending >= self.queue_depth:
            return Status.QUEUE_FULL
        if not descriptor.addresses:
            return Status.ZERO_LENGTH
        try:
            homes = [self.table.place(address).device for address in descriptor.addresses]
            self.table.free_list(descriptor.destination)
        except (UnmappedError, ValueError):
            return Status.UNMAPPED
        if len(set(descriptor.addresses)) < len(descriptor.addresses):
            return Status.OVERLAP
        busy = {address for other, _ in self._moves for address in other.addresses}
        # Where a token is when its turn comes is not known yet if another move of it is under way.
        if any(
            home == descriptor.destination and address not in busy
            for address, home in zip(descriptor.addresses, homes, strict=True)
        ):
            return Status.SAME_PLACE
        self._moves.append((descriptor, self._carry_out(descriptor)))
        return Status.OK

    def runnable(self) -> list[int]:
        """Return the places in the queue whose descriptors share no token with an earlier one."""
        found: list[int] = []
        earlier: set[TokenAddress] = set()
        for number, (descriptor, _) in enumerate(self._moves):
            if earlier.isdisjoint(descriptor.addresses):
                found.append(number)
            earlier.update(descriptor.addresses)
        return found

    def step(self, number: int) -> None:
        """Do one step of a descriptor that :meth:`runnable` names; its completion may come of it.

        Raises
        ------
        ValueError
            If the descriptor is not runnable.
        """
        if number not in self.runnable():
            raise ValueError(f"number must be one of {self.runnable()}, not {number!r}")
        try:
            next(self._moves[number][1])
        except StopIteration as end:
            del self._moves[number]
            self.completions.append(end.value)

    def run(self) -> None:
        """Carry out all descriptors, the oldest first. A source that is being read until the end holds its move up.

        Raises
        ------
        BusyError
            If a move can't end for its readers.
        """
        while self._moves:
            if self._readers:
                raise BusyError(f"readers must be gone before all moves can end, {self._readers.total()} are not")
            self.step(0)

    def begin_read(self, address: TokenAddress) -> Place:
        """Return the copy to read; it stays as it is until :meth:`end_read`.

        Raises
        ------
        UnmappedError
            If the address is not mapped.
        """
        place = self.table.place(address)
        self._readers[place] += 1
        return place

    def end_read(self, place: Place) -> None:
        """Let go of a copy.

        Raises
        ------
        ValueError
            If nobody reads it.
        """
        if not self._readers[place]:
            raise ValueError(f"place must be one that is read, not {place}")
        self._readers[place] -= 1
        self._readers += Counter()

    def reset(self) -> None:
        """Forget queue and moves; each forgotten descriptor completes with RESET, what it did stays done."""
        for descriptor, move in self._moves:
            move.close()
            homes = (self.table.place(address).device for address in descriptor.addresses)
            done = sum(1 for _ in takewhile(lambda home, there=descriptor.destination: home == there, homes))
            self.completions.append(Completion(descriptor.tag, Status.RESET, done))
        self._moves.clear()

    def recover(self) -> int:
        """Free what a reset left behind and nobody reads any more; return the number of slots.

        Raises
        ------
        BusyError
            If moves are under way, whose reservations these may be.
        """
        if self._moves:
            raise BusyError(f"moves must be ended or reset before recovery, {self.pending} are not")
        return self.table.recover() + sum(self._release(*copy) for copy in sorted(self._superfluous))

    def remove_request(self, request: int) -> int:
        """Free all slots of a request; return their number.

        Raises
        ------
        BusyError
            If one of its tokens is moved or read.
        """
        places = {
            Place(*copy)
            for address in self.table.addresses()
            if address.request == request
            for copy in self.table.copies(address).items()
        }
        moved = any(address.request == request for move, _ in self._moves for address in move.addresses)
        if moved or any(self._readers[place] for place in places):
            raise BusyError(f"request {request} must be neither moved nor read")
        self._superfluous = {copy for copy in self._superfluous if copy[0].request != request}
        return self.table.remove_request(request)

    def _carry_out(self, descriptor: Descriptor) -> Generator[None, None, Completion]:
        for done, address in enumerate(descriptor.addresses):
            status = yield from self._bring(descriptor, address)
            if status is not Status.OK:
                return Completion(descriptor.tag, status, done)
            if descriptor.operation is Operation.MOVE:
                yield from self._give_up_others(address)
        return Completion(descriptor.tag, Status.OK, len(descriptor.addresses))

    def _bring(self, descriptor: Descriptor, address: TokenAddress) -> Generator[None, None, Status]:
        """Make the destination's copy the one that is read, after making it if there is none."""
        copies = self.table.copies(address)
        if descriptor.destination in copies:
            self.without_transfer += 1
        else:
            try:
                place = Place(descriptor.destination, self.table.free_list(descriptor.destination).take())
            except FullError:
                return Status.DESTINATION_FULL
            yield
            home = self.table.place(address)
            sources = [home, *(Place(*copy) for copy in copies.items() if copy[0] != home.device)]
            status = yield from self.copier.copy_until_verified(
                sources, place, tag=descriptor.tag, compressed=descriptor.compressed
            )
            if status is not Status.OK:
                self.table.free_list(place.device).release(place.slot)
                return status
            self.table.add_copy(address, place)
        # A move's other copies are noted with the switch, so that a reset behind it can't make them permanent.
        self.table.switch(address, descriptor.destination)
        if descriptor.operation is Operation.MOVE:
            others = self.table.copies(address).items()
            self._superfluous |= {(address, Place(*copy)) for copy in others if copy[0] != descriptor.destination}
        self._superfluous -= {(address, self.table.place(address))}
        yield
        return Status.OK

    def _give_up_others(self, address: TokenAddress) -> Generator[None, None, None]:
        for copy in sorted(copy for copy in self._superfluous if copy[0] == address):
            while not self._release(*copy):
                yield

    def _release(self, address: TokenAddress, place: Place) -> bool:
        """Give up a superfluous copy unless somebody reads it; return whether it is gone."""
        if self._readers[place]:
            return False
        self.table.release(address, place.device)
        self._superfluous.remove((address, place))
        return True
