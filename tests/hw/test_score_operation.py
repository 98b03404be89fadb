# amaranth: UnusedElaboratable=no
"""Promise: an operation of scores finds keys without values, reads them alone, and its scores wait in order."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from hw.channel_load import load_items
from hw.channel_operation import place_operations
from hw.devices.group_sequencer import GroupSequencer
from hw.devices.score_queue import ScoreQueue
from hw.devices.sequencer import ChannelSequencer
from hw.memory.kv_rows import key_rows, kv_rows
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.operation import OperationKind, OperationSizes
from hw.timing.score_queue import READING_LEVEL, most_underway, queue_depth
from tests.helpers.channel_scores import score_operation, scored
from tests.helpers.channels import make_channel_operation
from tests.helpers.sequencer import accesses, assert_legal_commands, run_sequencer

ATTACC = DEVICE_PRESETS["attacc"].channel
WIDE = DEVICE_PRESETS["pam-wide"].channel
GROUP = DEVICE_PRESETS["attacc-bankgroup"].channel
RNG = np.random.default_rng(0)


def test_keys_without_values_take_their_rows_alone():
    """Labels of one column, 32 a row: 40 and 33 a part take two rows each; attention between has keys and values."""
    operations = [
        score_operation(ATTACC, RNG, head_dim=8, tokens=16 * 40),
        make_channel_operation(ATTACC, RNG, head_dim=128, tokens=16 * 17),
        score_operation(ATTACC, RNG, head_dim=8, tokens=16 * 33),
        score_operation(ATTACC, RNG, head_dim=8, tokens=0),
    ]
    placed, heads = place_operations(ATTACC, operations)
    assert [(head.key_row, head.end_row) for head in heads] == [(0, 2), (2, 6), (6, 8), (8, 8)]
    assert [item.walk.last_columns for item in placed] == [8, 2, 1, 0]
    items = list(load_items(ATTACC, heads, groups=1, rows=16))
    # Six rows of 32 columns of labels or keys, two of values.
    assert len(items) == 8 * 32


def test_rows_of_keys_may_hold_more_tokens_than_the_score_buffer():
    small = ATTACC.replace(processing=ATTACC.processing.replace(tile_tokens=16))
    with pytest.raises(ValueError, match="head_dim 8 puts 32 tokens in a row: the score buffer must hold"):
        kv_rows(small, 8, 40)
    assert key_rows(small, 8, 40).tile_tokens == 32
    most = 16384 * 32
    assert key_rows(small, 8, most).tiles == 16384
    with pytest.raises(ValueError, match="rows must be at most the 16384 of a bank, not 16385"):
        key_rows(small, 8, most + 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: replace(make_channel_operation(ATTACC, RNG, head_dim=64, tokens=16), values=()),
            "values must be those of the 1 parts of keys, not of 0",
        ),
        (
            lambda: replace(score_operation(ATTACC, RNG, head_dim=64, tokens=16), values=[np.zeros((1, 64))] * 2),
            "values must be those of the 1 parts of keys, not of 2",
        ),
        (
            lambda: make_channel_operation(
                ATTACC, RNG, head_dim=64, tokens=16, append_part=0, kind=OperationKind.SCORE
            ),
            "append_part must be None for scores of keys that have values, not 0: attention writes both",
        ),
        (lambda: score_operation(ATTACC, RNG, head_dim=257, tokens=16), "head_dim must be from 1 to 256, not 257"),
        (lambda: score_operation(ATTACC, RNG, queries=2, head_dim=64, tokens=16), "queries must be from 1 to 1, not 2"),
    ],
)
def test_what_cannot_run_is_refused(make, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        place_operations(ATTACC, [make()])


def test_keys_with_and_without_values_are_not_the_same():
    operation = make_channel_operation(ATTACC, RNG, head_dim=64, tokens=16, kv_head=0)
    with pytest.raises(ValueError, match="operation 1 of KV head 0 must find the tokens that the one before it left"):
        place_operations(ATTACC, [operation, scored(operation)])


def test_a_kind_is_one_of_two():
    with pytest.raises(TypeError, match=r"^kind must be a OperationKind, not 1$|^kind must be an? OperationKind"):
        OperationSizes.of(ATTACC.processing, 3, kind=1)  # pyright: ignore[reportArgumentType]
    assert OperationSizes.of(ATTACC.processing, 3, beats=2, kind=OperationKind.SCORE).kv_beats == 6


KEY_ROW = 100


def _items(selected):
    """One operation of scores on 40 tokens of two columns, sixteen a row; or on the even ones of them."""
    positions = list(range(0, 40, 2)) if selected else list(range(40))
    operation = {
        "unit": {"beats": 2, "tile_tokens": 16, "walk_tokens": len(positions), "kind": 1},
        "rows": {
            "key_row": KEY_ROW,
            "value_row": 200,
            "tiles": -(-len(positions) // 16),
            "tile_columns": 32,
            "last_columns": 2 * (len(positions) % 16),
            "token_columns": 2,
            "kind": 1,
            "selected": selected,
        },
        "tokens": [0] * ATTACC.parts,
    }
    places = [{"place": {"tile": p // 16, "column": p % 16 * 2}, "wanted": 1} for p in positions] if selected else []
    return positions, {"operation": [operation], "query": [[0] * 16] * 8, "places": places}


@pytest.mark.parametrize("selected", [False, True])
@pytest.mark.parametrize(("room", "seed"), [(1.0, 0), (0.2, 1), (0.05, 2)])
def test_a_sequencer_reads_keys_alone_as_there_is_room(selected, room, seed):
    positions, items = _items(selected)
    chances = {} if room == 1 else {"places": 0.1, "query": 0.2}
    run = {"chances": chances, "cycles": 3000, "seed": seed, "room": room}
    commands, _ = run_sequencer(ChannelSequencer(ATTACC, parts=1), items, **run)
    assert accesses(commands) == [
        ("MAC", KEY_ROW + p // 16, p % 16 * 2 + beat, (0, 0, 0, 0)) for p in positions for beat in (0, 1)
    ]
    checker = assert_legal_commands(ATTACC, commands, cycles=3000)
    assert checker.counts["REFAB"] == 1


def test_rows_in_turn_are_those_of_keys_alone():
    """Head dimension 128 in one bank: eight columns a token, four tokens a row, rows over four banks in turn."""
    _, items = _items(False)
    items = deepcopy(items)
    items["operation"][0]["unit"] |= {"beats": 8, "tile_tokens": 4}
    items["operation"][0]["rows"] |= {"tiles": 10, "last_columns": 32, "token_columns": 8}
    for room in (1.0, 0.2):
        commands, _ = run_sequencer(
            GroupSequencer(GROUP, parts=1), items, chances={}, cycles=6000, seed=3, room=room, first_refresh=700
        )
        assert [access[:3] for access in accesses(commands)] == [
            ("MAC", (KEY_ROW + tile) // 4, column) for tile in range(10) for column in range(32)
        ]
        assert_legal_commands(GROUP, commands, cycles=6000)


@pytest.mark.parametrize("selected", [False, True])
def test_a_reset_at_any_cycle_leaves_nothing_behind(selected):
    """While queries are sent, a row waits, keys are read, a row is closed for its refresh, all is over."""
    _, items = _items(selected)

    def run(**options):
        return run_sequencer(ChannelSequencer(ATTACC, parts=1), items, chances={}, cycles=900, **options)

    assert run(resets=[1, 20, 41, 43, 60, 64, 100, 240, 262, 300, 600, 850]) == run()


@pytest.mark.parametrize("params", [ATTACC, WIDE], ids=["one part", "four parts"])
def test_a_queue_keeps_order_tells_of_room_and_of_loss(params):
    """Filled without a break: ``free`` falls at its level; the item that finds no room is lost, and it is said."""
    reset = Signal()
    dut = ScoreQueue(params)
    depth = queue_depth(params)
    got, free = [], []

    async def bench(ctx):
        async def put(number):
            for part, port in enumerate(dut.i):
                ctx.set(port.valid, number >> part & 1 or part == 0)
                ctx.set(port.token, {"op_id": 5, "position": number, "score": 100 * number + part})
            ctx.set(dut.enable, 1)
            await ctx.tick()
            ctx.set(dut.enable, 0)

        for _ in range(2):
            free.clear()
            got.clear()
            for number in range(depth):
                free.append(ctx.get(dut.free))
                await put(number)
            # Without an enable nothing counts.
            await ctx.tick().repeat(2)
            assert not ctx.get(dut.overrun)
            ctx.set(dut.o.ready, 1)
            while ctx.get(dut.o.valid):
                item = ctx.get(dut.o.payload)
                got.append((item.op_id, item.position, item.parts, list(item.scores)))
                await ctx.tick()
            ctx.set(dut.o.ready, 0)
        for number in range(depth + 1):
            await put(number)
        assert ctx.get(dut.overrun)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        assert not ctx.get(dut.overrun) and not ctx.get(dut.o.valid) and ctx.get(dut.free)

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    parts = params.parts_per_group
    assert free == [level <= READING_LEVEL for level in range(depth)]
    assert got == [
        (5, number, (number | 1) % (1 << parts), [100 * number + part for part in range(parts)])
        for number in range(depth)
    ]


def test_room_by_hand():
    """HBM3 at half the clock, four slices: 19, the register, 11 cycles of the logic; a column in six.

    Eight queries of whole tokens use a column for 16 cycles, and are 19 + 1 + 2 * (8 + 8) = 52 on their way.
    """
    assert most_underway(ATTACC) == (19 + 1 + 2 * 11) // 6 + 1
    assert most_underway(WIDE) == 8 * (52 // 16 + 1)
    assert queue_depth(WIDE) == 35
