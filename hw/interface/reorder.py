"""The command reorder unit: reads leave in an order that opens few rows and alternates bank groups."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.dma_params import ReorderParams
from hw.interface.layouts import read_command_layout

__all__ = ["CommandReorder"]


class CommandReorder(wiring.Component):
    """Hold reads until they go, each when it suits the memory best.

    Overview
    --------
    What :class:`golden.dma.reorder.Reorder` says. Commands wait in the order in which they came, each with a mark that
    its row is open; the mark is made when the command comes, and made anew when another command of its group goes.

    Protocol
    --------
    Plain ready/valid streams. Commands that must keep their order do not belong here at the same time: no two are
    compared for what they read. A choice is made when the one before has room to go; the commands that take part are
    those that were taken in an earlier cycle.

    Latency and throughput
    ----------------------
    2 cycles through an idle unit; a command a cycle, at a depth of 1 every other cycle. No command waits as the oldest
    for more than ``patience`` others.

    Parameters
    ----------
    params : ReorderParams
        Sizes.

    Members
    -------
    i, o : In(stream of read_command_layout), Out(stream of read_command_layout)
        Commands.

    Raises
    ------
    TypeError
        If ``params`` are something else.
    """

    def __init__(self, params: ReorderParams) -> None:
        if not isinstance(params, ReorderParams):
            raise TypeError(f"params must be a ReorderParams, not {params!r}")
        self.params = params
        commands = stream.Signature(read_command_layout(params))
        super().__init__({"i": In(commands), "o": Out(commands)})

    def elaborate(self, platform: object) -> Module:
        """Build the queue, the open rows and the choice."""
        m = Module()
        params = self.params
        depth = params.depth
        entry_layout = data.StructLayout({"command": read_command_layout(params), "hit": 1})
        entries = [Signal(entry_layout, name=f"entry_{place}") for place in range(depth)]
        # Whether there is a command is one bit a place; places fill from the front.
        there = Signal(depth)
        open_rows = [Signal(params.row_bits, name=f"row_{group}") for group in range(params.groups)]
        is_open = Signal(params.groups)
        last_group, has_last = Signal(range(params.groups)), Signal()
        passed = Signal(range(params.patience + 1))

        hits = Cat(entry.hit for entry in entries) & there
        others = Cat(~has_last | (entry.command.group != last_group) for entry in entries) & there
        classes = [(passed == params.patience) & there[0], hits & others, hits, others, there]
        members: Value = classes[-1]
        for candidates in reversed(classes[:-1]):
            members = Mux(candidates.any(), candidates, members)
        chosen, go = Signal(depth), Signal()
        # The lowest bit that is set is the oldest.
        m.d.comb += [
            chosen.eq(members & (~members + 1)[:depth]),
            go.eq(there.any() & (~self.o.valid | self.o.ready)),
            self.i.ready.eq(~there[-1]),
        ]
        winner = Signal(read_command_layout(params))
        for place, entry in enumerate(entries):
            with m.If(chosen[place]):
                m.d.comb += winner.eq(entry.command)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(go):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.eq(winner),
                last_group.eq(winner.group),
                has_last.eq(1),
                passed.eq(Mux(chosen[0], 0, Mux(passed == params.patience, passed, passed + 1))),
            ]
        for group, row in enumerate(open_rows):
            with m.If(go & (winner.group == group)):
                m.d.sync += [row.eq(winner.row), is_open[group].eq(1)]

        def marked(command: Value, hit: Value) -> Value:
            """Return the mark of a command once the winner, if there is one, has opened its row."""
            return Mux(go & (command.group == winner.group), command.row == winner.row, hit)

        came = self.i.payload
        known = is_open.bit_select(came.group, 1) & (Array(open_rows)[came.group] == came.row)
        fresh = Signal(entry_layout)
        m.d.comb += [fresh.command.eq(came), fresh.hit.eq(marked(came, known))]
        # From the winner's place on everything moves up by one.
        moved = [chosen[: place + 1].any() & go for place in range(depth)]
        held = Signal(depth)
        taken = Signal()
        m.d.comb += [taken.eq(self.i.valid & self.i.ready), held.eq(Mux(go, there >> 1, there))]
        for place, entry in enumerate(entries):
            stays = Signal(entry_layout, name=f"stays_{place}")
            m.d.comb += stays.eq(Mux(moved[place], entries[place + 1], entry) if place + 1 < depth else entry)
            arrives = ~held[place] & (held[place - 1] if place else 1)
            with m.If(arrives):
                m.d.sync += entry.eq(fresh)
            with m.Else():
                m.d.sync += [entry.command.eq(stays.command), entry.hit.eq(marked(stays.command, stays.hit))]
        m.d.sync += there.eq(Mux(taken, held << 1 | 1, held))
        return m
