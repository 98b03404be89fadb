"""Two ends of the DMA in one unit, and what a test keeps of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from golden.dma.memory import SlotMemory
from hw.interface.dma import Dma
from hw.interface.dma_layouts import (
    answer_layout,
    ask_layout,
    completion_layout,
    fetch_address_layout,
    fetch_layout,
    fetched_layout,
    message_layout,
    readback_layout,
    segment_layout,
    write_layout,
)
from hw.payloads import unpack

if TYPE_CHECKING:
    from amaranth.lib.data import StructLayout
    from amaranth.lib.wiring import Component

    from golden.dma.memory import Memory
    from hw.dma_engine_params import DmaParams

__all__ = ["ENDS", "DmaPair", "End", "Faults"]

ENDS = ("near", "far")


class DmaPair(wiring.Component):
    """Two ends; the streams of each carry its name, and the link between them is open."""

    end: type[Component] = Dma

    def __init__(self, params: tuple[Any, Any]) -> None:
        self.ends = {name: self.end(one) for name, one in zip(ENDS, params, strict=True)}
        super().__init__(
            {
                f"{name}_{key}": member
                for name, end in self.ends.items()
                for key, member in end.signature.members.items()
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, end in self.ends.items():
            m.submodules[name] = end
            for key, member in end.signature.members.items():
                inner, outer = getattr(end, key), getattr(self, f"{name}_{key}")
                if not member.is_signature:
                    m.d.comb += outer.eq(inner)
                elif member.flow == Out:
                    wiring.connect(m, inner, wiring.flipped(outer))
                else:
                    wiring.connect(m, wiring.flipped(outer), inner)
        return m


@dataclass
class Faults:
    """Probabilities of what may happen to a beat on the link, a column that is read, and one that is written."""

    link: float = 0.0
    read: float = 0.0
    write: float = 0.0


@dataclass
class End:
    """What surrounds one end."""

    name: str
    peer: str
    params: DmaParams
    content: bytearray
    reads: list[dict[str, int]] = field(default_factory=list)
    unreadable: set[int] = field(default_factory=set)
    spoilt: set[int] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    indices: dict[int, int] = field(default_factory=dict)

    @cached_property
    def slot_bytes(self) -> int:
        return self.params.space.space.slot_bytes

    @cached_property
    def column_bytes(self) -> int:
        return self.params.relayout.column_bytes

    @cached_property
    def layouts(self) -> dict[str, StructLayout]:
        """Layouts of the payloads by stream, made once: that takes longer than all else that a cycle asks for."""
        of_params = {
            "descriptor": segment_layout,
            "completion": completion_layout,
            "ask": ask_layout,
            "message": message_layout,
            "fetch": fetch_layout,
            "fetched": fetched_layout,
            "write": write_layout,
            "check": fetch_address_layout,
            "checked": readback_layout,
        }
        return {name: layout(self.params) for name, layout in of_params.items()} | {"answer": answer_layout()}

    def slot(self, slot: int) -> bytes:
        """Return the bytes of a slot."""
        return bytes(self.content[slot * self.slot_bytes : (slot + 1) * self.slot_bytes])

    def write_slot(self, slot: int, content: bytes) -> None:
        """Write the bytes of a slot."""
        self.content[slot * self.slot_bytes : slot * self.slot_bytes + len(content)] = content

    def damage(self, slot: int) -> None:
        """Make a slot unreadable."""
        self.unreadable.add(slot)

    def golden_memory(self) -> Memory:
        """Return an empty memory of the golden model for this one."""
        return SlotMemory(self.name, self.params.space.space.slots, self.slot_bytes)

    def reset(self) -> None:
        """Forget what is under way."""
        self.reads.clear()
        self.cut.clear()

    def index(self, address: int) -> int:
        """Return the index of the first byte of a column."""
        if address not in self.indices:
            space = self.params.space.space
            fields = unpack(self.layouts["check"], address)
            self.indices[address] = int(space.encode({space.levels[0].name: 0, **fields}))
        return self.indices[address]
