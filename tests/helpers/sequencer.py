"""Runs a sequencer of a channel in Amaranth's simulator, with streams that come late and units that wait."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from amaranth.hdl import Cat, ResetInserter, Signal
from amaranth.sim import Simulator

from hw.devices.commands import ColumnKind, RowKind, Scope
from tests.helpers.dram_checker import Command, DramChecker, check

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amaranth.lib import wiring

    from hw.device_params import ChannelParams

__all__ = ["accesses", "assert_legal_commands", "run_sequencer"]


def run_sequencer(
    dut: wiring.Component,
    items: Mapping[str, Sequence[Any]],
    *,
    chances: Mapping[str, float],
    cycles: int,
    seed: int = 0,
    keys_from: int = 0,
    values_from: int = 0,
    first_refresh: int = 90,
    resets: Sequence[int] = (),
    room: float = 1.0,
) -> tuple[list[Command], list[int]]:
    """Return the commands of one operation, and the first element of every column written.

    ``items`` of each stream are offered by chance; keys and values are permitted from a cycle on, and scores find
    ``room`` by chance. After each cycle of ``resets`` all begins anew; cycles count from the last of them.
    """
    rng = np.random.default_rng(seed)
    commands: list[Command] = []
    data: list[int] = []
    reset = Signal()

    buses = [(dut.row_command, RowKind), (dut.column_command, ColumnKind)]
    streams = [getattr(dut, name) for name in items]
    # What happens in a cycle, in one look, as looks are what takes the time.
    happening = Cat(*(bus.valid for bus, _ in buses), *(stream.valid & stream.ready for stream in streams))

    async def session(ctx: Any, last_cycle: int) -> None:
        commands.clear()
        data.clear()
        waiting = [list(reversed(stream_items)) for stream_items in items.values()]
        offered = [False] * len(streams)
        ctx.set(dut.start, 1)
        for cycle in range(last_cycle):
            if cycle in (0, keys_from, values_from):
                ctx.set(dut.permissions[0].key_operations, cycle >= keys_from)
                ctx.set(dut.permissions[0].value_tiles, 3 * (cycle >= values_from))
            for number, (name, stream) in enumerate(zip(items, streams, strict=True)):
                if not offered[number] and waiting[number] and rng.random() < chances.get(name, 1.0):
                    ctx.set(stream.payload, waiting[number].pop())
                    ctx.set(stream.valid, 1)
                    offered[number] = True
            if room < 1:
                ctx.set(dut.scores_free, rng.random() < room)
            found = ctx.get(happening)
            for number, (bus, kinds) in enumerate(buses):
                if found >> number & 1:
                    fields = {name: ctx.get(bus.payload[name]) for name, _ in bus.payload.shape()}
                    kind, scope = (kinds(fields.pop("kind")).name, Scope(fields.pop("scope")).name)
                    commands.append(Command(cycle=cycle, kind=kind, scope=scope, **fields))
                    if kind == "WR":
                        data.append(ctx.get(dut.write_data)[0])
            if cycle == last_cycle - 1:
                ctx.set(reset, 1)
            await ctx.tick()
            if cycle == 0:
                ctx.set(dut.start, 0)
            for number, stream in enumerate(streams):
                if found >> 2 + number & 1:
                    ctx.set(stream.valid, 0)
                    offered[number] = False
        ctx.set(reset, 0)
        ctx.set(dut.start, 0)
        for stream in streams:
            ctx.set(stream.valid, 0)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.first_refresh_cycles, first_refresh)
        ctx.set(dut.command_free, 1)
        ctx.set(dut.query_free, 1)
        ctx.set(dut.scores_free, 1)
        for last_cycle in (*resets, cycles):
            await session(ctx, last_cycle)

    simulator = Simulator(ResetInserter(reset)(dut))
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    return commands, data


def accesses(commands: Sequence[Command]) -> list[tuple[str, int | None, int, tuple[int, int, int, int]]]:
    """Return what each column command but broadcasts does: kind, open row, column, and place as addressed."""
    rows: dict[int, int] = {}
    found = []
    for command in sorted(commands, key=lambda command: (command.cycle, not command.is_column)):
        # Where all banks are opened at once, the row is found under any of them.
        banks = range(4) if command.scope == "ALL_BANK" else [command.bank]
        if command.kind == "ACT":
            rows.update(dict.fromkeys(banks, command.row))
        elif command.kind in ("MAC", "WR"):
            found.append((command.kind, rows.get(command.bank), command.column, command.place))
    return found


def assert_legal_commands(params: ChannelParams, commands: Sequence[Command], *, cycles: int) -> DramChecker:
    """Hold ``commands`` against the independent checker and return it."""
    checker = DramChecker(
        {name: number for name, number in asdict(params.timing).items() if name != "clock_ns"},
        asdict(params.organisation),
    )
    assert not check(checker, commands, cycles=cycles)
    return checker
