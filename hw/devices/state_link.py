"""The data bus over which the states of bank groups reach the logic die."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from golden.checks import require_type
from hw.devices.spacing import Spacing
from hw.layouts import body_layout, head_layout
from hw.logic_die_params import LogicDieParams

__all__ = ["HEAD_DEPTH", "StateLink"]

HEAD_DEPTH = 2
"""Heads that find room at either end, for each group."""


class StateLink(wiring.Component):
    """Carry the states of the groups of one pseudo-channel to the logic die, a column of the bus at a time.

    Overview
    --------
    A head takes one burst, a beat of a body ``body_bursts``. Each group has a buffer at either end, one for heads and
    one for bodies; an item leaves the first with its last burst, and is in the second when that burst has been on the
    pins. The bus goes to heads before bodies, and to the lowest group that has an item and room for it at the far end:
    the tree of units behind it takes bodies in that order.

    Protocol
    --------
    Plain ready/valid streams. Heads of a group never wait for bodies, neither its own nor another's, and bodies never
    for those of another group, but for their turn: what the reduction units ask of their sources. No valid depends on
    a ready. ``last`` and the flags travel with their items.

    Assumed: states go by themselves, without commands, and find the pins free. Reads of all banks leave no data on
    them; the next operation's query comes down the same pins while values are still read, so before there is a state.
    Left out are the turnaround of the pins, n_rtw, and writes of new tokens, a few bursts an operation.

    Timing
    ------
    Two groups, a beat of two bursts each, n_ccds = n_bl = 2 and n_ccdl = 4 (bursts on the bus are named by group)::

        cycle        0  1  2  3  4  5  6  7  8  9 10 11 12
        head_i[*]    H  .  .  .  .  .  .  .  .  .  .  .  .
        body_i[*]    b  .  .  .  .  .  .  .  .  .  .  .  .
        bus          .  0  .  1  .  0  .  1  .  0  .  1  .
        head_o[0]    .  .  .  H  .  .  .  .  .  .  .  .  .
        head_o[1]    .  .  .  .  .  H  .  .  .  .  .  .  .
        body_o[0]    .  .  .  .  .  .  .  .  .  .  .  b  .

    Latency and throughput
    ----------------------
    ``1 + n_bl`` cycles for a head that finds the bus free. A burst every n_ccds cycles, and of one group every n_ccdl;
    n states of k bursts take ``n * k * n_ccds`` cycles (:func:`hw.timing.logic_die.link_cycles`).

    Parameters
    ----------
    params : LogicDieParams
        Sizes.

    Members
    -------
    head_i, body_i : ``In(stream).array(link_groups)``
        States of the groups.
    head_o, body_o : ``Out(stream).array(link_groups)``
        The same at the logic die.
    """

    def __init__(self, params: LogicDieParams) -> None:
        require_type("params", params, LogicDieParams)
        self.params = params
        groups = params.link_groups
        heads = stream.Signature(head_layout(params.channel.reduction))
        bodies = stream.Signature(body_layout(params.channel.reduction))
        super().__init__(
            {
                "head_i": In(heads).array(groups),
                "body_i": In(bodies).array(groups),
                "head_o": Out(heads).array(groups),
                "body_o": Out(bodies).array(groups),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the buffers of both ends and what gives the bus away."""
        m = Module()
        params = self.params
        timing, state = params.channel.timing, params.channel.reduction
        m.submodules.bus_free = bus_free = Spacing(timing.n_ccds)
        heads_wait, bodies_wait = [], []
        heads_go, bodies_go = Signal(params.link_groups), Signal(params.link_groups)
        heads_done, bodies_done = Signal(params.link_groups), Signal(params.link_groups)
        for group in range(params.link_groups):
            m.submodules[f"group_free_{group}"] = free = Spacing(timing.n_ccdl)
            m.d.comb += free.event.eq(heads_go[group] | bodies_go[group])
            waiting = self._buffers(
                m, f"head_{group}", self.head_i[group], self.head_o[group], (HEAD_DEPTH, HEAD_DEPTH), heads_done[group]
            )
            heads_wait.append(waiting & free.ready)
            depths = (params.group_states * state.beats, params.die_states * state.beats)
            waiting = self._buffers(
                m, f"body_{group}", self.body_i[group], self.body_o[group], depths, bodies_done[group]
            )
            bodies_wait.append(waiting & free.ready)
        waiting = Signal(2 * params.link_groups)
        # The lowest bit that is set.
        chosen = Signal.like(waiting)
        m.d.comb += [
            waiting.eq(Cat(*heads_wait, *bodies_wait)),
            Cat(heads_go, bodies_go).eq(chosen),
            bus_free.event.eq(chosen.any()),
        ]
        with m.If(bus_free.ready):
            m.d.comb += chosen.eq(waiting & (~waiting + 1)[: len(waiting)])

        final = Signal(params.link_groups)
        for group in range(params.link_groups):
            left = Signal(range(params.body_bursts), init=params.body_bursts - 1)
            m.d.comb += final[group].eq(left == 0)
            with m.If(bodies_go[group]):
                m.d.sync += left.eq(left - 1)
                with m.If(final[group]):
                    m.d.sync += left.eq(params.body_bursts - 1)
        # The data of a burst are on the pins for n_bl cycles from the one in which the bus was given away.
        arriving: Value = Cat(heads_go, bodies_go & final)
        for _ in range(timing.n_bl - 1):
            delayed = Signal(2 * params.link_groups)
            m.d.sync += delayed.eq(arriving)
            arriving = delayed
        m.d.comb += Cat(heads_done, bodies_done).eq(arriving)
        return m

    def _buffers(
        self,
        m: Module,
        name: str,
        source: stream.Interface,
        target: stream.Interface,
        depths: tuple[int, int],
        done: Value,
    ) -> Value:
        """Place the buffers of both ends; return whether an item waits that has room at the far end."""
        width = len(Value.cast(source.payload))
        near, far = SyncFIFO(width=width, depth=depths[0]), SyncFIFO(width=width, depth=depths[1])
        m.submodules[f"{name}_near"], m.submodules[f"{name}_far"] = near, far
        m.d.comb += [
            near.w_data.eq(source.payload),
            near.w_en.eq(source.valid),
            source.ready.eq(near.w_rdy),
            near.r_en.eq(done),
            far.w_data.eq(near.r_data),
            far.w_en.eq(done),
            Value.cast(target.payload).eq(far.r_data),
            target.valid.eq(far.r_rdy),
            far.r_en.eq(target.ready),
        ]
        return near.r_rdy & far.w_rdy
