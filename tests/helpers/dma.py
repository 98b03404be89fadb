"""Two ends of the DMA with everything around them: memories, the holder of the block table, and the link between.

Memories answer in any order and in their own time; what is on the link may be damaged, lost or cut off. Whatever
happens is checked as it happens: nothing is written over a copy that the table knows.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from golden.dma.descriptors import Completion, Status
from golden.kv.block_table import Place
from hw.interface.dma_layouts import MessageKind
from hw.payloads import pack, unpack
from tests.helpers.dma_ends import ENDS, End, Faults
from tests.helpers.dma_holder import Holder

if TYPE_CHECKING:
    from golden.kv.block_table import TokenAddress
    from hw.dma_engine_params import DmaParams
    from tests.helpers.streams import StreamBench

__all__ = ["World"]


class World(Holder):
    """Memories, table, link and books of what was asked for; :meth:`step` lets a cycle pass."""

    def __init__(
        self, bench: StreamBench, params: tuple[DmaParams, DmaParams], *, seed: int, faults: Faults | None = None
    ) -> None:
        ends = {
            name: End(name, peer, one, bytearray(one.space.space.capacity_bytes))
            for name, peer, one in zip(ENDS, ENDS[::-1], params, strict=True)
        }
        super().__init__(ends, Random(seed), np.random.default_rng(seed))
        self.bench, self.faults = bench, faults or Faults()
        self.completions: dict[int, Completion] = {}
        self.coming: dict[Place, TokenAddress] = {}
        self.hits: Counter[TokenAddress] = Counter()
        self.read_chance = 0.0
        self.memory_delay = 0.5

    def submit(
        self, name: str, tag: int, segments: list[tuple[int, int]], *, move: bool, compressed: bool, destination: int
    ) -> None:
        """Give a descriptor of (source, length) segments to an end."""
        layout = self.ends[name].layouts["descriptor"]
        self.operations[tag] = move, compressed
        self.switched[tag] = []
        self.bench.send(
            f"{name}_descriptor",
            [
                pack(
                    layout,
                    tag=tag,
                    move=int(move),
                    compressed=int(compressed),
                    destination=destination,
                    source=source,
                    length=length,
                    last=int(number == len(segments) - 1),
                )
                for number, (source, length) in enumerate(segments)
            ],
        )

    def pause(self, idle: float, stall: float) -> None:
        """Have what the ends send wait with one probability, and what they are sent with another."""
        for name in ENDS:
            for stream in ("completion", "ask", "message", "fetch", "write", "check", "acknowledgement", "sending"):
                self.bench.stall(f"{name}_{stream}", stall)
            for stream in ("descriptor", "answer", "fetched", "checked"):
                self.bench.send(f"{name}_{stream}", [], idle=idle)

    async def step(self) -> None:
        """Let a cycle pass, and have everything around the ends react."""
        await self.bench.advance()
        for end in self.ends.values():
            self._hold_table(end)
            self.serve_memory(end)
            self._carry(end)
        self.read_tokens(self.bench.cycle, self.read_chance)

    async def reset(self) -> None:
        """Reset both ends and the link between them, and recover what that cut short."""
        await self.bench.reset()
        for end in self.ends.values():
            end.reset()
        self.recover()
        self.completions.clear()

    async def until_complete(self, tags: int, limit_cycles: int) -> None:
        """Let cycles pass until so many descriptors have ended."""
        while len(self.completions) < tags:
            await self.step()
            assert self.bench.cycle < limit_cycles, f"{len(self.completions)} of {tags} descriptors ended"

    def _hold_table(self, end: End) -> None:
        bench, layouts = self.bench, end.layouts
        for item in bench.fresh(f"{end.name}_ask"):
            slot = unpack(layouts["ask"], item)["slot"]
            answer = self.answer(end, slot)
            address = self.owners.get(Place(end.name, slot))
            if address is not None:
                self.coming[Place(end.peer, answer["slot"])] = address
                self.hits[address] = 0
            bench.send(f"{end.name}_answer", [pack(layouts["answer"], **answer)])
        for item in bench.fresh(f"{end.name}_message"):
            told = unpack(layouts["message"], item)
            self.tell(end, MessageKind(told["kind"]), told["tag"], told["source"], told["slot"])
        for item in bench.fresh(f"{end.name}_completion"):
            told = unpack(layouts["completion"], item)
            assert told["tag"] not in self.completions
            self.completions[told["tag"]] = Completion(told["tag"], Status(told["status"]), told["done"])
            assert len(self.switched[told["tag"]]) == told["done"]

    def serve_memory(self, end: End) -> None:
        """Have a memory write, and answer reads."""
        bench, layouts, size = self.bench, end.layouts, end.column_bytes
        for start, column in self.written(end):
            end.content[start : start + size] = column
        for item in bench.fresh(f"{end.name}_check"):
            start = end.index(item)
            column = list(end.content[start : start + size])
            bench.send(f"{end.name}_checked", [pack(layouts["checked"], column=column, error=0)])
        end.reads += [unpack(layouts["fetch"], item) for item in bench.fresh(f"{end.name}_fetch")]
        for told in self.readable(end):
            start = end.index(told["address"])
            error = start // end.slot_bytes in end.unreadable
            self.fetched(end, told, bytes(end.content[start : start + size]), error=error)

    def written(self, end: End) -> list[tuple[int, bytes]]:
        """Return the columns that an end wrote, each with where it begins; now and then one is spoilt."""
        found = []
        for item in self.bench.fresh(f"{end.name}_write"):
            told = unpack(end.layouts["write"], item)
            start = end.index(told["address"])
            place = Place(end.name, start // end.slot_bytes)
            assert place not in self.owners, "a copy that the table knows must not be written over"
            assert place in self.quarantined
            column = bytearray(told["column"].astype(np.uint8).tobytes())
            if place.slot in end.spoilt or self.hit(end, self.coming[place], self.faults.write):
                column[self.random.randrange(len(column))] ^= 1 << self.random.randrange(8)
            found.append((start, bytes(column)))
        return found

    def fetched(self, end: End, told: dict[str, int], column: bytes, *, error: bool) -> None:
        """Give an end a column that it asked for; now and then the memory can't correct it."""
        slot = end.index(told["address"]) // end.slot_bytes
        error = error or self.hit(end, self.owners[Place(end.name, slot)], self.faults.read)
        ticket = {key: told[key] for key in ("region", "place")}
        payload = pack(end.layouts["fetched"], column=list(column), error=int(error), **ticket)
        self.bench.send(f"{end.name}_fetched", [payload])

    def hit(self, end: End, address: TokenAddress, chance: float) -> bool:
        """Return whether a column of a token is spoilt now: less often than there are attempts at bringing it.

        One that failed at every attempt would end its descriptor, by a chance that the golden mover does not know of.
        """
        is_hit = self.random.random() < chance and self.hits[address] < end.params.attempts - 1
        self.hits[address] += is_hit
        return is_hit

    def readable(self, end: End) -> list[dict[str, int]]:
        """Take the reads that a memory answers in this cycle: any of them, as chance has it."""
        found = []
        while end.reads and self.random.random() >= self.memory_delay:
            found.append(end.reads.pop(self.random.randrange(len(end.reads))))
        return found

    def _carry(self, end: End) -> None:
        bits = {"sending": 8 * end.column_bytes + 1, "acknowledgement": 66}
        for source, target in (("sending", "arriving"), ("acknowledgement", "acknowledged")):
            for item in self.bench.fresh(f"{end.name}_{source}"):
                chance = self.random.random()
                if source in end.cut or chance < self.faults.link / 2:
                    continue
                damaged = item ^ (1 << self.random.randrange(bits[source])) if chance < self.faults.link else item
                self.bench.send(f"{end.peer}_{target}", [damaged])
