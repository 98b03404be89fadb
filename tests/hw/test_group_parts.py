# amaranth: UnusedElaboratable=no
"""Promise: parts of a channel with units at its bank groups keep order and distances, and refuse what can't work."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.sim import Simulator

from hw.channel_load import load_items
from hw.channel_operation import place_operations
from hw.devices.bank_timer import BankTimer
from hw.devices.column_path import ColumnPath
from hw.devices.group_walk import GroupWalk
from hw.devices.row_pair import RowPair
from hw.memory.kv_rows import kv_rows
from hw.memory.rules import same_bank_activation_cycles
from hw.presets.devices import DEVICE_PRESETS
from hw.timing.channel import refresh_cycles, stream_limit, streamed_row_cycles
from hw.timing.kv_order import kv_order
from sim.comparisons.attacc import CYCLES
from tests.helpers.channels import make_channel_operation

GROUP = DEVICE_PRESETS["attacc-bankgroup"].channel
BANKS = DEVICE_PRESETS["attacc"].channel
TIMING = GROUP.timing


@pytest.mark.parametrize(
    ("preset", "tokens", "spacing", "reference", "rest"),
    [
        ("attacc-bankgroup", 512, 6, 13299, 0.008),
        ("attacc-bankgroup", 2048, 6, 53951, 0.008),
        ("attacc-bankgroup-unlimited", 512, 4, 8739, 0.01),
        ("attacc-bankgroup-unlimited", 2048, 4, 36149, 0.01),
    ],
)
def test_what_makes_the_cycles_of_attacc(preset, tokens, spacing, reference, rest):
    """A column of one bank every nCCDSB, and refresh: rows that showed would add a fifth or more to the columns."""
    assert CYCLES[preset][tokens] == reference
    assert DEVICE_PRESETS[preset].channel.timing.n_ccdab == spacing
    # 4 heads a channel, the tokens over 16 groups, 8 columns of key and 8 of value each, and one column to begin with.
    columns = 4 * tokens // 16 * (8 + 8) + 1
    refreshes = reference // 5070
    assert 0 < reference - (columns * spacing + refreshes * 456) <= rest * reference
    # A row of 32 columns, opened when the one before it is closed, takes 40 cycles more than its columns.
    assert columns / 32 * (19 + 31 * spacing + 8 + 19) > 1.1 * reference


def test_rates_by_hand():
    """HBM3 at 5.2 Gb/s, power limited."""
    assert streamed_row_cycles(GROUP, 32) == 32 * 6
    # Four columns: 24 cycles, but openings of four banks of a rank keep 39, JEDEC's window of four activations.
    assert streamed_row_cycles(GROUP, 4) == same_bank_activation_cycles(GROUP.organisation, TIMING) == 39
    assert streamed_row_cycles(BANKS, 32) == 19 + 31 * 6 + 8 + 19
    assert refresh_cycles(GROUP) == 8 + 19 + 456 + 19 - 6
    assert refresh_cycles(BANKS) == 456
    assert float(stream_limit(GROUP, 32).column_cycles) == pytest.approx(6 / (1 - 496 / 5070), rel=1e-12)


def test_a_channel_of_groups_by_hand():
    assert (GROUP.parts, GROUP.parts_per_group, GROUP.units_per_group) == (16, 1, 1)
    assert (GROUP.turn_banks, GROUP.part_rows) == (4, 4 * 16384)
    assert (BANKS.units_per_group, BANKS.turn_banks, BANKS.part_rows) == (4, 1, 16384)
    assert kv_rows(GROUP, 128, 4 * 2 * 16384).tiles == 2 * 16384
    with pytest.raises(ValueError, match="rows must be at most the 65536 of a bank group, not 65538"):
        kv_rows(GROUP, 128, 4 * 2 * 16384 + 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reduction": BANKS.reduction}, "num_sources of the reduction unit must be the 1 unit of a group, not 4"),
        ({"processing": BANKS.processing}, "slices must be 1 for mapping 'group', not 4"),
        (
            {"processing": GROUP.processing.replace(tile_tokens=1)},
            "tile_tokens must be at least the 2 tokens that a row holds at the largest head dimension, not 1",
        ),
    ],
)
def test_units_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        GROUP.replace(**changes)


def test_keys_and_values_begin_in_the_same_bank():
    """Head dimension 128: four tokens a row. Heads lie behind each other, rows stay free before the values alone."""
    rng = np.random.default_rng(0)
    operations = [make_channel_operation(GROUP, rng, head_dim=128, tokens=16 * tokens) for tokens in (9, 4, 0, 16)]
    _, heads = place_operations(GROUP, operations)
    assert [(head.key_row, head.value_row, head.end_row) for head in heads] == [
        (0, 4, 7),
        (7, 11, 12),
        (12, 12, 12),
        (12, 16, 20),
    ]


def test_selected_tokens_are_refused():
    operation = make_channel_operation(
        GROUP, np.random.default_rng(0), head_dim=128, tokens=64, positions=np.array([0, 2])
    )
    with pytest.raises(ValueError, match=r"positions must be None for units at the bank groups.*not \[0, 2\]"):
        place_operations(GROUP, [operation])


def test_cells_of_heads_that_share_rows():
    """Row r of a group is row r // 4 of bank r % 4: every column of keys and values is where a hand puts it."""
    rng = np.random.default_rng(5)
    operations = [make_channel_operation(GROUP, rng, head_dim=128, tokens=16 * tokens) for tokens in (5, 2)]
    heads = place_operations(GROUP, operations)[1]
    cells = {}
    for item in load_items(GROUP, heads, groups=1, rows=16):
        row, column, data = item & 15, item >> 4 & 31, item >> 9
        for bank in range(4):
            cells[bank, row, column] = data >> 256 * bank & (1 << 256) - 1
    # First head: keys in rows 0 and 1, values in 4 and 5; second head: keys in 6, values in 10.
    for operation, first_key, first_value in ((operations[0], 0, 4), (operations[1], 6, 10)):
        for vectors, first in ((operation.keys[0], first_key), (operation.values[0], first_value)):
            for token, vector in enumerate(vectors):
                row, slot = first + token // 4, token % 4
                for beat in range(8):
                    expected = sum(
                        int(code) << 16 * lane for lane, code in enumerate(vector[16 * beat : 16 * beat + 16])
                    )
                    assert cells[row % 4, row // 4, 8 * slot + beat] == expected
    with pytest.raises(ValueError, match="keys and values must be those of 2 parts, not 1"):
        list(load_items(GROUP, heads, groups=2, rows=16))


def _simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("chance", [1.0, 0.4])
def test_the_walk_is_the_order_of_the_unit(chance):
    """Operations of no tile, of one, of many; rows in the banks in turn; numbers counted over operations."""
    sizes = [3, 0, 1, 5, 0, 0, 2]
    dut = GroupWalk(GROUP)
    rng = np.random.default_rng(0)
    seen = []
    items = [
        {"key_row": 3 + 40 * n, "value_row": 23 + 40 * n, "tiles": t, "tile_columns": 30, "last_columns": 5 + n}
        for n, t in enumerate(sizes)
    ]

    async def bench(ctx):
        waiting = list(items)
        for _ in range(200):
            ctx.set(dut.rows.valid, bool(waiting))
            if waiting:
                ctx.set(dut.rows.payload, waiting[0])
            ctx.set(dut.visits.ready, rng.random() < chance)
            if ctx.get(dut.visits.valid & dut.visits.ready):
                visit = ctx.get(dut.visits.payload)
                names = ("operation", "value_tile", "is_value", "tile", "bank", "row", "columns", "first")
                seen.append(tuple(int(visit[name]) for name in names))
            taken = ctx.get(dut.rows.valid & dut.rows.ready)
            await ctx.tick()
            if taken:
                waiting.pop(0)

    _simulate(dut, bench)
    expected, tiles_before = [], 0
    for number, tiles in enumerate(sizes):
        values = 0
        for place, tile in enumerate(kv_order(1, tiles)):
            row = (23 if tile.kind == "v" else 3) + 40 * number + tile.number
            columns = 5 + number if tile.number == tiles - 1 else 30
            counted = (tiles_before + values) % 4
            expected.append(
                (number % 4, counted, int(tile.kind == "v"), tile.number, row % 4, row // 4, columns, int(place == 0))
            )
            values += tile.kind == "v"
        tiles_before += tiles
    assert seen == expected


def test_a_pair_of_rows():
    """Opened front first, then ahead; the pair moves on behind the last column; closed rows are wanted again."""
    dut = RowPair(GROUP)
    visits = [
        {"first": number == 0, "bank": (number + 2) % 4, "row": 7 + number, "columns": 1 + number}
        for number in range(3)
    ]

    async def bench(ctx):
        waiting = list(visits)

        async def step(**inputs):
            ctx.set(dut.visits.valid, bool(waiting))
            if waiting:
                ctx.set(dut.visits.payload, waiting[0])
            for name in ("opened", "read", "all_closed"):
                ctx.set(getattr(dut, name), inputs.get(name, 0))
            taken = ctx.get(dut.visits.valid & dut.visits.ready)
            await ctx.tick()
            if taken:
                waiting.pop(0)

        def shown():
            wanted = ctx.get(dut.wanted) and (ctx.get(dut.wanted_bank), ctx.get(dut.wanted_row))
            return wanted, ctx.get(dut.readable), ctx.get(dut.column), ctx.get(dut.kept)

        assert shown() == (0, 0, 0, 0)
        await step()
        assert ctx.get(dut.begin)
        await step()
        await step()
        assert shown() == ((2, 7), 0, 0, 0)
        await step(opened=1)
        assert shown() == ((3, 8), 1, 0, 0b0100)
        await step(opened=1)
        assert shown() == (0, 1, 0, 0b1100)
        await step(all_closed=1)
        assert shown() == ((2, 7), 0, 0, 0)
        await step(opened=1)
        await step(opened=1)
        await step(read=1)
        # Through: its bank is let go, and the row ahead, which is open, takes its place.
        assert shown() == (0, 0, 1, 0b1000)
        assert not ctx.get(dut.begin)
        await step()
        assert shown() == (0, 1, 0, 0b1000)
        await step()
        assert shown() == ((0, 9), 1, 0, 0b1000)
        await step(read=1)
        await step(all_closed=1)
        # What was read of the front row stays read.
        assert shown() == ((3, 8), 0, 1, 0)
        await step(opened=1)
        await step(read=1)
        # The row ahead was not open yet: it is wanted once it is the front row.
        assert shown() == (0, 0, 2, 0)
        await step()
        assert shown() == ((0, 9), 0, 0, 0)

    _simulate(dut, bench)


@pytest.mark.parametrize(
    ("before", "after", "cycles"),
    [
        ("activate", "activate", 63),
        ("activate", "read", 19),
        ("activate", "write", 19),
        ("activate", "close", 45),
        ("activate", "refresh", 63),
        ("read", "close", 8),
        ("write", "close", 6 + 2 + 21),
        ("close", "activate", 19),
        ("close", "refresh", 19),
    ],
)
def test_a_bank_keeps_its_distances(before, after, cycles):
    dut = BankTimer(TIMING)
    ready = []

    async def bench(ctx):
        ctx.set(getattr(dut, before), 1)
        await ctx.tick()
        ctx.set(getattr(dut, before), 0)
        for _ in range(cycles + 1):
            ready.append(ctx.get(getattr(dut, f"may_{after}")))
            await ctx.tick()

    _simulate(dut, bench)
    assert ready == [0] * (cycles - 1) + [1, 1]


def test_a_bank_is_open_from_activation_to_precharge():
    dut = BankTimer(TIMING)
    seen = []

    async def bench(ctx):
        for cycle in range(80):
            ctx.set(dut.activate, cycle == 3)
            ctx.set(dut.close, cycle == 60)
            seen.append(ctx.get(dut.is_open))
            await ctx.tick()

    _simulate(dut, bench)
    assert seen == [int(3 < cycle <= 60) for cycle in range(80)]


def test_the_column_path_passes_one_bank_and_tells_of_two():
    dut = ColumnPath(GROUP)
    seen = []

    async def bench(ctx):
        for valid in (0b0000, 0b0001, 0b0100, 0b1000, 0b0010, 0b0000, 0b1010, 0b0000):
            for bank in range(4):
                ctx.set(dut.columns[bank].valid, valid >> bank & 1)
                ctx.set(dut.columns[bank].beat.data[3], 100 + bank)
            seen.append((ctx.get(dut.valid), ctx.get(dut.beat.data[3]), ctx.get(dut.collided)))
            await ctx.tick()

    _simulate(dut, bench)
    assert seen[:6] == [(0, 0, 0), (1, 100, 0), (1, 102, 0), (1, 103, 0), (1, 101, 0), (0, 0, 0)]
    assert [collided for _, _, collided in seen[6:]] == [0, 1]
