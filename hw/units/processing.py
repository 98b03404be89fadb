"""The processing unit: attention of one query over the keys and values of one memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hw.layouts import body_layout, command_layout, head_layout, vector_layout
from hw.params import ProcessingParams
from hw.units.processing_array import LaneArray
from hw.units.processing_sequencer import Sequencer
from hw.units.processing_softmax import OnlineSoftmax

if TYPE_CHECKING:
    from amaranth.hdl import ValueLike

__all__ = ["ProcessingUnit"]


class ProcessingUnit(wiring.Component):
    """Compute the partial state ``(m, l, o)`` of one query over the tokens of one memory, as they stream by.

    Overview
    --------
    One operation is one query q (one head) on ``num_tokens`` keys and values, in tiles of ``tile_tokens``::

        s_t   = (q . k_t) * scale
        m'    = max(m, s_t of the tile)
        alpha = exp(m - m')        p_t = exp(s_t - m')
        l     = l * alpha + sum p_t
        o     = o * alpha + sum p_t * v_t

    The first tile has no alpha. The state is unnormalised: a :class:`hw.units.reduction.ReductionUnit` merges states,
    and a :class:`hw.units.finish.FinishUnit` divides o by l. ``lanes`` multipliers and ``lanes`` adders serve q.K and
    P.V in turn (:class:`hw.units.processing_array.LaneArray`).

    Protocol
    --------
    Plain ready/valid streams. An operation takes one ``command``, ``beats = head_dim / lanes`` beats of ``query`` and
    ``2 * num_tokens * beats`` beats of ``kv``, in the order of :func:`hw.timing.kv_order.kv_order`: K0, K1, V0, K2,
    V1, ..., K_last, V_(last-1), V_last. It gives one ``head`` and, unless it had no token, ``beats`` beats of ``body``.
    An operation without tokens takes its query all the same, no kv beat, and gives an ``empty`` head (m = -infinity,
    l = 0). Everything comes out in the order of the commands; ``fault`` is 0.

    Streams may run ahead of each other: ``command`` by one operation, ``query`` from the last K beat of the operation
    before; ``kv`` waits for both. ``scale`` may be any fp32 number and may differ from operation to operation.

    While a head is refused the next operation runs to its end, and the one after it does not start; while a body is
    refused the next operation goes on to its first V beat. Head and body do not wait for each other.

    Outputs and readies come from registers alone. ``rst`` ends whatever is going on; the buffers and the data
    registers keep their contents, which nothing reads before it has been written again.

    Timing
    ------
    Two beats a token, tiles of two, three tokens, an exponential of latency 10, cycles from the first kv beat::

        cycle   0  1  2  3  4  5  6 ... 24 25 26 27 28 29 30 ... 35 36
        kv      K0 K0 K0 K0 K1 K1 .  .  V0 V0 V0 V0 V1 V1 K0'
        head    .  .  .  .  .  .  .  .  .  .  .  .  H  .  .  .  .  .
        body    .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  o  o

    V0 waits for its weights, for the two keys of the next tile are too few to hide the exponentials. Tiles with
    ``tile_tokens * beats >= D`` (below) hide all but those of the first tile of a short operation.

    Latency and throughput
    ----------------------
    One kv beat a cycle. Unstalled, with D the cycles from the last K beat of a tile to its first V beat and E the
    latency of the exponential unit (:func:`hw.timing.processing.cycles`)::

        D        = log2(lanes) + E + 9
        exposed  = D - 1                                        one tile
                   max(0, D - 1 - (beats of the second tile))   two tiles
                   0                                            more
        interval = 2 * num_tokens * beats + exposed             first kv beat to that of the next operation
        total    = interval - 1 + log2(lanes) + 3 + beats       first kv beat to last body beat

    where ``tile_tokens * beats >= D``; :func:`hw.timing.processing.exposed_cycles` has the rest.

    At head_dim 128, 16 lanes, tiles of 16, E = 10: D = 23; 64 tokens have an interval of 1024 cycles, which is every
    cycle a kv beat, and a total of 1038; one token has an interval of 38 and a total of 52. An operation without
    tokens takes ``beats + 1`` cycles. :func:`hw.timing.processing.predict` gives every cycle of a stalled run.

    Numerics
    --------
    q, k, v, alpha and p are fp16, scores, m, l and o fp32. Products of two fp16 numbers are exact in fp32; every other
    operation rounds once, to nearest even, subnormals kept, every NaN the canonical one. A beat is summed by a
    pairwise tree, beats in order, tokens in order. The maximum is ``new > old ? new : old``, NaN if either is.
    Operands of the exponential are rounded to fp32, then to fp16. Bit for bit :func:`golden.attention.local_state`
    with :func:`golden.numerics.unit_numerics`, for any codes of q, k and v: ``tests/hw/test_processing.py`` and
    ``tests/rtl/test_processing.py``, which also hold o / l within ``2.5 * 2**-10 * max|v|`` of attention in float64.

    Resources
    ---------
    ``lanes`` fp16 multipliers, ``lanes`` fp32 x fp16 multipliers (o times alpha) and ``lanes`` fp32 adders; besides,
    one fp32 multiplier (scale), one fp32 x fp16 multiplier and one adder (l), one comparator, one subtractor, one
    rounder and one exponential unit. Buffers: q ``2 * head_dim`` bytes, o ``4 * head_dim``, scores
    ``8 * tile_tokens``.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    command : ``In(stream.Signature(command_layout(params)))``
        Operation id, number of tokens and scale.
    query : ``In(stream.Signature(vector_layout(params)))``
        q, ``beats`` beats an operation.
    kv : ``In(stream.Signature(vector_layout(params)))``
        Keys and values.
    head : ``Out(stream.Signature(head_layout(params)))``
        m, l, operation id and flags; runs ahead of the body.
    body : ``Out(stream.Signature(body_layout(params)))``
        o, unnormalised.

    Raises
    ------
    TypeError
        If ``params`` is not a ProcessingParams.
    """

    command: stream.Interface
    query: stream.Interface
    kv: stream.Interface
    head: stream.Interface
    body: stream.Interface

    def __init__(self, params: ProcessingParams) -> None:
        if not isinstance(params, ProcessingParams):
            raise TypeError(f"params must be a ProcessingParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(params))),
                "query": In(stream.Signature(vector_layout(params))),
                "kv": In(stream.Signature(vector_layout(params))),
                "head": Out(stream.Signature(head_layout(params))),
                "body": Out(stream.Signature(body_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Connect the sequencer, the array and the softmax, and build the head register."""
        m = Module()
        params = self.params
        m.submodules.sequencer = sequencer = Sequencer(params)
        m.submodules.array = array = LaneArray(params)
        m.submodules.softmax = softmax = OnlineSoftmax(params)
        wiring.connect(m, wiring.flipped(self.command), sequencer.command)
        wiring.connect(m, wiring.flipped(self.body), array.body)

        wires: list[tuple[ValueLike, ValueLike]] = [
            (sequencer.query_valid, self.query.valid),
            (self.query.ready, sequencer.query_ready),
            (array.query, self.query.payload),
            (array.query_index, sequencer.query_index),
            (array.query_write, self.query.valid & self.query.ready),
            (sequencer.kv_valid, self.kv.valid),
            (self.kv.ready, sequencer.kv_ready),
            (array.kv, self.kv.payload),
            (array.accept, sequencer.accept),
            (array.beat, sequencer.beat),
            (softmax.read_slot, sequencer.beat.slot),
            (softmax.read_token, sequencer.token),
            (array.weight, softmax.weight),
            (array.alpha, softmax.alpha),
            (softmax.sum_valid, array.sum_valid),
            (softmax.sum, array.sum),
            (softmax.sum_beat, array.sum_beat),
            (softmax.scale, sequencer.scale),
            (sequencer.weight_written, softmax.weight_written),
            (sequencer.body_done, array.body_done),
        ]
        m.d.comb += [target.eq(source) for target, source in wires]

        # m, l and the operation stand still until they are copied to the output register.
        due = Signal()
        load = Signal()
        head = self.head
        minus_infinity = FP32.inf_code | FP32.sign_mask
        m.d.comb += [load.eq(due & (~head.valid | head.ready)), sequencer.head_done.eq(load)]
        with m.If(head.ready):
            m.d.sync += head.valid.eq(0)
        with m.If(load):
            m.d.sync += [
                due.eq(0),
                head.valid.eq(1),
                head.payload.op_id.eq(sequencer.op_id),
                head.payload.empty.eq(sequencer.empty),
                head.payload.m.eq(Mux(sequencer.empty, minus_infinity, softmax.m)),
                head.payload.l.eq(Mux(sequencer.empty, 0, softmax.l)),
            ]
        with m.If(softmax.final | sequencer.start_empty):
            m.d.sync += due.eq(1)
        return m
