"""The unit of one bank group, which reads all banks of the group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.devices.bank_group import column_layout
from hw.devices.clock_crossing import FromLogic, ToLogic
from hw.devices.column_path import ColumnPath
from hw.devices.layouts import bus_command_layout, bus_query_layout, permission_layout, score_layout
from hw.devices.modules import unit_module
from hw.devices.placed import Placed
from hw.devices.score_queue import ScoreQueue
from hw.layouts import body_layout, command_layout, head_layout, kv_layout, vector_layout

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["GroupUnit"]


class GroupUnit(wiring.Component):
    """Compute one state of each operation from the columns of the banks of a group, with one processing unit.

    Overview
    --------
    The column path of the group, which its banks share, brings a column of one bank at a time. The state of the unit
    is that of the group.

    Protocol
    --------
    Members, and what they may be given when, are those of :class:`hw.devices.bank_group.BankGroup`; of ``columns`` no
    more than one is valid in a cycle, else one is lost, which raises ``overrun``.

    Latency and throughput
    ----------------------
    A column every ``2 / logic_ratio`` cycles of the memory clock; one cycle of it between a column and the unit, and
    one between the unit and ``head`` and ``body``.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.
    """

    def __init__(self, params: ChannelParams) -> None:
        self.params = params
        state = params.reduction
        super().__init__(
            {
                "enable": In(1),
                "command_valid": In(1),
                "command": In(bus_command_layout(params)),
                "query_valid": In(1),
                "query": In(bus_query_layout(params)),
                "columns": In(data.ArrayLayout(column_layout(params), params.organisation.banks)),
                "command_free": Out(1),
                "query_free": Out(1),
                "permissions": Out(data.ArrayLayout(permission_layout(params), 1)),
                "head": Out(stream.Signature(head_layout(state))),
                "body": Out(stream.Signature(body_layout(state))),
                "score": Out(stream.Signature(score_layout(params))),
                "scores_free": Out(1),
                "overrun": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the unit and the registers before and behind it."""
        m = Module()
        params = self.params
        m.submodules.unit = unit = Placed(unit_module(params))
        m.submodules.command = command = ToLogic(command_layout(params.processing))
        m.submodules.query = query = ToLogic(vector_layout(params.processing))
        m.submodules.path = path = ColumnPath(params)
        m.submodules.column = column = ToLogic(kv_layout(params.processing))
        m.submodules.head = head = FromLogic(head_layout(params.reduction))
        m.submodules.body = body = FromLogic(body_layout(params.reduction))
        m.submodules.scores = scores = ScoreQueue(params)
        m.d.comb += [part.enable.eq(self.enable) for part in (unit, command, query, column, head, body, scores)]
        for key, _ in command_layout(params.processing):
            source = self.command.tokens[0] if key == "num_tokens" else self.command.unit[key]
            m.d.comb += command.payload[key].eq(source)
        m.d.comb += [
            command.valid.eq(self.command_valid),
            query.valid.eq(self.query_valid),
            query.payload.eq(self.query.beat),
            path.columns.eq(self.columns),
            column.valid.eq(path.valid),
            column.payload.eq(path.beat),
            self.command_free.eq(command.free),
            self.query_free.eq(query.free),
            self.permissions[0].key_operations.eq(unit.key_operations),
            self.permissions[0].value_tiles.eq(unit.value_tiles),
            self.scores_free.eq(scores.free),
            self.overrun.eq(command.overrun | query.overrun | column.overrun | path.collided | scores.overrun),
        ]
        for source, sink in (
            (command.o, unit.command),
            (query.o, unit.query),
            (column.o, unit.kv),
            (unit.head, head.i),
            (unit.body, body.i),
            (head.o, wiring.flipped(self.head)),
            (body.o, wiring.flipped(self.body)),
            (unit.token_score, scores.i[0]),
            (scores.o, wiring.flipped(self.score)),
        ):
            wiring.connect(m, source, sink)
        return m
