"""The golden mover beside two ends of the DMA: given the same descriptors, it must end each alike and hold the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.dma.copier import Copier
from golden.dma.descriptors import Completion, Descriptor, Operation, Status
from golden.dma.mover import Mover
from golden.dma.wire import Wire
from golden.kv.block_table import BlockTable, Place

if TYPE_CHECKING:
    from golden.kv.block_table import TokenAddress
    from tests.helpers.dma import World

__all__ = ["Shadow"]


class Shadow:
    """A golden system that begins as ``world`` is."""

    def __init__(self, world: World) -> None:
        self.world = world
        sizes = {name: end.params.space.space for name, end in world.ends.items()}
        self.table = BlockTable({name: space.slots for name, space in sizes.items()})
        self.memories = {name: end.golden_memory() for name, end in world.ends.items()}
        path = world.ends["near"].params.path
        copier = Copier(
            self.memories,
            Wire(),
            token_bytes=sizes["near"].slot_bytes,
            compression=path.compression.compression,
            flits=path.link.flit.flits,
            attempts=1,
        )
        self.mover = Mover(self.table, copier, queue_depth=1 << 20)
        self.waiting: list[int] = []
        for address in world.table.addresses():
            home = world.table.place(address)
            mapped, place = self.table.append(*address[:3], home.device)
            assert mapped == address
            self.memories[place.device].write(place.slot, world.content[home])
            if home.slot in world.ends[home.device].unreadable:
                self.memories[place.device].damage(place.slot)

    def submit(
        self, tag: int, addresses: list[TokenAddress], *, move: bool, compressed: bool, destination: str
    ) -> Status:
        """Give the mover a descriptor."""
        operation = Operation.MOVE if move else Operation.COPY
        status = self.mover.submit(
            Descriptor(
                tag=tag,
                operation=operation,
                addresses=tuple(addresses),
                destination=destination,
                compressed=compressed,
            )
        )
        if status is Status.OK:
            self.waiting.append(tag)
        return status

    def complete(self, tag: int) -> Completion:
        """Carry a descriptor out and return how it ended."""
        while not self.mover.completions:
            self.mover.step(self.waiting.index(tag))
        self.waiting.remove(tag)
        return self.mover.completions.popleft()

    def check(self) -> None:
        """Demand the same copies with the same bytes, and as many free slots."""
        for address in self.table.addresses():
            assert self.table.place(address).device == self.world.table.place(address).device
            copies, found = self.table.copies(address), self.world.table.copies(address)
            assert set(copies) == set(found)
            for name in copies:
                damaged = found[name] in self.world.ends[name].unreadable
                # A copy that its last reader kept from being given up came into use again, and here was made anew.
                if not damaged and address not in self.world.reused:
                    content = self.memories[name].read(copies[name])
                    assert content == self.world.slot(Place(name, found[name])), (address, name)
        for name, free_list in self.table.free_lists.items():
            assert free_list.free == self.world.table.free_lists[name].free
