"""A channel's share of the logic die: the states of its bank groups become one state an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, ResetSignal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.devices.clock_crossing import FromLogic
from hw.devices.clock_enable import ClockEnable
from hw.devices.modules import merge_module
from hw.devices.placed import Placed, UnitModule
from hw.devices.state_link import StateLink
from hw.layouts import body_layout, head_layout
from hw.logic_die_params import LogicDieParams

if TYPE_CHECKING:
    from amaranth.hdl import Signal


__all__ = ["LOGIC_DIE_TOP", "LogicDie", "LogicDieBench", "logic_die_modules", "logic_die_units"]

LOGIC_DIE_TOP = "nearkv_logic_die_bench"
"""Name of the top module of :class:`LogicDieBench`."""


class LogicDie(wiring.Component):
    """Merge the states of the bank groups of one channel in a tree of reduction units.

    Overview
    --------
    Every pseudo-channel has a :class:`hw.devices.state_link.StateLink`; behind them stand the units, 128 a stack at
    level 0 with fan-ins of 2 and 8, and at the root one a channel. All tokens of an operation lie in one channel, so
    the root's state, not divided by its l, is what the stack gives for them. A group without tokens gives an empty
    state, which is the identity.

    Protocol
    --------
    Plain ready/valid streams in the memory clock; each group gives one state an operation, in the order of operations.
    The units run in cycles of ``enable``. Units follow each other without a buffer: the last partial of a unit alone
    needs room behind it, and the root waits for no head of the next operation before it takes a body of this one, so
    every head that it waits for comes. The buffers of the links hold what comes while a unit serves another source.

    Timing
    ------
    Sixteen groups whose states are offered at once; not to scale::

        link       heads of all groups | bodies of groups 0 and 1, 2 and 3, ... of each pseudo-channel |
        unit 0                 weights | .. group 0 .. | group 8 |
        unit 1                 weights | .. group 1 .. |         | group 9 |
        root                                   weights | unit 0  | unit 1  | ... | unit 7 |

    Latency and throughput
    ----------------------
    With the links of HBM3 (n_ccds 2, n_ccdl 4), logic at half the memory clock and fan-ins of 2 and 8, the last beat of
    b >= 4 leaves ``36 b + 28`` cycles after the states were offered, 316 at d = 128: 16 cycles of heads and 32 a beat
    on the link, 4 a beat for the last two partials of the root, the rest pipelines. Operations take no less than the
    link's time for their states and the largest unit's for its partials, whichever is more
    (:func:`hw.timing.logic_die.interval_cycles`).

    Numerics
    --------
    Bit for bit :func:`golden.partial.merge_tree` over ``params.tree()`` (``tests/rtl/test_logic_die.py``).

    Parameters
    ----------
    params : LogicDieParams
        Sizes.

    Members
    -------
    enable : In(1)
        Cycles of the logic.
    head_i, body_i : ``In(stream).array(groups)``
        States of the bank groups.
    head_o, body_o : ``Out(stream)``
        State of the channel.
    """

    enable: Signal
    head_i: list[stream.Interface]
    body_i: list[stream.Interface]
    head_o: stream.Interface
    body_o: stream.Interface

    def __init__(self, params: LogicDieParams) -> None:
        require_type("params", params, LogicDieParams)
        self.params = params
        super().__init__({"enable": In(1), **_streams(params)})

    def elaborate(self, platform: object) -> Module:
        """Place links and units, level by level."""
        m = Module()
        params = self.params
        heads, bodies = [], []
        for number in range(params.channel.organisation.pseudochannels):
            m.submodules[f"link_{number}"] = link = StateLink(params)
            for group in range(params.link_groups):
                place = number * params.link_groups + group
                wiring.connect(m, wiring.flipped(self.head_i[place]), link.head_i[group])
                wiring.connect(m, wiring.flipped(self.body_i[place]), link.body_i[group])
            heads += link.head_o
            bodies += link.body_o
        for level, count in enumerate(params.units):
            units = [Placed(merge_module(params.unit(level))) for _ in range(count)]
            for number, unit in enumerate(units):
                m.submodules[f"unit_{level}_{number}"] = unit
                m.d.comb += unit.enable.eq(self.enable)
                for port, source in enumerate(params.sources(level, number)):
                    for given, taken in ((heads[source], unit.head_i[port]), (bodies[source], unit.body_i[port])):
                        # A link moves in every cycle of the memory clock, a unit in those of the enable alone.
                        m.d.comb += [
                            taken.valid.eq(given.valid),
                            taken.payload.eq(given.payload),
                            given.ready.eq(taken.ready & (self.enable if level == 0 else 1)),
                        ]
            heads, bodies = [unit.head_o for unit in units], [unit.body_o for unit in units]
        state = params.channel.reduction
        for given, layout, port in (
            (heads[0], head_layout(state), self.head_o),
            (bodies[0], body_layout(state), self.body_o),
        ):
            register = FromLogic(layout)
            m.submodules += register
            m.d.comb += register.enable.eq(self.enable)
            wiring.connect(m, given, register.i)
            wiring.connect(m, register.o, wiring.flipped(port))
        return m


class LogicDieBench(wiring.Component):
    """A logic die with its own clock enable, for simulation.

    Parameters
    ----------
    params : LogicDieParams
        Sizes.

    Members
    -------
    head_i, body_i, head_o, body_o : stream
        Those of the logic die.
    hold : In(stream of 2 bits)
        In a cycle in which an item is offered, ``head_o`` (bit 0), ``body_o`` (bit 1) is neither offered nor taken.
    restart : In(stream of 1 bit)
        In a cycle in which an item is offered, the logic die is in reset, and what groups offer is lost.
    """

    simulation_only = True
    head_i: list[stream.Interface]
    body_i: list[stream.Interface]
    hold: stream.Interface
    restart: stream.Interface

    def __init__(self, params: LogicDieParams) -> None:
        require_type("params", params, LogicDieParams)
        self.params = params
        super().__init__(
            {**_streams(params), "hold": In(stream.Signature(2)), "restart": In(stream.Signature(1))},
        )

    def elaborate(self, platform: object) -> Module:
        """Place both, and stand between the logic die and its surroundings."""
        m = Module()
        m.domains.die = domain = ClockDomain()
        die = LogicDie(self.params)
        m.submodules.die = DomainRenamer("die")(die)
        m.submodules.clock = clock = ClockEnable(self.params.channel.logic_ratio)
        resetting = self.restart.valid
        m.d.comb += [
            domain.clk.eq(ClockSignal()),
            domain.rst.eq(ResetSignal() | resetting),
            die.enable.eq(clock.enable),
            self.hold.ready.eq(1),
            self.restart.ready.eq(1),
        ]
        for outer, inner in zip([*self.head_i, *self.body_i], [*die.head_i, *die.body_i], strict=True):
            m.d.comb += [
                inner.payload.eq(outer.payload),
                inner.valid.eq(outer.valid & ~resetting),
                outer.ready.eq(inner.ready | resetting),
            ]
        for bit, (inner, outer) in enumerate(((die.head_o, self.head_o), (die.body_o, self.body_o))):
            free = ~(self.hold.valid & self.hold.payload[bit]) & ~resetting
            m.d.comb += [
                outer.payload.eq(inner.payload),
                outer.valid.eq(inner.valid & free),
                inner.ready.eq(outer.ready & free),
            ]
        return m


def logic_die_modules(params: LogicDieParams) -> list[UnitModule]:
    """Return the Verilog modules of the bench of a logic die, the one that holds all others last."""
    return [*logic_die_units(params), UnitModule(LOGIC_DIE_TOP, LogicDieBench, params)]


def logic_die_units(params: LogicDieParams) -> list[UnitModule]:
    """Return the Verilog modules of the units of a logic die, each once."""
    return list(dict.fromkeys(merge_module(params.unit(level)) for level in range(len(params.fan_ins))))


def _streams(params: LogicDieParams) -> dict[str, wiring.Member]:
    heads = stream.Signature(head_layout(params.channel.reduction))
    bodies = stream.Signature(body_layout(params.channel.reduction))
    groups = params.channel.groups
    return {
        "head_i": In(heads).array(groups),
        "body_i": In(bodies).array(groups),
        "head_o": Out(heads),
        "body_o": Out(bodies),
    }
