"""Scenarios of reorder unit, address generator and re-layout buffer, for both simulators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.dma.relayout import column_addresses
from golden.dma.reorder import Command, Reorder, rows_opened
from hw.interface.layouts import column_address_layout, gathered_layout, placed_column_layout, read_command_layout
from hw.payloads import pack, unpack

if TYPE_CHECKING:
    import numpy as np

    from hw.dma_params import AddressParams, RelayoutParams, ReorderParams
    from tests.helpers.streams import StreamBench

__all__ = ["commands_of", "generate_all", "relayout_all", "relayout_faults", "reorder_all", "saved"]


def commands_of(params: ReorderParams, count: int, rows: int, rng: np.random.Generator) -> list[Command]:
    """Return reads of random groups and of few rows each, tagged by their number."""
    groups, chosen = rng.integers(0, params.groups, count), rng.integers(0, rows, count)
    return [
        Command(int(g), int(r), number % (1 << params.tag_bits))
        for number, (g, r) in enumerate(zip(groups, chosen, strict=True))
    ]


async def reorder_all(
    bench: StreamBench, params: ReorderParams, commands: list[Command], *, idle: float, stall: float
) -> list[Command]:
    """Reorder commands: every choice is that of the golden model among what waited, and made as soon as it can be."""
    await bench.reset()
    layout = read_command_layout(params)
    bench.stall("o", stall)
    bench.send("i", [pack(layout, **command._asdict()) for command in commands], idle=idle)
    await bench.until(o=len(commands))
    await bench.advance(5)
    found = [Command(**{name: int(value) for name, value in unpack(layout, item).items()}) for item in bench.items("o")]
    arrived, left = bench.trace("i").transfers.tolist(), bench.trace("o").transfers.tolist()
    model, waiting, came, free = Reorder(params.patience), [], 0, 0
    for command, cycle, gone in zip(found, bench.trace("o").presented.tolist(), left, strict=True):
        while came < len(arrived) and arrived[came] < cycle - 1:
            waiting.append(commands[came])
            came += 1
        first = min([arrived[commands.index(waiting[0])]] if waiting else arrived[came : came + 1])
        assert cycle - 1 == max(free, first + 1)
        assert waiting.pop(model.choose(waiting)) == command
        free = gone
    assert sorted(found) == sorted(commands)
    if not idle and not stall and params.depth > 1:
        assert left == list(range(2, len(commands) + 2))
    return found


def saved(before: list[Command], after: list[Command]) -> float:
    """Return the share of row activations that an order saves."""
    return 1 - rows_opened(after) / rows_opened(before)


async def generate_all(
    bench: StreamBench, params: AddressParams, slots: list[int], *, idle: float, stall: float
) -> None:
    """Generate the addresses of slots, some of which do not exist; without pauses an address a cycle."""
    await bench.reset()
    layout = column_address_layout(params)
    names = layout["coordinates"].shape.members
    zero = pack(layout["coordinates"].shape, **dict.fromkeys(names, 0))
    expected = []
    for slot in slots:
        if slot >= params.space.slots:
            expected.append(pack(layout, coordinates=zero, last=1, unmapped=1))
            continue
        columns = column_addresses(params.space, slot, params.space.levels[0].size)
        expected += [
            pack(
                layout,
                coordinates=pack(layout["coordinates"].shape, **column),
                last=int(number == len(columns) - 1),
                unmapped=0,
            )
            for number, column in enumerate(columns)
        ]
    bench.stall("o", stall)
    bench.send("i", slots, idle=idle)
    await bench.until(o=len(expected))
    await bench.advance(3)
    assert bench.items("o") == expected
    if not idle and not stall:
        assert bench.trace("o").transfers.tolist() == list(range(1, len(expected) + 1))


async def relayout_all(
    bench: StreamBench, params: RelayoutParams, slots: int, rng: np.random.Generator, *, idle: float, stall: float
) -> None:
    """Gather slots whose columns arrive mixed; each leaves whole, in the order in which they were completed."""
    await bench.reset()
    content = rng.integers(0, 256, (slots, params.columns, params.column_bytes)).tolist()
    layout = placed_column_layout(params)
    bench.stall("o", stall)
    bench.send("i", [], idle=idle)
    started, waiting, complete, sent = 0, [], [], {}
    left = dict.fromkeys(range(slots), params.columns)
    while len(complete) < slots or len(bench.items("o")) < slots * params.columns:
        regions = bench.items("free")
        while started < min(len(regions), slots):
            waiting += [(started, place) for place in range(params.columns)]
            sent[started] = regions[started]
            started += 1
        if waiting and rng.random() < 0.9:
            slot, place = waiting.pop(int(rng.integers(len(waiting))))
            column = content[slot][place]
            bench.send("i", [pack(layout, column=column, region=sent[slot], place=place)])
            left[slot] -= 1
            if not left[slot]:
                complete.append(slot)
        await bench.advance()
        assert bench.cycle < 100 * slots * params.columns
    # No region is given out again before its slot has begun to leave.
    regions = bench.items("free")
    assert regions[: params.regions] == list(range(params.regions))
    last = gathered_layout(params)
    assert bench.items("o") == [
        pack(last, column=content[slot][place], last=int(place == params.columns - 1), region=sent[slot])
        for slot in complete
        for place in range(params.columns)
    ]
    await bench.advance(10)
    assert len(bench.items("free")) == slots + params.regions


async def relayout_faults(bench: StreamBench, params: RelayoutParams) -> list[int]:
    """Write a column twice, then one of a region that nobody took; return the columns that leave."""
    await bench.reset()
    layout = placed_column_layout(params)
    bench.stall("free", 1.0)
    await bench.advance(3)
    column = [7] * params.column_bytes
    bench.send("i", [pack(layout, column=column, region=0, place=place) for place in range(params.columns)])
    await bench.advance(params.columns + 10)
    assert bench.items("o") == []
    bench.stall("free", 0.0)
    await bench.until(free=2)
    writes = [(0, column)] + [(place, [9] * params.column_bytes) for place in range(params.columns)]
    bench.send("i", [pack(layout, column=some, region=0, place=place) for place, some in writes])
    await bench.until(o=params.columns)
    return bench.items("o")
