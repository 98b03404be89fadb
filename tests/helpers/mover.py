"""A small system of three memories in which tokens are moved, and what every token should hold."""

from __future__ import annotations

import numpy as np

from golden.dma.compression import BlockCompression
from golden.dma.copier import Copier
from golden.dma.descriptors import Completion, Descriptor, Operation, Status
from golden.dma.flits import FlitFormat
from golden.dma.memory import SlotMemory
from golden.dma.mover import Mover
from golden.dma.wire import Wire
from golden.formats import FP16
from golden.kv.block_table import BlockTable, Place, TokenAddress

__all__ = ["COMPRESSION", "FLITS", "SLOTS", "TOKEN_BYTES", "Rig", "expanded"]

SLOTS = {"hbm": 3, "ddr": 5, "ssd": 4}
SLOT_BYTES = {"hbm": 16, "ddr": 16, "ssd": 20}
TOKEN_BYTES = 16
COMPRESSION = BlockCompression(fmt=FP16, block=4)
FLITS = FlitFormat(20)


class Rig:
    """A mover over three memories, and the bytes that were written to each token."""

    def __init__(self) -> None:
        self.table = BlockTable(SLOTS)
        self.memories = {name: SlotMemory(name, SLOTS[name], SLOT_BYTES[name]) for name in SLOTS}
        self.copier = Copier(
            self.memories, Wire(), token_bytes=TOKEN_BYTES, compression=COMPRESSION, flits=FLITS, attempts=2
        )
        self.mover = Mover(self.table, self.copier, queue_depth=3)
        self.written: dict[TokenAddress, bytes] = {}
        self.rng = np.random.default_rng(1)

    def append(self, device: str, request: int = 0) -> TokenAddress:
        address, place = self.table.append(request, 0, 0, device)
        content = FP16.to_codes(self.rng.normal(size=TOKEN_BYTES // 2)).astype("<u2").tobytes()
        self.memories[device].write(place.slot, content)
        self.written[address] = content
        return address

    def content(self, place: Place) -> bytes:
        return self.memories[place.device].read(place.slot)[:TOKEN_BYTES]

    def read(self, address: TokenAddress) -> bytes:
        return self.content(self.table.place(address))

    def ask(
        self, *addresses: TokenAddress, to: str, operation: Operation = Operation.MOVE, compressed: bool = False
    ) -> Status:
        return self.mover.submit(
            Descriptor(tag=9, operation=operation, addresses=addresses, destination=to, compressed=compressed)
        )

    def end(self) -> list[Completion]:
        self.mover.run()
        found = list(self.mover.completions)
        self.mover.completions.clear()
        return found


def expanded(content: bytes) -> bytes:
    codes = np.frombuffer(content, "<u2")
    return COMPRESSION.decode(COMPRESSION.encode(codes)).astype("<u2").tobytes()
