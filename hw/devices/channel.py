"""One channel's logic: a sequencer, and units at all of its banks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.device_params import ChannelParams, Mapping
from hw.devices.bank_group import BankGroup
from hw.devices.commands import column_command_layout, row_command_layout
from hw.devices.group_sequencer import GroupSequencer
from hw.devices.group_unit import GroupUnit
from hw.devices.layouts import operation_layout, score_layout
from hw.devices.modules import group_modules
from hw.devices.placed import Placed, UnitModule
from hw.devices.selection import Selection, request_layout
from hw.devices.sequencer import ChannelSequencer
from hw.layouts import body_layout, head_layout, vector_layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amaranth.hdl import Value, ValueLike

__all__ = [
    "CHANNEL_TOP",
    "Channel",
    "add_groups",
    "channel_modules",
    "channel_sequencer",
    "group_module",
    "read_layout",
]

CHANNEL_TOP = "nearkv_channel"
"""Name of the top module of :class:`Channel`."""


def read_layout(params: ChannelParams) -> data.StructLayout:
    """Return the layout of a column as a bank gives it: in no more than one cycle ``valid``."""
    return data.StructLayout({"valid": 1, "data": vector_layout(params.processing)})


class Channel(wiring.Component):
    """Drive the banks of a channel and compute one state of each operation in every bank group.

    Overview
    --------
    A :class:`hw.devices.sequencer.ChannelSequencer` and a :class:`hw.devices.bank_group.BankGroup` for each group. The
    banks themselves are outside: commands go out on ``row_command`` and ``column_command``, columns come back.

    Protocol
    --------
    ``operation``, ``query`` and ``append`` are plain ready/valid streams, those of the sequencer; ``selection`` and
    ``words`` those of the :class:`hw.devices.selection.Selection` that names selected tokens to it. ``start``
    is given once, before the first operation. A command is on its bus in one cycle, whatever happens there, and
    ``write_data`` beside a WR. Every bank gives the column of a MACAB n_cl cycles behind it, for one cycle; nothing
    holds it up. ``head`` and ``body`` are plain streams in the memory clock. The units run in cycles of ``enable``.

    Timing
    ------
    One operation, cycles of the memory clock; the cap of power and the units leave the distances as they are::

        operation, query    BROADCAST ... | ACTAB .. MACAB MACAB .. PREA | ACTAB ..
        columns                                    n_cl ..| K    K  ..
        head, body                                                                      .. H b b

    One of scores has the rows of keys alone, and a score of each group behind every token::

        columns                                    n_cl ..| K    K  ..
        score                                                   .. s    s  ..

    Latency and throughput
    ----------------------
    :func:`hw.timing.channel_runs.run_cycles`: bursts of command and query, rows or the cap's columns, units.

    Numerics
    --------
    Those of the units: bit for bit :func:`golden.attention.local_state` of every part, joined or merged in the group
    (``tests/rtl/test_channel.py``, with a model of the banks around the same parts); scores
    :func:`golden.scores.token_scores` (``tests/rtl/test_channel_scores.py``).

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    enable : In(1)
        Cycles of the logic, ``logic_ratio`` of all.
    start, first_refresh_cycles : In
        Begin; cycles to the first refresh, 0 for none at all.
    operation, query, append : In(stream)
        See :class:`hw.devices.sequencer.ChannelSequencer`.
    selection, words : In(stream)
        See :class:`hw.devices.selection.Selection`.
    columns : In(ArrayLayout(read_layout, banks of the channel))
        What the banks read, group by group.
    row_command, column_command, write_data : Out
        The two command buses, and the data of a WR.
    head, body : ``Out(stream).array(groups)``
        States of the groups, one each an operation of attention.
    score : ``Out(stream of score_layout).array(groups)``
        Scores of the groups, of operations of scores; each group's in the order of positions. One that is refused holds
        up the reads of the channel.
    overrun : Out(1)
        A unit lost something; stays high.
    """

    enable: Signal
    overrun: Signal
    head: list[stream.Interface]
    body: list[stream.Interface]
    score: list[stream.Interface]

    def __init__(self, params: ChannelParams) -> None:
        self.params = params
        self.groups = params.groups
        buses = {
            name: Out(wiring.Signature({"valid": Out(1), "payload": Out(layout(params.organisation))}))
            for name, layout in (("row_command", row_command_layout), ("column_command", column_command_layout))
        }
        super().__init__(
            {
                "enable": In(1),
                "start": In(1),
                "first_refresh_cycles": In(range(params.timing.n_refi + 1)),
                "operation": In(stream.Signature(operation_layout(params))),
                "query": In(stream.Signature(vector_layout(params.processing))),
                "append": In(stream.Signature(vector_layout(params.processing))),
                "selection": In(stream.Signature(request_layout(params))),
                "words": In(stream.Signature(params.organisation.column_bits)),
                "columns": In(data.ArrayLayout(read_layout(params), params.organisation.banks_per_channel)),
                **buses,
                "write_data": Out(vector_layout(params.processing)),
                "head": Out(stream.Signature(head_layout(params.reduction))).array(params.groups),
                "body": Out(stream.Signature(body_layout(params.reduction))).array(params.groups),
                "score": Out(stream.Signature(score_layout(params))).array(params.groups),
                "overrun": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the sequencer and the groups."""
        m = Module()
        params = self.params
        m.submodules.sequencer = sequencer = channel_sequencer(params, parts=params.parts)
        m.submodules.selection = selection = Selection(params)
        wiring.connect(m, wiring.flipped(self.selection), selection.request)
        wiring.connect(m, wiring.flipped(self.words), selection.words)
        wiring.connect(m, selection.places, sequencer.places)
        for name in ("operation", "query", "append"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(sequencer, name))
        for name in ("row_command", "column_command"):
            bus, shown = getattr(sequencer, name), getattr(self, name)
            m.d.comb += [shown.valid.eq(bus.valid), shown.payload.eq(bus.payload)]
        columns = [(column.valid, column.data) for column in self.columns]
        groups = add_groups(m, self, sequencer, self.enable, columns)
        m.d.comb += [
            sequencer.start.eq(self.start),
            sequencer.first_refresh_cycles.eq(self.first_refresh_cycles),
            self.write_data.eq(sequencer.write_data),
            self.overrun.eq(Cat(*(group.overrun for group in groups)).any()),
        ]
        return m


