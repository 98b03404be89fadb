"""An end of the DMA whose memory is flash: :class:`golden.dma.nand_columns.NandColumns` behind its columns."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from golden.dma.nand import NandGeometry, NandMemory, NandTimes
from golden.dma.nand_columns import NandColumns
from hw.payloads import pack, unpack
from hw.presets.pam import HBM_PIM, SSD_PIM
from tests.helpers.dma import World
from tests.helpers.dma_ends import End, Faults

if TYPE_CHECKING:
    from golden.dma.memory import Memory
    from hw.dma_engine_params import DmaParams
    from tests.helpers.streams import StreamBench

__all__ = ["NandEnd", "NandWorld", "recount"]

GEOMETRY = NandGeometry(dies=2, blocks=3, pages=4, page_slots=2)
"""Room for 24 slots at most, of which the far end offers 18: little to spare, so that blocks are collected often."""

SCALE = 4000
"""Times of PAM's drive over this: 5 cycles for a page read, 122 for a program and 618 for an erase of 30 us, 750 us and
3.8 ms, so that a run of some thousand cycles erases many blocks and nothing is held longer than a link waits."""

CYCLE_S = 2 * HBM_PIM.timing["tCK"].number
"""The ends' clock is half of that of HBM3-5200, at which the logic beside it runs."""


def _times(scale: float) -> NandTimes:
    page = SSD_PIM.page
    assert page is not None
    return NandTimes(
        read_s=page.page_read_s.number / scale,
        program_s=page.page_program_s.number / scale,
        erase_s=page.block_erase_s.number / scale,
    )


class _Recorded(NandMemory):
    """Keeps the order in which slots were written."""

    def __init__(self, *sizes: Any) -> None:
        super().__init__(*sizes)
        self.order: list[int] = []

    def write(self, slot: int, content: bytes) -> None:
        self.order.append(slot)
        super().write(slot, content)


@dataclass
class NandEnd(End):
    """An end whose slots are in flash.

    What was verified is in the write buffer or in a page, and either survives a reset: the buffer counts as part of the
    memory. A slot of which columns are missing does not.
    """

    scale: float = SCALE

    def __post_init__(self) -> None:
        times = _times(self.scale)
        self.flash = _Recorded(self.name, self.params.space.space.slots, self.slot_bytes, GEOMETRY, times)
        self.behind = NandColumns(self.flash, columns=self.params.columns, cycle_s=CYCLE_S)
        self.checks: deque[int] = deque()
        self.read_back: dict[int, int] = {}
        self.checked = 0

    def slot(self, slot: int) -> bytes:
        return self.flash.held(slot)

    def write_slot(self, slot: int, content: bytes) -> None:
        self.flash.write(slot, content)

    def damage(self, slot: int) -> None:
        super().damage(slot)
        self.flash.damage(slot)

    def golden_memory(self) -> Memory:
        return NandMemory(self.name, self.params.space.space.slots, self.slot_bytes, GEOMETRY, _times(self.scale))

    def reset(self) -> None:
        super().reset()
        self.behind.reset()
        self.checks.clear()
        self.read_back.clear()

    def place(self, start: int) -> tuple[int, int]:
        """Return slot and column of what begins at a byte."""
        return start // self.slot_bytes, start % self.slot_bytes // self.column_bytes

    def description(self) -> str:
        """Return what the flash did for what was asked of it."""
        flash, behind = self.flash, self.behind
        return (
            f"{flash.written_slots} slots written, {flash.programmed_pages} pages programmed, {flash.erased_blocks} "
            f"blocks erased, write amplification {flash.write_amplification:.2f}; {behind.buffer_columns} columns from "
            f"the write buffer, {behind.page_columns} from {flash.read_pages} pages, read amplification "
            f"{behind.read_amplification:.2f}; {behind.conflict_columns} columns found their die at work, "
            f"{behind.conflict_cycles} cycles in all"
        )


class NandWorld(World):
    """Two ends of which the far one has flash."""

    def __init__(
        self,
        bench: StreamBench,
        params: tuple[DmaParams, DmaParams],
        *,
        seed: int,
        faults: Faults | None = None,
        scale: float = SCALE,
    ) -> None:
        super().__init__(bench, params, seed=seed, faults=faults)
        self.flash = NandEnd("far", "near", params[1], bytearray(), scale=scale)
        self.ends["far"] = self.flash
        self.write_stall = 0.0

    def pause(self, idle: float, stall: float) -> None:
        super().pause(idle, stall)
        self.write_stall = stall

    def serve_memory(self, end: End) -> None:
        """Have a memory write, and answer reads; the flash takes no more columns while one of them waits."""
        if not isinstance(end, NandEnd):
            super().serve_memory(end)
            return
        bench, behind = self.bench, end.behind
        for start, column in self.written(end):
            behind.write(*end.place(start), column)
        for item in bench.fresh(f"{end.name}_check"):
            end.checks.append(end.checked)
            behind.ask(("check", end.checked), *end.place(end.index(item)))
            end.checked += 1
        for item in bench.fresh(f"{end.name}_fetch"):
            address = unpack(end.layouts["fetch"], item)["address"]
            behind.ask(("fetch", item), *end.place(end.index(address)))
        for (kind, number), content, error in behind.tick():
            if kind == "fetch":
                self.fetched(end, unpack(end.layouts["fetch"], number), content, error=error)
            else:
                end.read_back[number] = pack(end.layouts["checked"], column=list(content), error=int(error))
        # Reads of what was written are answered in the order in which they were asked for.
        while end.checks and end.checks[0] in end.read_back:
            bench.send(f"{end.name}_checked", [end.read_back.pop(end.checks.popleft())])
        bench.stall(f"{end.name}_write", 1.0 if behind.full else self.write_stall)


def recount(order: list[int]) -> tuple[int, int]:
    """Return pages programmed and blocks erased where slots are written in this order, by going through them naively.

    What a page holds is never kept: which of its slots are valid is looked up in the whole history.
    """
    programmed = erased = 0
    for die in range(GEOMETRY.dies):
        gathered: list[int] = []
        # Every page ever programmed, as block and slots, and the blocks in the order in which they come into use.
        history: list[tuple[int, list[int]]] = []
        blocks = list(range(GEOMETRY.blocks))
        full: list[int] = []
        for slot in [slot for slot in order if slot % GEOMETRY.dies == die]:
            gathered = [*(other for other in gathered if other != slot), slot]
            if len(gathered) < GEOMETRY.page_slots:
                continue
            history.append((blocks[0], gathered))
            programmed += 1
            gathered = []
            if sum(block == blocks[0] for block, _ in history) < GEOMETRY.pages:
                continue
            full.append(blocks.pop(0))
            if len(blocks) > 1:
                continue
            newest = {slot: block for block, slots in history for slot in slots}
            victim = min(full, key=lambda block: (sum(at == block for at in newest.values()), block))
            moved = [slot for block, slots in history if block == victim for slot in slots]
            moved = [slot for slot in dict.fromkeys(moved) if newest[slot] == victim]
            history = [(block, slots) for block, slots in history if block != victim]
            while moved:
                history.append((blocks[0], moved[: GEOMETRY.page_slots]))
                moved = moved[GEOMETRY.page_slots :]
                programmed += 1
            full.remove(victim)
            blocks.append(victim)
            erased += 1
    return programmed, erased
