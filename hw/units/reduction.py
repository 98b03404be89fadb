"""The reduction unit in Amaranth: merges the partial states of several sources as they stream by."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.layouts import body_layout, head_layout
from hw.params import ReductionParams
from hw.units.reduction_lanes import ReductionLanes
from hw.units.reduction_weights import ReductionWeights

__all__ = ["ReductionUnit"]


class ReductionUnit(wiring.Component):
    """Merge one partial state of each of ``num_sources`` sources into one.

    Overview
    --------
    An operation merges the states ``(m_j, l_j, o_j)`` of sources 0 to N-1, in that order. Empty ones are skipped, the
    first other one is copied, and every further one is merged into the sum ``(m, l, o)``::

        w = exp(m_small - m_large)      l = l_large + w * l_small      o = o_large + w * o_small

    where *large* is the side with the larger maximum, which becomes the new m and has weight exactly 1: one
    exponential a partial. On equal maxima the sum counts as large. The result is unnormalised, so units form trees of
    any shape.

    The result carries the operation id of source 0. Its ``fault`` is the OR of all incoming faults and of any id that
    differs from source 0's; a faulty state is merged all the same. It is ``empty`` if all sources are, with
    m = -infinity, l = 0 and no body.

    Protocol
    --------
    Plain ready/valid streams. Every source delivers exactly one state an operation, in the order of operations: one
    transfer on its head stream and, unless ``empty``, a body on its body stream, whose final beat is marked ``last``.
    Heads may run ahead of bodies. Heads are taken in the order of the sources, and so are bodies.

    The head dimension is whatever the bodies have, up to ``head_dim``, and may change from one operation to the next.
    **All bodies of an operation have the same number of beats, at least 2 and at most** ``params.beats``; the unit
    doesn't check it. Bodies that break this spoil the o of their own operation and nothing else, since each is taken
    up to its ``last`` and the result has as many beats as the operation's last body: past the end of a shorter
    earlier body it is merged with whatever the scratch held, beats past ``params.beats`` fall on no word or a wrong
    one, and of one-beat bodies the first two may be merged before the sum is written.

    The beats of a partial are taken only once it is known whether it is the last that contributes: when the next
    head that is not empty, or the operation's final head, has been taken. So a result never passes through the scratch
    a second time; and since that next head starts an exponential, which takes longer than most partials, waiting for
    it costs nothing when sources are late. In return **no source may hold back a head until another source's body has
    been taken**: where two sources share a link, their heads need a way past the bodies.

    Outputs are registered, no valid depends on a ready. ``head_i.ready`` comes from registers, ``body_i.ready``
    follows ``body_o.ready`` combinationally.

    Timing
    ------
    One operation of two sources, two beats a partial, an exponential of latency 10 (each letter a transfer)::

        cycle       0  1  2  3  4 ... 15 16 17 18 19 20
        head_i[0]   A  .  .  .  .      .  .  .  .  .  .
        head_i[1]   .  B  .  .  .      .  .  .  .  .  .
        body_i[0]   .  .  .  a  a      .  .  .  .  .  .
        body_i[1]   .  .  .  .  .      .  b  b  .  .  .
        head_o      .  .  .  .  .      .  .  R  .  .  .
        body_o      .  .  .  .  .      .  .  .  .  r  r

    The weight of B: three registers for the operand, the exponential, its queue; then l, while the plan goes to the
    lanes. Operations follow each other without a gap, and their exponentials are then hidden.

    Latency and throughput
    ----------------------
    A partial takes ``max(beats, exp interval / num_exp)`` cycles, sustained, with the beats of its own operation; an
    empty one takes a cycle of the head path alone. With an exponential of interval 1 that is ``beats`` at every head
    dimension, in any sequence of them, without a gap where they change: the queue of weights is made for the shortest
    bodies. A slower exponential has ``num_exp`` units taken in turn, as many as ``head_dim`` needs; they may be too
    slow for shorter bodies. At d = 128, 16 lanes: 8 cycles; at d = 32: 2. Latency without stalls, from the first head
    to the first merged beat (L: latency of the exponential), where the exponentials keep up::

        fill + (num_sources - 1) * beats + 3
        fill = 3 if num_sources == 1 else max(3, L + 6 - beats)

    At d = 128, 4 sources and L = 10: 8 + 24 + 3 = 35. :func:`hw.timing.reduction.cycles` gives whole runs,
    :func:`hw.timing.reduction.predict` every cycle of a stalled one.

    Numerics
    --------
    m, l and o are fp32, w is of the exponential's format. Every product and every sum is IEEE 754 round to nearest
    even, subnormals kept, every NaN the canonical one. The maximum is ``new > old ? new : old``, NaN if either is. The
    weight is the exponential unit's result for the difference of the maxima, rounded to fp32, then to that format. Bit
    for bit :func:`golden.partial.merge_chain` with :func:`golden.numerics.unit_numerics`
    (``tests/rtl/test_reduction.py``; ``tests/hw/test_exp_in_units.py`` for bf16). Two states of equal infinite maxima
    give NaN. A state that is copied is copied bit for bit.

    Parameters
    ----------
    params : ReductionParams
        Sizes of the unit; ``head_dim`` is the largest one it merges, and the depth of its scratch.

    Members
    -------
    head_i : ``In(stream.Signature(head_layout(params))).array(num_sources)``
        Heads of the sources.
    body_i : ``In(stream.Signature(body_layout(params))).array(num_sources)``
        Bodies of the sources.
    head_o : ``Out(stream.Signature(head_layout(params)))``
        Heads of the merged states; they run ahead of the bodies.
    body_o : ``Out(stream.Signature(body_layout(params)))``
        Bodies of the merged states.

    Raises
    ------
    TypeError
        If ``params`` is not a ReductionParams.
    """

    head_i: list[stream.Interface]
    body_i: list[stream.Interface]
    head_o: stream.Interface
    body_o: stream.Interface

    def __init__(self, params: ReductionParams) -> None:
        if not isinstance(params, ReductionParams):
            raise TypeError(f"params must be a ReductionParams, not {params!r}")
        self.params = params
        heads = stream.Signature(head_layout(params))
        bodies = stream.Signature(body_layout(params))
        super().__init__(
            {
                "head_i": In(heads).array(params.num_sources),
                "body_i": In(bodies).array(params.num_sources),
                "head_o": Out(heads),
                "body_o": Out(bodies),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Connect the path of the heads to that of the bodies."""
        m = Module()
        m.submodules.weights = weights = ReductionWeights(self.params)
        m.submodules.lanes = lanes = ReductionLanes(self.params)
        wiring.connect(m, weights.plan, lanes.plan)
        for source in range(self.params.num_sources):
            wiring.connect(m, wiring.flipped(self.head_i[source]), weights.head_i[source])
            wiring.connect(m, wiring.flipped(self.body_i[source]), lanes.body_i[source])
        wiring.connect(m, weights.head_o, wiring.flipped(self.head_o))
        wiring.connect(m, lanes.body_o, wiring.flipped(self.body_o))
        return m
