"""The holder of the block table as two ends of the DMA see it: it answers, and does what it is told.

The table is the golden model's. Whatever is switched to must hold the bytes of its token, and a copy that somebody
reads stays until its last reader is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from golden.dma.descriptors import Status
from golden.kv.block_table import BlockTable, Place, TokenAddress
from golden.kv.free_list import FullError
from hw.interface.dma_layouts import MessageKind
from tests.helpers.dma_ends import ENDS

if TYPE_CHECKING:
    from random import Random

    from tests.helpers.dma_ends import End

__all__ = ["Holder"]


class Holder:
    """Table, reservations and readers.

    ``owners`` and ``content`` have the token and the bytes of every copy in the table, ``quarantined`` the slots that
    are reserved, ``superfluous`` copies to be given up, ``deferred`` those of them whose release waits for readers, and
    ``pinned`` copies that were answered with, until a message comes.
    """

    def __init__(self, ends: dict[str, End], random: Random, rng: np.random.Generator) -> None:
        self.ends, self.random, self.rng = ends, random, rng
        self.table = BlockTable({name: end.params.space.space.slots for name, end in ends.items()})
        self.owners: dict[Place, TokenAddress] = {}
        self.content: dict[Place, bytes] = {}
        self.operations: dict[int, tuple[bool, bool]] = {}
        self.switched: dict[int, list[TokenAddress]] = {}
        self.quarantined: set[Place] = set()
        self.superfluous: set[Place] = set()
        self.deferred: set[Place] = set()
        self.pinned: dict[Place, tuple[bool, bool]] = {}
        self.reused: set[TokenAddress] = set()
        self.readers: list[tuple[Place, bytes, int]] = []

    def append(self, name: str, request: int = 0) -> TokenAddress:
        """Map a token of random numbers in a memory."""
        address, place = self.table.append(request, 0, 0, name)
        end = self.ends[name]
        numbers = self.rng.normal(size=end.slot_bytes // 2) * 2.0 ** self.rng.integers(-8, 8)
        content = end.params.path.compression.compression.fmt.to_codes(numbers).astype("<u2")
        end.write_slot(place.slot, content.tobytes())
        self.owners[place] = address
        self.content[place] = content.tobytes()
        return address

    def homes(self, name: str) -> list[int]:
        """Return the slots of the tokens that are read from a memory, ascending."""
        return sorted(
            place.slot
            for place, address in self.owners.items()
            if place.device == name and self.table.place(address) == place
        )

    def check(self) -> None:
        """Demand that every token is whole where the table says, and no slot is lost or doubled."""
        places = []
        for address in self.table.addresses():
            places += [Place(*copy) for copy in self.table.copies(address).items()]
        assert len(set(places)) == len(places)
        assert set(places) == set(self.owners) == set(self.content)
        for place in places:
            assert self.slot(place) == self.content[place], place
        for name in ENDS:
            held = {place.slot for place in places if place.device == name}
            reserved = {place.slot for place in self.quarantined if place.device == name}
            assert set(self.table.free_lists[name].taken) == held | reserved

    def slot(self, place: Place) -> bytes:
        """Return the bytes of a slot."""
        return self.ends[place.device].slot(place.slot)

    def recover(self) -> None:
        """Free what a reset cut short."""
        self.readers.clear()
        self.superfluous |= {place for place, (superfluous, _) in self.pinned.items() if superfluous}
        self.pinned.clear()
        assert self.table.recover() == len(self.quarantined)
        self.quarantined.clear()
        for place in sorted(self.superfluous):
            self._release(place)
        self.operations.clear()
        self.switched.clear()

    def answer(self, end: End, slot: int) -> dict[str, int]:
        """Return where the token in a slot may go."""
        address = self.owners.get(Place(end.name, slot))
        if address is None:
            return {"status": Status.UNMAPPED, "there": 0, "slot": 0}
        copies = self.table.copies(address)
        if end.peer in copies:
            # It stays until there is a message about it, whatever was to become of it.
            there = Place(end.peer, copies[end.peer])
            self.pinned[there] = there in self.superfluous, there in self.deferred
            self.reused |= {address} if there in self.superfluous else set()
            self.superfluous -= {there}
            self.deferred -= {there}
            return {"status": Status.OK, "there": 1, "slot": copies[end.peer]}
        try:
            reserved = self.table.free_list(end.peer).take()
        except FullError:
            return {"status": Status.DESTINATION_FULL, "there": 0, "slot": 0}
        self.quarantined.add(Place(end.peer, reserved))
        return {"status": Status.OK, "there": 0, "slot": reserved}

    def tell(self, end: End, kind: MessageKind, tag: int, source: int, slot: int) -> None:
        """Do what is told of a token."""
        here, there = Place(end.name, source), Place(end.peer, slot)
        if kind is MessageKind.ABANDON and there in self.quarantined:
            self.quarantined.remove(there)
            self.table.free_list(end.peer).release(slot)
            return
        if kind is MessageKind.ABANDON:
            superfluous, deferred = self.pinned.pop(there)
            self.superfluous |= {there} if superfluous else set()
            if deferred:
                self._release(there)
            return
        address = self.owners[here]
        if kind is MessageKind.RELEASE:
            assert self.switched[tag][-1] == address
            self._release(here)
            return
        move, compressed = self.operations[tag]
        if there in self.quarantined:
            self.quarantined.remove(there)
            self.table.add_copy(address, there)
            self.owners[there] = address
            self.content[there] = self._expanded(end, self.content[here]) if compressed else self.content[here]
        else:
            del self.pinned[there]
        assert self.slot(there) == self.content[there]
        self.table.switch(address, end.peer)
        self.superfluous |= {here} if move else set()
        self.switched[tag].append(address)

    def _release(self, place: Place) -> None:
        """Give up a superfluous copy, or leave that to its last reader."""
        if any(read == place for read, _, _ in self.readers):
            self.deferred.add(place)
            return
        self.table.release(self.owners.pop(place), place.device)
        self.superfluous.remove(place)
        self.deferred.discard(place)
        del self.content[place]

    def read_tokens(self, cycle: int, chance: float) -> None:
        """Begin reads of any tokens and end others: what is read does not change meanwhile."""
        if self.random.random() < chance:
            place = self.table.place(self.random.choice(list(self.owners.values())))
            self.readers.append((place, self.content[place], cycle + self.random.randrange(200)))
        for reader in [reader for reader in self.readers if reader[2] < cycle]:
            place, content, _ = reader
            assert self.slot(place) == content
            self.readers.remove(reader)
            if place in self.deferred:
                self._release(place)

    def _expanded(self, end: End, content: bytes) -> bytes:
        compression = end.params.path.compression.compression
        return compression.decode(compression.encode(np.frombuffer(content, "<u2"))).astype("<u2").tobytes()
