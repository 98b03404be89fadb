"""A channel with its memory, for simulation: what Verilator runs when cycles of a device are measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, ResetInserter, ResetSignal, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.device_params import ChannelBenchParams
from hw.devices.channel import add_groups, channel_sequencer, group_module
from hw.devices.clock_enable import ClockEnable
from hw.devices.commands import column_command_layout, row_command_layout
from hw.devices.layouts import operation_layout, score_layout
from hw.devices.memory_model import MemoryModel, load_layout
from hw.devices.modules import group_modules
from hw.devices.placed import UnitModule
from hw.devices.selection import Selection, request_layout
from hw.layouts import body_layout, head_layout, vector_layout
from hw.memory.model_params import MemoryModelParams
from hw.memory.rules import rule_names

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["BENCH_TOP", "ChannelBench", "bench_modules", "setup_layout"]

BENCH_TOP = "nearkv_channel_bench"
"""Name of the top module."""

_POSTPONED_REFRESHES = 8
"""What JESD238 allows."""


def setup_layout(params: ChannelParams) -> data.StructLayout:
    """Return the layout of the item that begins a run: cycles to the first refresh, 0 for none at all."""
    return data.StructLayout({"first_refresh_cycles": range(params.timing.n_refi + 1)})


class ChannelBench(wiring.Component):
    """The sequencer of a channel, some of its bank groups, and a model of their banks. Simulation only.

    All groups of a channel do the same in the same cycles, but for their token counts: simulating ``groups`` of them
    gives the cycles and the states of these, and the commands of the channel where one of these has the most tokens,
    so that the channel waits for no other.

    Protocol
    --------
    ``load`` fills the cells, ``setup``, taken when nothing is left to load, begins the run: operations wait for it, and
    the cycle that follows it is the first in which a refresh can fall due. Without refresh that rule is not watched.
    ``operation``, ``query`` and ``append`` are those of the sequencer, ``selection`` and ``words`` those of the unit
    that names selected tokens to it. Its commands appear on
    ``row_command`` and ``column_command`` in the cycle in which they are issued, whatever their ``ready``. ``alarm``
    gives an item in every cycle in which the memory model finds a rule broken, and in every cycle after units have
    lost something. In a cycle in which ``hold`` offers an item, the scores of the groups whose bits are set are neither
    offered nor taken. In a cycle behind one in which ``restart`` offers an item all is in reset, and ``setup`` is taken
    anew; cells keep what they hold.

    Parameters
    ----------
    bench : ChannelBenchParams
        The channel, and what of it is simulated.
    """

    simulation_only = True
    head: list[stream.Interface]
    body: list[stream.Interface]
    score: list[stream.Interface]

    def __init__(self, bench: ChannelBenchParams) -> None:
        require_type("bench", bench, ChannelBenchParams)
        params = bench.channel
        self.params = params
        self.groups = groups = bench.groups
        self.memory = MemoryModelParams(
            organisation=params.organisation,
            timing=params.timing,
            simulated_groups=groups,
            simulated_rows=bench.rows,
            postponed_refreshes=_POSTPONED_REFRESHES,
        )
        state = params.reduction
        super().__init__(
            {
                "load": In(stream.Signature(load_layout(self.memory))),
                "setup": In(stream.Signature(setup_layout(params))),
                "operation": In(stream.Signature(operation_layout(params))),
                "query": In(stream.Signature(vector_layout(params.processing))),
                "append": In(stream.Signature(vector_layout(params.processing))),
                "selection": In(stream.Signature(request_layout(params))),
                "words": In(stream.Signature(params.organisation.column_bits)),
                "row_command": Out(stream.Signature(row_command_layout(params.organisation))),
                "column_command": Out(stream.Signature(column_command_layout(params.organisation))),
                "head": Out(stream.Signature(head_layout(state))).array(groups),
                "body": Out(stream.Signature(body_layout(state))).array(groups),
                "score": Out(stream.Signature(score_layout(params))).array(groups),
                "hold": In(stream.Signature(groups)),
                "restart": In(stream.Signature(1)),
                "alarm": Out(stream.Signature(2)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Connect the parts."""
        m = Module()
        params = self.params
        running, refreshing = Signal(), Signal()
        memory = MemoryModel(self.memory)
        # What the rules remember begins with the run; the cells keep what has been loaded.
        m.submodules.memory = ResetInserter(~running)(memory)
        m.submodules.clock = clock = ClockEnable(params.logic_ratio)
        m.submodules.sequencer = sequencer = channel_sequencer(params, parts=self.groups * params.parts_per_group)
        wiring.connect(m, wiring.flipped(self.load), memory.load)
        m.submodules.selection = selection = Selection(params)
        for name in ("query", "append"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(sequencer, name))
        wiring.connect(m, wiring.flipped(self.words), selection.words)
        wiring.connect(m, selection.places, sequencer.places)

        m.d.comb += [
            memory.write_data.eq(sequencer.write_data),
            self.setup.ready.eq(~running & ~self.load.valid),
            sequencer.start.eq(self.setup.valid & self.setup.ready),
            sequencer.first_refresh_cycles.eq(self.setup.payload.first_refresh_cycles),
            sequencer.operation.payload.eq(self.operation.payload),
            sequencer.operation.valid.eq(self.operation.valid & running),
            self.operation.ready.eq(sequencer.operation.ready & running),
            selection.request.payload.eq(self.selection.payload),
            selection.request.valid.eq(self.selection.valid & running),
            self.selection.ready.eq(selection.request.ready),
        ]
        with m.If(sequencer.start):
            m.d.sync += [running.eq(1), refreshing.eq(self.setup.payload.first_refresh_cycles != 0)]
        for name in ("row_command", "column_command"):
            source, shown = getattr(sequencer, name), getattr(self, name)
            target = getattr(memory, name)
            m.d.comb += [
                shown.valid.eq(source.valid),
                shown.payload.eq(source.payload),
                target.valid.eq(source.valid),
                target.payload.eq(source.payload),
            ]

        columns = [(column.valid, column.payload) for column in memory.columns]
        groups = add_groups(m, _Held(self, m), sequencer, clock.enable, columns)
        due = rule_names(params.timing).index("refresh due")
        broken = Cat(memory.broken[:due], memory.broken[due] & refreshing, memory.broken[due + 1 :])
        m.d.comb += [
            self.alarm.payload[0].eq(broken.any()),
            self.alarm.payload[1].eq(~Cat(*(~group.overrun for group in groups)).all()),
            self.alarm.valid.eq(self.alarm.payload != 0),
        ]
        return _behind_a_held_reset(m, self.restart)


