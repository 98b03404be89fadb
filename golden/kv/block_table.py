"""The block table: from the logical address of a token's key and value to the memories that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from golden.checks import require_int
from golden.kv.free_list import FreeList

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["BlockTable", "Place", "TokenAddress", "UnmappedError"]


class UnmappedError(LookupError):
    """There is no token at a logical address."""


class TokenAddress(NamedTuple):
    """Logical address of the key and value of one token: the one view of all memories.

    ``request``, ``layer``, ``kv_head`` and ``token`` count from 0.
    """

    request: int
    layer: int
    kv_head: int
    token: int


class Place(NamedTuple):
    """A slot of a memory."""

    device: str
    slot: int


@dataclass
class _Entry:
    """Valid copies of a token by memory, and the memory whose copy is read."""

    home: str
    slots: dict[str, int] = field(default_factory=dict[str, int])


class BlockTable:
    """Map of logical addresses to slots; a block is one token, as tokens are placed and moved one by one.

    An address is mapped if its token is below the number of tokens appended to its sequence (request, layer, KV head).
    A mapped token has one or more valid copies, at most one a memory, and one of them, in its *home*, is the one that
    is read. There is no default: what is not mapped is an :class:`UnmappedError`, never slot 0, and no entry at or past
    the end of a sequence exists.

    Every slot that the free lists hold as taken is the copy of one token, or belongs to whoever took it and has not
    called :meth:`add_copy` yet.

    Parameters
    ----------
    slots : mapping of str to int
        Slots of each memory.

    Raises
    ------
    TypeError, ValueError
        If there is no memory, or a number of slots is no integer of at least 0.
    """

    def __init__(self, slots: Mapping[str, int]) -> None:
        if not slots:
            raise ValueError("slots must name at least one memory, not none")
        self.free_lists = {device: FreeList(device, count) for device, count in slots.items()}
        self._sequences: dict[tuple[int, int, int], list[_Entry]] = {}
        self._held: set[Place] = set()

    def append(self, request: int, layer: int, kv_head: int, device: str) -> tuple[TokenAddress, Place]:
        """Map the next token of a sequence to a free slot of ``device``; return where its bytes are to be written.

        Raises
        ------
        TypeError, ValueError
            If a number is negative, or there is no such memory.
        FullError
            If the memory is full; nothing is mapped then.
        """
        for name, number in (("request", request), ("layer", layer), ("kv_head", kv_head)):
            require_int(name, number, 0)
        slot = self.free_list(device).take()
        entries = self._sequences.setdefault((request, layer, kv_head), [])
        entries.append(_Entry(device, {device: slot}))
        self._held.add(Place(device, slot))
        return TokenAddress(request, layer, kv_head, len(entries) - 1), Place(device, slot)

    def end(self, request: int, layer: int, kv_head: int) -> int:
        """Return the number of tokens of a sequence, 0 if nothing was appended."""
        return len(self._sequences.get((request, layer, kv_head), ()))

    def place(self, address: TokenAddress) -> Place:
        """Return the copy of a token that is read.

        Raises
        ------
        UnmappedError
            If the address is not mapped.
        """
        entry = self._entry(address)
        return Place(entry.home, entry.slots[entry.home])

    def copies(self, address: TokenAddress) -> dict[str, int]:
        """Return the slots of all valid copies of a token, by memory.

        Raises
        ------
        UnmappedError
            If the address is not mapped.
        """
        return dict(self._entry(address).slots)

    def add_copy(self, address: TokenAddress, place: Place) -> None:
        """Enter a further valid copy, in a slot that the caller has taken and written.

        Raises
        ------
        UnmappedError
            If the address is not mapped.
        ValueError
            If the slot is free or another token's, or the memory has a copy already.
        """
        entry = self._entry(address)
        if place.device in entry.slots:
            raise ValueError(f"place must be in a memory without a copy of {address}, not {place}")
        if place.slot not in self.free_list(place.device).taken or place in self._held:
            raise ValueError(f"place must be a slot taken for the copy, not {place}")
        entry.slots[place.device] = place.slot
        self._held.add(place)

    def switch(self, address: TokenAddress, device: str) -> None:
        """Make the copy in ``device`` the one that is read.

        Raises
        ------
        UnmappedError
            If the address is not mapped.
        ValueError
            If the memory has no copy.
        """
        entry = self._entry(address)
        if device not in entry.slots:
            raise ValueError(f"device must hold a copy of {address} ({', '.join(entry.slots)}), not {device!r}")
        entry.home = device

    def release(self, address: TokenAddress, device: str) -> None:
        """Give up the copy in ``device``: exactly its slot becomes free.

        Raises
        ------
        UnmappedError
            If the address is not mapped.
        ValueError
            If the memory has no copy, or it is the one that is read.
        """
        entry = self._entry(address)
        if device not in entry.slots or device == entry.home:
            raise ValueError(f"device must hold a copy of {address} that is not read, not {device!r}")
        self._give_up(Place(device, entry.slots.pop(device)))

    def remove_request(self, request: int) -> int:
        """Unmap all tokens of a request and free their slots; return how many slots that were."""
        released = 0
        for key in [key for key in self._sequences if key[0] == request]:
            for entry in self._sequences.pop(key):
                for device, slot in entry.slots.items():
                    self._give_up(Place(device, slot))
                    released += 1
        return released

    def recover(self) -> int:
        """Free the taken slots that are no token's copy, such as a reset leaves behind; return their number."""
        lost = [
            Place(device, slot)
            for device, free_list in self.free_lists.items()
            for slot in free_list.taken
            if Place(device, slot) not in self._held
        ]
        for place in lost:
            self.free_lists[place.device].release(place.slot)
        return len(lost)

    def addresses(self) -> Iterator[TokenAddress]:
        """Yield every mapped address."""
        for key, entries in self._sequences.items():
            for token in range(len(entries)):
                yield TokenAddress(*key, token)

    def free_list(self, device: str) -> FreeList:
        """Return the free list of a memory.

        Raises
        ------
        ValueError
            If there is no such memory.
        """
        if device not in self.free_lists:
            raise ValueError(f"device must be one of {', '.join(self.free_lists)}, not {device!r}")
        return self.free_lists[device]

    def _give_up(self, place: Place) -> None:
        self._held.remove(place)
        self.free_lists[place.device].release(place.slot)

    def _entry(self, address: TokenAddress) -> _Entry:
        entries = self._sequences.get(address[:3], [])
        if not 0 <= address.token < len(entries):
            raise UnmappedError(f"address must be of a mapped token, not {address}: its sequence has {len(entries)}")
        return entries[address.token]
