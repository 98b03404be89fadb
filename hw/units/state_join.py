"""The state join in Amaranth: places the slices of one state, each from a unit of its own, behind each other."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from hw.layouts import body_layout, head_layout
from hw.params import ProcessingParams
from hw.timing.state_join import PLAN_DEPTH, require_slices

__all__ = ["StateJoin"]


class StateJoin(wiring.Component):
    """Join the states of ``slices`` units that hold slices of one head dimension.

    Overview
    --------
    The units of a group that share every token have the same m and l, and each has its own slice of o. An operation
    takes one state of each source and gives one::

        m = m_0      l = l_0      o = (o_0, o_1, ..., o_[slices - 1])

    The head is that of source 0. Its ``fault`` is the OR of all incoming faults and of every difference from source 0
    in operation id or ``empty``, or in m or l of a state that isn't empty; a faulty operation is joined all the same.
    It is ``empty``, without a body, if all sources are. Should only some be, which is a fault, the body is that of the
    others.

    Protocol
    --------
    Plain ready/valid streams. Every source delivers exactly one state an operation, in the order of operations: one
    transfer on its head stream and, unless ``empty``, transfers on its body stream up to and with one marked ``last``:
    any number of beats, at each source and in each operation. The heads of an operation are taken together once all
    are offered, the bodies one source after the other. The joined body is marked ``last`` on its very last beat only.

    Heads wait for bodies only while ``PLAN_DEPTH`` operations whose bodies haven't been taken lie before them, and
    heads of empty operations not even then. Bodies may be offered before their heads, and wait.

    Outputs are registered, no valid depends on a ready. ``head_i.ready`` follows the valids of all heads, their
    ``empty`` and ``head_o.ready`` combinationally, ``body_i.ready`` follows ``body_o.ready``.

    Timing
    ------
    Two operations of two sources, two beats a slice (each letter a transfer)::

        cycle       0  1  2  3  4  5  6  7  8  9
        head_i[*]   A  B  .  .  .  .  .  .  .  .
        body_i[0]   .  a  a  .  .  b  b  .  .  .
        body_i[1]   .  .  .  a  a  .  .  b  b  .
        head_o      .  A  B  .  .  .  .  .  .  .
        body_o      .  .  a  a  a  a  b  b  b  b

    Latency and throughput
    ----------------------
    One cycle from the heads to the joined one, two to the first joined beat; then a beat a cycle across sources and
    operations, and an empty operation a cycle of the heads alone. :func:`hw.timing.state_join.cycles` gives whole
    runs, :func:`hw.timing.state_join.predict` every cycle of a stalled one.

    Numerics
    --------
    None: every code passes as it is; m and l are compared as codes (``tests/rtl/test_state_join.py``).

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the units whose states are joined; 2 to 16 ``slices``. ``head_dim`` shapes nothing here.

    Members
    -------
    head_i : ``In(stream.Signature(head_layout(params))).array(slices)``
        Heads of the sources.
    body_i : ``In(stream.Signature(body_layout(params))).array(slices)``
        Bodies of the sources.
    head_o : ``Out(stream.Signature(head_layout(params)))``
        Heads of the joined states; they run ahead of the bodies.
    body_o : ``Out(stream.Signature(body_layout(params)))``
        Bodies of the joined states.

    Raises
    ------
    TypeError, ValueError
        If ``params`` is not a ProcessingParams, or has one slice.
    """

    head_i: list[stream.Interface]
    body_i: list[stream.Interface]
    head_o: stream.Interface
    body_o: stream.Interface

    def __init__(self, params: ProcessingParams) -> None:
        if not isinstance(params, ProcessingParams):
            raise TypeError(f"params must be a ProcessingParams, not {params!r}")
        require_slices(params)
        self.params = params
        heads = stream.Signature(head_layout(params))
        bodies = stream.Signature(body_layout(params))
        super().__init__(
            {
                "head_i": In(heads).array(params.slices),
                "body_i": In(bodies).array(params.slices),
                "head_o": Out(heads),
                "body_o": Out(bodies),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the path of the heads, the queue of sources that have a body, and the path of the bodies."""
        m = Module()
        slices = self.params.slices
        m.submodules.plans = plans = SyncFIFO(width=slices, depth=PLAN_DEPTH)
        self._join_heads(m, plans)

        # Bodies: the lowest source that has one and hasn't been served yet in this operation.
        remaining = Signal(slices)
        served = Signal(slices)
        chosen = Signal(slices)
        beat = Signal(self.body_i[0].payload.shape())
        offered, ready, take, final = Signal(), Signal(), Signal(), Signal()
        with m.Switch(remaining):
            for number, port in enumerate(self.body_i):
                with m.Case("-" * (slices - 1 - number) + "1" + "0" * number) if number < slices - 1 else m.Default():
                    m.d.comb += [chosen.eq(1 << number), beat.eq(port.payload), offered.eq(port.valid)]
        m.d.comb += [
            remaining.eq(plans.r_data & ~served),
            final.eq(~(remaining & ~chosen).any()),
            ready.eq(plans.r_rdy & (~self.body_o.valid | self.body_o.ready)),
            take.eq(offered & ready),
            plans.r_en.eq(take & beat.last & final),
        ]
        m.d.comb += [port.ready.eq(ready & chosen[number]) for number, port in enumerate(self.body_i)]
        with m.If(self.body_o.ready):
            m.d.sync += self.body_o.valid.eq(0)
        with m.If(take):
            m.d.sync += [
                self.body_o.valid.eq(1),
                self.body_o.payload.o.eq(beat.o),
                self.body_o.payload.last.eq(beat.last & final),
            ]
            with m.If(beat.last):
                m.d.sync += served.eq(Mux(final, 0, served | chosen))
        return m

    def _join_heads(self, m: Module, plans: SyncFIFO) -> None:
        """Take the heads of an operation together, compare them, and note who has a body."""
        heads = [port.payload for port in self.head_i]
        first = heads[0]
        have_body = Cat(~head.empty for head in heads)
        differ = Cat(
            (head.op_id != first.op_id)
            | (head.empty != first.empty)
            | (~head.empty & ((head.m != first.m) | (head.l != first.l)))
            for head in heads[1:]
        )
        take = Signal()
        m.d.comb += [
            take.eq(
                Cat(port.valid for port in self.head_i).all()
                & (~self.head_o.valid | self.head_o.ready)
                & (plans.w_rdy | ~have_body.any())
            ),
            plans.w_data.eq(have_body),
            plans.w_en.eq(take & have_body.any()),
        ]
        m.d.comb += [port.ready.eq(take) for port in self.head_i]
        with m.If(self.head_o.ready):
            m.d.sync += self.head_o.valid.eq(0)
        with m.If(take):
            m.d.sync += [
                self.head_o.valid.eq(1),
                self.head_o.payload.eq(first),
                self.head_o.payload.empty.eq(~have_body.any()),
                self.head_o.payload.fault.eq(Cat(head.fault for head in heads).any() | differ.any()),
            ]