def bench_modules(bench: ChannelBenchParams) -> list[UnitModule]:
    """Return the Verilog modules of a bench, the one that holds all others last."""
    channel = bench.channel
    return [*group_modules(channel), group_module(channel), UnitModule(BENCH_TOP, ChannelBench, bench)]


class _Held:
    """The ports of a bench for its groups: their scores wait outside while they are held."""

    def __init__(self, bench: ChannelBench, m: Module) -> None:
        self.params, self.groups = bench.params, bench.groups
        self.head, self.body = bench.head, bench.body
        m.d.comb += bench.hold.ready.eq(1)
        self.score = []
        for number, shown in enumerate(bench.score):
            inner = stream.Signature(score_layout(bench.params)).create(path=(f"score_{number}",))
            free = ~(bench.hold.valid & bench.hold.payload[number])
            m.d.comb += [
                shown.payload.eq(inner.payload),
                shown.valid.eq(inner.valid & free),
                inner.ready.eq(shown.ready & free),
            ]
            self.score.append(inner)


def _behind_a_held_reset(inner: Module, restart: stream.Interface) -> Module:
    """Return ``inner`` with a reset that comes from a register, also of an item of ``restart``.

    Next states depend on the reset: were it an input, a simulator would work all of them out anew whenever inputs may
    have changed, twice a cycle, which takes a third of its time.
    """
    m = Module()
    m.domains.held = held = ClockDomain()
    reset = Signal(init=1, reset_less=True)
    m.d.sync += reset.eq(ResetSignal() | restart.valid)
    m.d.comb += [held.clk.eq(ClockSignal()), held.rst.eq(reset), restart.ready.eq(1)]
    m.submodules.held = DomainRenamer("held")(inner)
    return m
