# amaranth: UnusedElaboratable=no
"""Promise: columns as far apart as a unit uses them for its queries lose nothing; a cycle closer some are lost."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from hw.devices.clock_crossing import ToLogic
from hw.devices.clock_enable import ClockEnable
from hw.devices.placed import UnderEnable
from hw.devices.spacing import Pace
from hw.layouts import command_layout, kv_layout, vector_layout
from hw.params import ProcessingParams
from hw.timing.operation import OperationSizes
from hw.units.processing import ProcessingUnit

PARAMS = ProcessingParams(head_dim=4, lanes=2, tile_tokens=8, queries=4)


def _overruns(ratio, runs):
    """Send the 16 columns of the keys of a tile so many cycles apart; return whether one was lost.

    ``runs`` has the queries and the distance of each run; they follow each other in one simulation, a reset between.
    """
    reset = Signal()
    m = Module()
    m.submodules.clock = clock = ClockEnable(ratio)
    m.submodules.unit = unit = UnderEnable(ProcessingUnit(PARAMS))
    m.submodules.column = column = ToLogic(kv_layout(PARAMS))
    m.d.comb += [unit.enable.eq(clock.enable), column.enable.eq(clock.enable)]
    connect(m, column.o, unit.kv)
    lost = []

    async def give(ctx, stream, payload):
        ctx.set(stream.payload, payload)
        ctx.set(stream.valid, 1)
        await ctx.tick().until(stream.ready & clock.enable)
        ctx.set(stream.valid, 0)

    async def bench(ctx):
        for queries, distance in runs:
            sizes = OperationSizes.of(PARAMS, PARAMS.tile_tokens, queries=queries)
            command = {"op_id": 0, "scale": 0, **sizes.command_fields}
            await give(ctx, unit.command, command_layout(PARAMS).const(command))
            for _ in range(sizes.query_beats):
                await give(ctx, unit.query, vector_layout(PARAMS).const([0] * PARAMS.lanes))
            await ctx.tick().until(unit.key_operations == 1)
            for _ in range(sizes.kv_beats // 2):
                ctx.set(column.valid, 1)
                await ctx.tick()
                ctx.set(column.valid, 0)
                await ctx.tick().repeat(distance - 1)
            lost.append(bool(ctx.get(column.overrun)))
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)

    simulator = Simulator(ResetInserter(reset)(m))
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    return lost


@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(1, 2), Fraction(2, 5), Fraction(5, 16)])
def test_columns_are_lost_only_if_they_come_faster_than_they_are_used(ratio):
    runs = [(queries, math.ceil(queries / ratio) - closer) for queries in (3, 4) for closer in (0, 1)]
    assert _overruns(ratio, runs) == [False, True, False, True]


def test_a_pace_is_that_of_the_last_event():
    dut = Pace(9)
    seen = []

    async def bench(ctx):
        for cycles in (1, 9, 2):
            ctx.set(dut.cycles, cycles)
            ctx.set(dut.event, 1)
            await ctx.tick()
            ctx.set(dut.event, 0)
            ctx.set(dut.cycles, 5)  # looked at with the event alone
            waited = 1
            while not ctx.get(dut.ready):
                await ctx.tick()
                waited += 1
            seen.append(waited)

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [1, 9, 2]


def test_a_pace_has_a_longest_distance():
    with pytest.raises(ValueError, match=r"^most_cycles must be at least 1, not 0$"):
        Pace(0)
