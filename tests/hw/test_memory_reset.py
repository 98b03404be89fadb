"""Promise: after a reset in any cycle the memory model has closed rows, nothing under way, and its contents."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from hw.devices.commands import ColumnKind, RowKind, Scope
from hw.devices.memory_model import MemoryModel
from hw.memory.model_params import MemoryModelParams
from tests.helpers.memory_bench import QUICK, SMALL

PARAMS = MemoryModelParams(
    organisation=SMALL, timing=QUICK, simulated_groups=1, simulated_rows=4, postponed_refreshes=2
)
ACT_AT, MAC_AT, SHOWN_AT = 0, 5, 11  # n_rcdrd 5, n_cl 6


@pytest.mark.parametrize("reset_at", range(14))
def test_reset_in_any_cycle(reset_at: int) -> None:
    domain = ClockDomain("sync")
    top = Module()
    top.domains += domain
    top.submodules.memory = memory = MemoryModel(PARAMS)
    done = False

    async def testbench(ctx: Any) -> None:
        nonlocal done
        ctx.set(memory.load.payload, {"row": 2, "column": 3, "data": [17, 18]})
        ctx.set(memory.load.valid, 1)
        await ctx.tick()
        ctx.set(memory.load.valid, 0)
        for last, cycles in ((False, reset_at), (True, SHOWN_AT + 5)):
            for cycle in range(cycles):
                ctx.set(memory.row_command.payload, {"kind": RowKind.ACT, "scope": Scope.ALL_BANK, "row": 2})
                ctx.set(memory.row_command.valid, cycle == ACT_AT)
                ctx.set(memory.column_command.payload, {"kind": ColumnKind.MAC, "scope": Scope.ALL_BANK, "column": 3})
                ctx.set(memory.column_command.valid, cycle == MAC_AT)
                for bank, column in enumerate(memory.columns):
                    assert ctx.get(column.valid) == (cycle == SHOWN_AT)
                    if cycle == SHOWN_AT:
                        assert ctx.get(column.payload) == 17 + bank
                assert not ctx.get(memory.violation.valid)
                assert not ctx.get(memory.violated)
                await ctx.tick()
            if not last:
                # Two activations in a row break rules, which a reset forgets too.
                ctx.set(memory.row_command.valid, 1)
                ctx.set(memory.column_command.valid, 1)
                await ctx.tick()
                ctx.set(domain.rst, 1)
                await ctx.tick()
                ctx.set(domain.rst, 0)
        done = True

    simulator = Simulator(top)
    simulator.add_clock(1e-9)
    simulator.add_testbench(testbench)
    simulator.run()
    assert done