class _WithGroups(Protocol):
    """A component that gives states and scores of its first ``groups`` bank groups."""

    params: ChannelParams
    groups: int
    head: list[stream.Interface]
    body: list[stream.Interface]
    score: list[stream.Interface]


def add_groups(
    m: Module,
    device: _WithGroups,
    sequencer: ChannelSequencer | GroupSequencer,
    enable: Value,
    columns: Sequence[tuple[ValueLike, ValueLike]],
) -> list[Placed]:
    """Place the bank groups of a device, connect them to its sequencer and its ports, and return them.

    Parameters
    ----------
    m : Module
        That of the device.
    device : Component
        The device: its groups' states are its ``head`` and ``body``, their scores its ``score``.
    sequencer : ChannelSequencer or GroupSequencer
        Hears the permissions of all its parts.
    enable : Value
        Cycles of the logic.
    columns : sequence of (valid, data)
        What every bank reads, group by group.
    """
    params = device.params
    banks, per_group = params.organisation.banks, params.parts_per_group
    groups = [Placed(group_module(params)) for _ in range(device.groups)]
    tokens = sequencer.operation.payload.tokens
    for number, group in enumerate(groups):
        m.submodules[f"group_{number}"] = group
        m.d.comb += [
            group.enable.eq(enable),
            group.command_valid.eq(sequencer.command_valid),
            group.command.unit.eq(sequencer.operation.payload.unit),
            group.query_valid.eq(sequencer.query_valid),
            group.query.banks.eq(sequencer.banks),
            group.query.beat.eq(sequencer.query.payload),
        ]
        for part in range(per_group):
            place = number * per_group + part
            m.d.comb += [
                group.command.tokens[part].eq(tokens[place]),
                sequencer.permissions[place].eq(group.permissions[part]),
            ]
        for bank, (valid, column) in enumerate(columns[number * banks : (number + 1) * banks]):
            m.d.comb += [
                group.columns[bank].valid.eq(valid),
                group.columns[bank].beat.data.eq(column),
                group.columns[bank].beat.skip.eq(~sequencer.wanted[number * per_group + bank % per_group]),
            ]
        wiring.connect(m, group.head, wiring.flipped(device.head[number]))
        wiring.connect(m, group.body, wiring.flipped(device.body[number]))
        wiring.connect(m, group.score, wiring.flipped(device.score[number]))
    m.d.comb += [
        sequencer.command_free.eq(Cat(*(group.command_free for group in groups)).all()),
        sequencer.query_free.eq(Cat(*(group.query_free for group in groups)).all()),
        sequencer.scores_free.eq(Cat(*(group.scores_free for group in groups)).all()),
    ]
    return groups


def channel_modules(params: ChannelParams) -> list[UnitModule]:
    """Return the Verilog modules of a channel, the one that holds all others last."""
    return [*group_modules(params), group_module(params), UnitModule(CHANNEL_TOP, Channel, params)]


def group_module(params: ChannelParams) -> UnitModule:
    """Return the Verilog module of a bank group."""
    return UnitModule("nearkv_bank_group", GroupUnit if params.mapping is Mapping.GROUP else BankGroup, params)


def channel_sequencer(params: ChannelParams, *, parts: int) -> ChannelSequencer | GroupSequencer:
    """Return what drives the banks: all of them in lock step, or one of every group where the unit is the group's."""
    made = GroupSequencer if params.mapping is Mapping.GROUP else ChannelSequencer
    return made(params, parts=parts)
