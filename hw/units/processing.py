"""The processing unit: attention of one query over the keys and values of one memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hw.layouts import body_layout, command_layout, head_layout, kv_layout, vector_layout
from hw.params import ProcessingParams
from hw.units.processing_array import LaneArray
from hw.units.processing_permissions import Permissions
from hw.units.processing_sequencer import Sequencer, beat_layout
from hw.units.processing_softmax import OnlineSoftmax
from hw.units.score_adder import sum_signature

if TYPE_CHECKING:
    from amaranth.hdl import ValueLike

__all__ = ["ProcessingUnit"]


class ProcessingUnit(wiring.Component):
    """Compute the partial state ``(m, l, o)`` of one query over the tokens of one memory, as they stream by.

    Overview
    --------
    One operation is one query q (one head) on ``num_tokens`` keys and values, in tiles of ``tile_tokens``. Both sizes,
    and the ``beats`` of a token, come with the command, up to the largest that the unit was made for::

        s_t   = (q . k_t) * scale
        m'    = max(m, s_t of the tile)
        alpha = exp(m - m')        p_t = exp(s_t - m')
        l     = l * alpha + sum p_t
        o     = o * alpha + sum p_t * v_t

    The first tile has no alpha. The state is unnormalised: a :class:`hw.units.reduction.ReductionUnit` merges states,
    and a :class:`hw.units.finish.FinishUnit` divides o by l. ``lanes`` multipliers and ``lanes`` adders serve q.K and
    P.V in turn (:class:`hw.units.processing_array.LaneArray`).

    With ``slices > 1``, as many units hold a slice of every token each. The sum of q . k over its own slice leaves a
    unit by ``partial`` and the sum over all of them comes back by ``score``; so the units of a group have the same m
    and l, and each its slice of o.

    Protocol
    --------
    Plain ready/valid streams. An operation takes one ``command``, ``beats`` beats of ``query`` and
    ``2 * walk_tokens * beats`` beats of ``kv``, in the order of :func:`hw.timing.kv_order.kv_order` over the walk: K0,
    K1, V0, K2, V1, ..., K_last, V_(last-1), V_last. It gives one ``head`` and, unless it had no token, ``beats`` beats
    of ``body``. Everything comes out in the order of the commands.

    Tokens ``num_tokens`` to ``walk_tokens - 1`` are dropped: units that see one common stream own different numbers of
    them. Their beats are taken without a wait and change nothing; head and body come as soon as they are due, maybe
    before those beats. An operation without tokens takes its query all the same and gives an ``empty`` head
    (m = -infinity, l = 0) when it starts.

    A token whose beats are marked ``skip`` is passed over: it takes the time and the place in its tile of any other,
    but m, l and o stay as they are, whatever its codes. So units that see one common stream attend to different tokens
    of it. The last token that counts must not be marked: ``num_tokens`` ends with it.

    Streams may run ahead of each other: ``command`` by one operation, ``query`` from the last K beat that counts of
    the operation before, but for all beats except the first not ahead of its command; ``kv`` waits for both.
    ``scale`` may be any fp32 number. Every field of the command may differ from operation to operation.

    The unit does not check a command: ``1 <= beats <= params.beats``, ``1 <= tile_tokens <= params.tile_tokens`` and
    ``num_tokens <= walk_tokens`` are the sender's to guarantee, as :class:`hw.timing.operation.OperationSizes` does,
    and so are the marks. After anything else the unit may wait for ever or answer nonsense, until it is reset.

    While a head is refused the next operation runs to its end, and the one after it does not start; while a body is
    refused the next operation goes on to its first V beat that counts. Head and body do not wait for each other.

    Outputs and readies come from registers alone. ``rst`` ends whatever is going on; the buffers and the data
    registers keep their contents, which nothing reads before it has been written again.

    Slices
    ------
    ``partial`` and ``score`` have no ready: ``score`` must show the sum of the slices exactly ``log2(slices)`` cycles
    after ``partial`` showed this unit's part. So the units of a group must take their K beats in the same cycles;
    they do if they have the same commands and kv beats in the same cycles and none is stalled alone. A sum that does
    not come in its cycle, or comes uncalled, sets ``fault`` in the next head; else ``fault`` is 0.

    Permissions
    -----------
    For a sender that cannot stop a beat on its way, two counters since reset, modulo 4. ``key_operations`` counts
    an operation when command and query are in and the head before it is out: it will start in the cycle after its
    predecessor's last kv beat. One without a walk is counted when it starts. ``value_tiles`` counts the tiles of all
    walks, in order, each when its first weight is in the buffer and the body of the operation before has left, or,
    when it has no token that counts, after its keys. With kv beats at least two cycles apart, operation n's from when
    ``key_operations`` reaches n + 1 and the V beats of tile t from when ``value_tiles`` reaches t + 1 on, ``kv`` is
    never refused (:mod:`hw.units.processing_permissions`).

    Timing
    ------
    Two beats a token, tiles of two, three tokens, an exponential of latency 10, cycles from the first kv beat::

        cycle            0  1  2  3  4  5  6 ... 24 25 26 27 28 29 30 ... 35 36
        kv               K0 K0 K0 K0 K1 K1 .  .  V0 V0 V0 V0 V1 V1 K0'
        head             .  .  .  .  .  .  .  .  .  .  .  .  H  .  .  .  .  .
        body             .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  o  o
        key_operations   1  1  1  1  1  1  1  1  1  1  1  1  1  2  2  2  2  2
        value_tiles      0  0  0  0  0  0  0  0  1  1  1  2  2  2  2  2  2  2

    V0 waits for its weights, for the two keys of the next tile are too few to hide the exponentials. Tiles with
    ``tile_tokens * beats >= D`` (below) hide all but those of the first tile of a short operation.

    Latency and throughput
    ----------------------
    One kv beat a cycle; with one beat a token, a V beat that counts every second cycle, for its words of o have to be
    back. Unstalled, with D the cycles from the last K beat of a tile to its first V beat and E the latency of the
    exponential unit (:func:`hw.timing.processing.cycles`)::

        D        = log2(lanes) + log2(slices) + E + 9
        exposed  = D - 1                                        one tile
                   max(0, D - 1 - (beats of the second tile))   two tiles
                   0                                            more
        interval = 2 * num_tokens * beats + exposed             first kv beat to that of the next operation
        total    = interval - 1 + log2(lanes) + 3 + beats       first kv beat to last body beat

    where ``tile_tokens * beats >= D``, ``beats >= 2`` and nothing is dropped;
    :func:`hw.timing.processing.exposed_cycles` has the rest.

    At 8 beats, 16 lanes, tiles of 16, one slice, E = 10: D = 23; 64 tokens have an interval of 1024 cycles, which is
    every cycle a kv beat, and a total of 1038; one token has an interval of 38 and a total of 52. An operation without
    a walk takes ``beats + 1`` cycles, in which the next query comes in. Every cycle of a stalled run:
    :func:`hw.timing.processing_prediction.predict`.

    Numerics
    --------
    q, k and v are of ``kv_format``, alpha, p and the operand of the exponential of its format, each fp16 or bf16;
    scores, m, l and o are fp32. Products of two fp16 numbers are exact in fp32; every other operation rounds the exact
    result once, to nearest even, subnormals kept, infinity beyond the range, every NaN the canonical one. A beat is
    summed by a pairwise tree, beats in order, slices (outside the unit) by a pairwise tree, tokens in order. The
    maximum is ``new > old ? new : old``, NaN if either is. Operands of the exponential are rounded to fp32, then to its
    format. Bit for bit :func:`golden.attention.local_state` with :func:`golden.numerics.unit_numerics`, which states
    the domain of bf16, for any codes of q, k and v: ``tests/hw/test_processing.py`` and
    ``tests/rtl/test_processing.py``, which also hold o / l within ``5 * u * max|v|`` of attention in float64, where u
    is 2**-11 for fp16 weights and 2**-8 for bf16 ones.

    Resources
    ---------
    ``lanes`` multipliers of 16-bit numbers, ``lanes`` of fp32 and a weight (o times alpha) and ``lanes`` fp32 adders;
    besides, one fp32 multiplier (scale), one of fp32 and a weight and one adder (l), one comparator, one subtractor,
    one rounder and one exponential unit. With bf16 keys and fp16 weights the first kind multiplies 8 by 11 significant
    bits, for q and p share it. Buffers: q ``2 * head_dim`` bytes, o ``4 * head_dim``, scores ``8 * tile_tokens`` and,
    for the marks, two bits a token of a tile.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    command : ``In(stream.Signature(command_layout(params)))``
        Operation id, sizes and scale.
    query : ``In(stream.Signature(vector_layout(params)))``
        q, ``beats`` beats an operation.
    kv : ``In(stream.Signature(kv_layout(params)))``
        Keys and values, and the marks of tokens that are passed over.
    head : ``Out(stream.Signature(head_layout(params)))``
        m, l, operation id and flags; runs ahead of the body.
    body : ``Out(stream.Signature(body_layout(params)))``
        o, unnormalised.
    key_operations, value_tiles : ``Out(2)``
        The permissions.
    partial : ``Out(sum_signature(params.state_format))``
        q . k of a token over this unit's slice, unscaled; only with ``slices > 1``.
    score : ``In(sum_signature(params.state_format))``
        The same over all slices; only with ``slices > 1``.

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
    key_operations: Signal
    value_tiles: Signal
    partial: wiring.PureInterface
    score: wiring.PureInterface

    def __init__(self, params: ProcessingParams) -> None:
        if not isinstance(params, ProcessingParams):
            raise TypeError(f"params must be a ProcessingParams, not {params!r}")
        self.params = params
        members = {
            "command": In(stream.Signature(command_layout(params))),
            "query": In(stream.Signature(vector_layout(params))),
            "kv": In(stream.Signature(kv_layout(params))),
            "head": Out(stream.Signature(head_layout(params))),
            "body": Out(stream.Signature(body_layout(params))),
            "key_operations": Out(2),
            "value_tiles": Out(2),
        }
        if params.slices > 1:
            sums = sum_signature(params.state_format)
            members |= {"partial": Out(sums), "score": In(sums)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Connect the parts and build the way over the slices and the head register."""
        m = Module()
        params = self.params
        m.submodules.sequencer = sequencer = Sequencer(params)
        m.submodules.array = array = LaneArray(params)
        m.submodules.softmax = softmax = OnlineSoftmax(params)
        m.submodules.permissions = permissions = Permissions()
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
            (sequencer.kv_skip, self.kv.payload.skip),
            (array.kv, self.kv.payload.data),
            (array.accept, sequencer.accept),
            (array.beat, sequencer.beat),
            (softmax.read_slot, sequencer.beat.slot),
            (softmax.read_token, sequencer.token),
            (array.weight, softmax.weight),
            (array.alpha, softmax.alpha),
            (softmax.scale, sequencer.scale),
            (sequencer.weight_written, softmax.weight_written),
            (sequencer.body_done, array.body_done),
            (permissions.next_ready, sequencer.next_ready),
            (permissions.start_walk, sequencer.start_walk),
            (permissions.start_idle, sequencer.start_idle),
            (permissions.live_tile, sequencer.live_tile),
            (permissions.dropped_tile, sequencer.dropped_tile),
            (permissions.tile_weight, softmax.tile_weight),
            (permissions.body_free, sequencer.body_free),
            (self.key_operations, permissions.key_operations),
            (self.value_tiles, permissions.value_tiles),
        ]
        m.d.comb += [target.eq(source) for target, source in wires]
        fault = self._sum_slices(m, array, softmax)

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
                head.payload.fault.eq(fault),
                head.payload.m.eq(Mux(sequencer.empty, minus_infinity, softmax.m)),
                head.payload.l.eq(Mux(sequencer.empty, 0, softmax.l)),
            ]
        with m.If(softmax.final | sequencer.start_empty):
            m.d.sync += due.eq(1)
        if self.params.slices > 1:
            with m.If(load):
                m.d.sync += fault.eq(0)
        return m

    def _sum_slices(self, m: Module, array: LaneArray, softmax: OnlineSoftmax) -> Signal:
        """Pass the array's sums to the softmax, by way of the other slices if there are any; return the fault flag."""
        params = self.params
        fault = Signal()
        valid, beat = array.sum_valid, array.sum_beat
        total = array.sum
        if params.slices > 1:
            m.d.comb += [self.partial.valid.eq(valid), self.partial.sum.eq(total)]
            for level in range(1, params.slice_levels + 1):
                valid_before, beat_before = valid, beat
                valid = Signal(name=f"sum_valid_{level}")
                beat = Signal(beat_layout(params), name=f"sum_beat_{level}")
                m.d.sync += [valid.eq(valid_before), beat.eq(beat_before)]
            total = self.score.sum
            with m.If(self.score.valid != valid):
                m.d.sync += fault.eq(1)
        m.d.comb += [softmax.sum_valid.eq(valid), softmax.sum.eq(total), softmax.sum_beat.eq(beat)]
        return fault
