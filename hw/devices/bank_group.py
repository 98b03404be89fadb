"""The units of one bank group: a processing unit at each bank, and what makes one state of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.device_params import ChannelParams, Mapping
from hw.devices.clock_crossing import FromLogic, ToLogic
from hw.devices.layouts import bus_command_layout, bus_query_layout, permission_layout, score_layout
from hw.devices.modules import adder_module, stage_module, unit_module
from hw.devices.placed import Placed
from hw.devices.score_queue import ScoreQueue
from hw.layouts import body_layout, command_layout, head_layout, kv_layout, vector_layout

if TYPE_CHECKING:
    from amaranth.hdl import Signal

__all__ = ["BankGroup", "column_layout"]


def column_layout(params: ChannelParams) -> data.StructLayout:
    """Return the layout of a column on its way from one bank to its unit: in no more than one cycle ``valid``."""
    return data.StructLayout({"valid": 1, "beat": kv_layout(params.processing)})


class BankGroup(wiring.Component):
    """Compute one state of each operation from the columns of the banks of a group.

    Overview
    --------
    Split head dimension: the units' partial scores meet in a score adder that sends the sum back to all, and their
    slices of o are joined. Whole tokens: a reduction unit merges the banks' states. Scores of operations of scores
    leave by a queue, those of the parts side by side; of a split head dimension all units have the same one.

    Protocol
    --------
    Everything but ``head``, ``body`` and ``score`` arrives in the memory clock and is not held up: ``command`` and
    ``query`` only while ``command_free`` and ``query_free`` are high, columns only as ``permissions`` and, of
    operations of scores, ``scores_free`` allow. What arrives against this is lost and raises ``overrun``, which stays
    high. ``head``, ``body`` and ``score`` are streams in the memory clock. The units run in cycles of ``enable``.

    Latency and throughput
    ----------------------
    A column every ``2 / logic_ratio`` cycles of the memory clock; one cycle of it between a column and its unit, and
    one between the last unit and ``head`` and ``body``; between them the latencies of the units.

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    enable : In(1)
        Cycles of the logic.
    command_valid, command : In
        Command of an operation.
    query_valid, query : In
        A beat of its query, and the banks that it is for.
    columns : In(ArrayLayout(column_layout, banks))
        What the banks read, and which of it their units pass over.
    command_free, query_free : Out(1)
        There is room for a command, for a beat of a query, in every unit.
    permissions : Out(ArrayLayout(permission_layout, parts_per_group))
        What the parts of the group may be sent.
    head, body : Out(stream)
        State of the group, once an operation.
    score : Out(stream of score_layout)
        Scores of the group (:class:`hw.devices.score_queue.ScoreQueue`).
    scores_free : Out(1)
        Columns of an operation of scores may be read.
    overrun : Out(1)
        Something was lost.
    """

    def __init__(self, params: ChannelParams) -> None:
        require_type("params", params, ChannelParams)
        self.params = params
        banks = params.organisation.banks
        state = params.reduction
        super().__init__(
            {
                "enable": In(1),
                "command_valid": In(1),
                "command": In(bus_command_layout(params)),
                "query_valid": In(1),
                "query": In(bus_query_layout(params)),
                "columns": In(data.ArrayLayout(column_layout(params), banks)),
                "command_free": Out(1),
                "query_free": Out(1),
                "permissions": Out(data.ArrayLayout(permission_layout(params), params.parts_per_group)),
                "head": Out(stream.Signature(head_layout(state))),
                "body": Out(stream.Signature(body_layout(state))),
                "score": Out(stream.Signature(score_layout(params))),
                "scores_free": Out(1),
                "overrun": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Place the units, the registers before and behind them, and what joins or merges their states."""
        m = Module()
        params = self.params
        banks = params.organisation.banks
        units = [Placed(unit_module(params)) for _ in range(banks)]
        overruns: list[Signal] = []
        commands_free, queries_free = [], []
        for bank, unit in enumerate(units):
            m.submodules[f"unit_{bank}"] = unit
            command = ToLogic(command_layout(params.processing))
            query = ToLogic(vector_layout(params.processing))
            column = ToLogic(kv_layout(params.processing))
            for name, register in (("command", command), ("query", query), ("column", column)):
                m.submodules[f"{name}_{bank}"] = register
                m.d.comb += register.enable.eq(self.enable)
                overruns.append(register.overrun)
            m.d.comb += unit.enable.eq(self.enable)
            part = bank % params.parts_per_group
            for key, _ in command_layout(params.processing):
                source = self.command.tokens[part] if key == "num_tokens" else self.command.unit[key]
                m.d.comb += command.payload[key].eq(source)
            m.d.comb += [
                command.valid.eq(self.command_valid),
                query.valid.eq(self.query_valid & self.query.banks[bank]),
                query.payload.eq(self.query.beat),
                column.valid.eq(self.columns[bank].valid),
                column.payload.eq(self.columns[bank].beat),
            ]
            wiring.connect(m, command.o, unit.command)
            wiring.connect(m, query.o, unit.query)
            wiring.connect(m, column.o, unit.kv)
            commands_free.append(command.free)
            queries_free.append(query.free)
        m.d.comb += [
            self.command_free.eq(Cat(*commands_free).all()),
            self.query_free.eq(Cat(*queries_free).all()),
        ]
        for part in range(params.parts_per_group):
            m.d.comb += [
                self.permissions[part].key_operations.eq(units[part].key_operations),
                self.permissions[part].value_tiles.eq(units[part].value_tiles),
            ]
        stage = Placed(stage_module(params))
        m.submodules.stage = stage
        m.d.comb += stage.enable.eq(self.enable)
        for number, unit in enumerate(units):
            wiring.connect(m, unit.head, stage.head_i[number])
            wiring.connect(m, unit.body, stage.body_i[number])
        if params.mapping is Mapping.SPLIT:
            self._add_scores(m, units, overruns)
        m.submodules.scores = scores = ScoreQueue(params)
        for unit, port in zip(units, scores.i, strict=False):
            wiring.connect(m, unit.token_score, port)
        wiring.connect(m, scores.o, wiring.flipped(self.score))
        m.d.comb += [scores.enable.eq(self.enable), self.scores_free.eq(scores.free)]
        overruns.append(scores.overrun)
        m.d.comb += self.overrun.eq(Cat(*overruns).any())
        for stream_o, layout, port in (
            (stage.head_o, head_layout(params.reduction), self.head),
            (stage.body_o, body_layout(params.reduction), self.body),
        ):
            register = FromLogic(layout)
            m.submodules += register
            m.d.comb += register.enable.eq(self.enable)
            wiring.connect(m, stream_o, register.i)
            wiring.connect(m, register.o, wiring.flipped(port))
        return m

    def _add_scores(self, m: Module, units: list[Placed], overruns: list[Signal]) -> None:
        """Add the parts of every score, and give the sum to all units."""
        m.submodules.score_adder = adder = Placed(adder_module(self.params))
        m.d.comb += adder.enable.eq(self.enable)
        overruns.append(adder.fault)
        for number, unit in enumerate(units):
            m.d.comb += [
                adder.i[number].valid.eq(unit.partial.valid),
                adder.i[number].sum.eq(unit.partial.sum),
                unit.score.valid.eq(adder.o.valid),
                unit.score.sum.eq(adder.o.sum),
            ]
