# amaranth: UnusedElaboratable=no
"""Reorder unit, address generator and re-layout buffer in Amaranth's simulator: order, addresses, gathering, faults."""

from __future__ import annotations

import numpy as np
import pytest

from golden.dma.reorder import Command, Reorder, rows_opened
from golden.kv.address_map import AddressMap, Level
from hw.dma_params import AddressParams, RelayoutParams, ReorderParams
from hw.interface.address_generator import AddressGenerator
from hw.interface.layouts import placed_column_layout
from hw.interface.relayout_buffer import RelayoutBuffer
from hw.interface.reorder import CommandReorder
from hw.memory.address_maps import stack_interleaved, stack_token_major
from hw.payloads import pack
from hw.presets import DRAM_ORGANISATIONS
from tests.helpers.interface import commands_of, generate_all, relayout_all, relayout_faults, reorder_all, saved
from tests.helpers.pysim import run_pysim

PAUSES = pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.0, 0.6), (0.6, 0.0), (0.4, 0.4)])
HBM = DRAM_ORGANISATIONS["hbm3-16gb"].spec


@PAUSES
@pytest.mark.parametrize(
    "params",
    [
        ReorderParams(depth=4, groups=3, row_bits=3, tag_bits=9, patience=5),
        ReorderParams(depth=1, groups=1, row_bits=2, tag_bits=9, patience=0),
        ReorderParams(depth=7, groups=4, row_bits=2, tag_bits=9, patience=1),
    ],
    ids=["four", "one", "seven"],
)
def test_choices_are_the_golden_models(params, idle, stall):
    commands = commands_of(params, 90, 3, np.random.default_rng(1))
    run_pysim(CommandReorder(params), lambda bench: reorder_all(bench, params, commands, idle=idle, stall=stall))


def test_a_deep_queue_saves_rows_and_starves_nobody():
    params = ReorderParams(depth=16, groups=4, row_bits=4, tag_bits=9, patience=20)
    commands = commands_of(params, 300, 4, np.random.default_rng(2))
    found: list[Command] = []

    async def scenario(bench):
        found.extend(await reorder_all(bench, params, commands, idle=0.0, stall=0.7))

    run_pysim(CommandReorder(params), scenario)
    assert saved(commands, found) > 0.3
    place = {command.tag: number for number, command in enumerate(found)}
    # Behind the commands that wait in front of it, and patience for each of them and for itself.
    assert all(place[number] - number <= params.depth * (params.patience + 1) for number in range(300))


def test_a_hand_made_order():
    """Rows a and b of groups 0 and 1, all waiting: hits of the other group first, then hits, then other groups."""
    waiting = [Command(0, 1, 0), Command(0, 2, 1), Command(0, 1, 2), Command(1, 1, 3), Command(1, 1, 4)]
    model, order = Reorder(patience=9), []
    while waiting:
        order.append(waiting.pop(model.choose(waiting)).tag)
    assert order == [0, 2, 3, 4, 1]
    assert rows_opened([Command(0, 1, 0), Command(0, 2, 1), Command(0, 1, 2)]) == 3
    with pytest.raises(ValueError, match=r"^waiting must hold a command, it is empty$"):
        model.choose([])


SPACES = {
    "interleaved": stack_interleaved(2, HBM, slot_bytes=512),
    "token-major": stack_token_major(1, HBM, slot_bytes=64),
    "one column": AddressMap("tiny", (Level("byte", 8), Level("bank", 2), Level("row", 5)), 1),
}


@PAUSES
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
def test_addresses_are_the_golden_models(space, idle, stall):
    rng = np.random.default_rng(1)
    params = AddressParams(space=space)
    slots = [0, space.slots - 1, space.slots, (1 << params.slot_bits) - 1, *rng.integers(0, space.slots, 12).tolist()]
    run_pysim(AddressGenerator(params), lambda bench: generate_all(bench, params, slots, idle=idle, stall=stall))


SIZES = {
    "small": RelayoutParams(regions=2, columns=3, column_bytes=2),
    "one column": RelayoutParams(regions=3, columns=1, column_bytes=1),
    "five": RelayoutParams(regions=5, columns=4, column_bytes=2),
}


@PAUSES
@pytest.mark.parametrize("params", SIZES.values(), ids=SIZES.keys())
def test_slots_leave_whole(params, idle, stall):
    rng = np.random.default_rng(1)
    run_pysim(RelayoutBuffer(params), lambda bench: relayout_all(bench, params, 25, rng, idle=idle, stall=stall))


@pytest.mark.parametrize("params", SIZES.values(), ids=SIZES.keys())
def test_columns_that_are_not_due_change_nothing(params):
    unit = RelayoutBuffer(params)
    left = []

    async def scenario(bench):
        assert not bench._context.get(unit.fault)
        left.extend(await relayout_faults(bench, params))
        assert bench._context.get(unit.fault)

    run_pysim(unit, scenario)
    ones = [7 if place == 0 else 9 for place in range(params.columns)]
    assert [item & 0xFF for item in left] == ones


def test_timing_of_the_docstring():
    params = RelayoutParams(regions=2, columns=2, column_bytes=1)

    async def scenario(bench):
        await bench.until(free=2)
        start = bench.cycle
        layout = placed_column_layout(params)
        bench.send("i", [pack(layout, column=[place], region=0, place=place) for place in (1, 0)])
        await bench.until(o=2)
        assert (bench.trace("i").transfers - start).tolist() == [0, 1]
        assert (bench.trace("o").transfers - start).tolist() == [4, 5]

    run_pysim(RelayoutBuffer(params), scenario)


@pytest.mark.parametrize("kind", ["reorder", "generate", "relayout"])
def test_reset_in_any_cycle_forgets(kind):
    rng = np.random.default_rng(3)
    reorder = ReorderParams(depth=4, groups=2, row_bits=2, tag_bits=9, patience=5)
    commands = commands_of(reorder, 20, 3, rng)
    address = AddressParams(space=SPACES["token-major"])
    unit, run = {
        "reorder": (CommandReorder(reorder), lambda b: reorder_all(b, reorder, commands, idle=0.0, stall=0.0)),
        "generate": (AddressGenerator(address), lambda b: generate_all(b, address, [5, 6], idle=0.0, stall=0.0)),
        "relayout": (
            RelayoutBuffer(SIZES["small"]),
            lambda b: relayout_all(b, SIZES["small"], 4, rng, idle=0.0, stall=0.0),
        ),
    }[kind]

    async def scenario(bench):
        for cut in range(1, 12):
            await bench.reset()
            bench.send("i", rng.integers(0, 1 << 8, 20).tolist())
            bench.stall("o", 0.5)
            await bench.advance(cut)
            await run(bench)

    run_pysim(unit, scenario)


def test_bad_arguments():
    for unit, name in (
        (CommandReorder, "a ReorderParams"),
        (AddressGenerator, "an AddressParams"),
        (RelayoutBuffer, "a RelayoutParams"),
    ):
        with pytest.raises(TypeError, match=rf"^params must be {name}, not 3$"):
            unit(3)
    with pytest.raises(ValueError, match=r"^depth must be at least 1, not 0$"):
        ReorderParams(depth=0)
    with pytest.raises(ValueError, match=r"^regions must be at least 2, not 1$"):
        RelayoutParams(regions=1)
    with pytest.raises(TypeError, match=r"^space must be an AddressMap, not None$"):
        AddressParams(space=None)
    odd = AddressMap("odd", (Level("byte", 8), Level("bank", 3), Level("row", 4)), 1)
    with pytest.raises(ValueError, match=r"^size of level bank must be a power of two, not 3$"):
        AddressParams(space=odd)
