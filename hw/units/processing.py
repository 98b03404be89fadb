"""The processing unit: attention of queries that share them over the keys and values of one memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.layouts import body_layout, command_layout, head_layout, kv_layout, vector_layout
from hw.params import ProcessingParams
from hw.units.processing_array import LaneArray
from hw.units.processing_beat import beat_layout
from hw.units.processing_heads import Heads
from hw.units.processing_permissions import Permissions
from hw.units.processing_scores import TokenScores, token_score_signature
from hw.units.processing_sequencer import Sequencer
from hw.units.processing_softmax import OnlineSoftmax
from hw.units.score_adder import sum_signature

if TYPE_CHECKING:
    from amaranth.hdl import ValueLike

__all__ = ["ProcessingUnit"]


class ProcessingUnit(wiring.Component):
    """Compute the partial state ``(m, l, o)`` of queries over the tokens of one memory, as they stream by.

    Overview
    --------
    One operation is one query q, or g query heads that share a KV head, on ``num_tokens`` keys and values, in tiles of
    ``tile_tokens``. All sizes, and the ``beats`` of a token, come with the command, up to the largest that the unit was
    made for. For each query by itself::

        s_t   = (q . k_t) * scale
        m'    = max(m, s_t of the tile)
        alpha = exp(m - m')        p_t = exp(s_t - m')
        l     = l * alpha + sum p_t
        o     = o * alpha + sum p_t * v_t

    The first tile has no alpha. The state is unnormalised: a :class:`hw.units.reduction.ReductionUnit` merges states,
    and a :class:`hw.units.finish.FinishUnit` divides o by l. ``lanes`` multipliers and ``lanes`` adders serve q.K and
    P.V in turn (:class:`hw.units.processing_array.LaneArray`). A kv beat is taken once and used in g cycles, for one
    query after another: what is shared is the reading of the memory, not the arithmetic.

    With ``slices > 1``, as many units hold a slice of every token each. The sum of q . k over its own slice leaves a
    unit by ``partial`` and the sum over all of them comes back by ``score``; so the units of a group have the same m
    and l, and each its slice of o.

    Protocol
    --------
    Plain ready/valid streams. An operation takes one ``command``, for each query ``beats`` beats of ``query`` and
    ``2 * walk_tokens * beats`` beats of ``kv``, in the order of :func:`hw.timing.kv_order.kv_order` over the walk: K0,
    K1, V0, K2, V1, ..., K_last, V_(last-1), V_last. For each query it gives one ``head`` and, unless it had no token,
    ``beats`` beats of ``body``, in the order of the queries and the commands. The head of query j has the command's
    ``op_id`` plus j, modulo ``2**op_id_bits``: what follows the unit sees as many operations of one query.

    Tokens ``num_tokens`` to ``walk_tokens - 1`` are dropped: units that see one common stream own different numbers of
    them. Their beats are taken at the same pace and change nothing; head and body come as soon as they are due, maybe
    before those beats. An operation without tokens takes its queries all the same and gives ``empty`` heads
    (m = -infinity, l = 0) when it starts.

    A token whose beats are marked ``skip`` is passed over: it takes the time and the place in its tile of any other,
    but m, l and o stay as they are, whatever its codes. So units that see one common stream attend to different tokens
    of it. The last token that counts must not be marked: ``num_tokens`` ends with it.

    Streams may run ahead of each other: ``command`` by one operation, ``query`` from the last K beat that counts of
    the operation before, but for all beats except the first not ahead of its command; ``kv`` waits for both.
    ``scale`` may be any fp32 number. Every field of the command may differ from operation to operation.

    The unit does not check a command: ``1 <= beats <= params.beats``, ``1 <= tile_tokens <= params.tile_tokens``,
    ``num_tokens <= walk_tokens``, g at most ``params.queries`` and ``g * beats`` at most ``params.held_beats`` are the
    sender's to guarantee, as :class:`hw.timing.operation.OperationSizes` does, and so are the marks. After anything
    else the unit may wait for ever or answer nonsense, until it is reset.

    While heads are refused the next operation runs to its end, and the one after it does not start; while a body is
    refused the next operation goes on to its first V beat that counts. Head and body do not wait for each other.

    Outputs and readies come from registers alone. ``rst`` ends whatever is going on; the buffers and the data
    registers keep their contents, which nothing reads before it has been written again.

    Scores alone
    ------------
    An operation of kind SCORE (:class:`hw.timing.operation.OperationKind`) takes its command, its queries and
    ``walk_tokens * beats`` beats of ``kv``, the keys in order, and gives on ``token_score`` the scaled score s_t of
    each token that counts and is not marked, query by query: that which attention weighs, at a scale of 1 the sum of
    q . k. There is neither head nor body, and no tile is counted. The next queries may come beat by beat behind the
    last uses of theirs. ``token_score`` has no ready, for a unit of a group must not be held up alone: a score shows
    ``log2(lanes) + log2(slices) + 4`` cycles after its beat's use, for one cycle, and whoever sends kv beats must have
    room for the scores of those on their way (:mod:`hw.devices.score_queue`).

    Slices
    ------
    ``partial`` and ``score`` have no ready: ``score`` must show the sum of the slices exactly ``log2(slices)`` cycles
    after ``partial`` showed this unit's part. So the units of a group must take their K beats in the same cycles;
    they do if they have the same commands and kv beats in the same cycles and none is stalled alone. A token has a sum
    for each query. One that does not come in its cycle, or comes uncalled, sets ``fault`` in all heads of the operation
    whose heads are due next; else ``fault`` is 0.

    Permissions
    -----------
    For a sender that cannot stop a beat on its way, two counters since reset, modulo 4. ``key_operations`` counts
    an operation when command and query are in and the head before it is out: it will start in the cycle after its
    predecessor's last kv beat. One without a walk is counted when it starts. ``value_tiles`` counts the tiles of all
    walks, in order, each when its first weight is in the buffer and the body of the operation before has left, or,
    when it has no token that counts, after its keys. With each kv beat at least g and two cycles behind the one before,
    which has g queries, operation n's from when ``key_operations`` reaches n + 1 and the V beats of tile t from when
    ``value_tiles`` reaches t + 1 on, ``kv`` is never refused (:mod:`hw.units.processing_permissions`).

    Timing
    ------
    One query, two beats a token, tiles of two, three tokens, an exponential of latency 10, cycles from the first kv
    beat::

        cycle            0  1  2  3  4  5  6 ... 24 25 26 27 28 29 30 ... 35 36
        kv               K0 K0 K0 K0 K1 K1 .  .  V0 V0 V0 V0 V1 V1 K0'
        head             .  .  .  .  .  .  .  .  .  .  .  .  H  .  .  .  .  .
        body             .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  o  o
        key_operations   1  1  1  1  1  1  1  1  1  1  1  1  1  2  2  2  2  2
        value_tiles      0  0  0  0  0  0  0  0  1  1  1  2  2  2  2  2  2  2

    V0 waits for its weights, for the two keys of the next tile are too few to hide the exponentials. Tiles with
    ``tile_tokens * beats * g >= D + g`` (below) hide all but those of the first tile of a short operation. Two queries
    use every beat twice::

        cycle            0  1  2  3  4  5  6  7  8  9 10 11
        kv               K0 .  K0 .  K0 .  K0 .  K1 .  K1 .
        used for         q0 q1 q0 q1 q0 q1 q0 q1 q0 q1 q0 q1

    Latency and throughput
    ----------------------
    One kv beat in g cycles; with one beat and one query a token, a V beat that counts every second cycle, for its words
    of o have to be back. Unstalled, with D the cycles from the last use of a tile's keys to its first V beat, which
    waits for a token's weights of all queries, and E the latency of the exponential unit
    (:func:`hw.timing.processing.cycles`)::

        D        = log2(lanes) + log2(slices) + E + 8 + g
        exposed  = D - 1                                            one tile
                   max(0, D - 1 - g * (beats of the second tile))   two tiles
                   0                                                more
        interval = 2 * num_tokens * beats * g + exposed             first kv beat to that of the next operation
        total    = interval - 1 + log2(lanes) + 3 + beats * g       first kv beat to last body beat

    where ``tile_tokens * beats * g >= D + g - 1``, ``beats * g >= 2`` and nothing is dropped;
    :func:`hw.timing.processing.exposed_cycles` has the rest.

    At 8 beats, 16 lanes, tiles of 16, one slice, E = 10, g = 1: D = 23; 64 tokens have an interval of 1024 cycles,
    which is every cycle a kv beat, and a total of 1038; one token has an interval of 38 and a total of 52. An operation
    without a walk takes ``beats * g + 1`` cycles, in which the next queries come in. Every cycle of a stalled run:
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
    one rounder and one exponential unit: none more for G = ``params.queries`` queries. With bf16 keys and fp16 weights
    the first kind multiplies 8 by 11 significant bits, for q and p share it. Buffers: q ``2 * lanes`` bytes and o
    ``4 * lanes`` for each of ``held_beats``, scores ``8 * tile_tokens * G`` and, for the marks, two bits a token of a
    tile and query; m four times, l twice, alpha twice and a running q.K for each query.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    command : ``In(stream.Signature(command_layout(params)))``
        Operation id, sizes and scale.
    query : ``In(stream.Signature(vector_layout(params)))``
        q, ``beats`` beats a query, query after query.
    kv : ``In(stream.Signature(kv_layout(params)))``
        Keys and values, and the marks of tokens that are passed over.
    head : ``Out(stream.Signature(head_layout(params)))``
        m, l, operation id and flags; runs ahead of the body.
    body : ``Out(stream.Signature(body_layout(params)))``
        o, unnormalised.
    key_operations, value_tiles : ``Out(2)``
        The permissions.
    token_score : ``Out(token_score_signature(params))``
        Scores of operations of scores: no ready, see above.
    partial : ``Out(sum_signature(params.state_format))``
        q . k of a token over this unit's slice, unscaled, query after query; only with ``slices > 1``.
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
    token_score: wiring.PureInterface
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
            "token_score": Out(token_score_signature(params)),
        }
        if params.slices > 1:
            sums = sum_signature(params.state_format)
            members |= {"partial": Out(sums), "score": In(sums)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Connect the parts and build the way over the slices."""
        m = Module()
        params = self.params
        m.submodules.sequencer = sequencer = Sequencer(params)
        m.submodules.array = array = LaneArray(params)
        m.submodules.softmax = softmax = OnlineSoftmax(params)
        m.submodules.permissions = permissions = Permissions()
        m.submodules.heads = heads = Heads(params)
        m.submodules.scores = scores = TokenScores(params)
        wiring.connect(m, wiring.flipped(self.command), sequencer.command)
        wiring.connect(m, wiring.flipped(self.body), array.body)
        wiring.connect(m, wiring.flipped(self.head), heads.head)

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
            (softmax.read_query, sequencer.beat.query),
            (softmax.last_query, sequencer.last_query),
            (array.weight, softmax.weight),
            (array.alpha, softmax.alpha),
            (scores.start, sequencer.start),
            (scores.next_context, sequencer.next_context),
            (scores.next_scored, sequencer.next_scored),
            (sequencer.turn, scores.turn),
            (sequencer.context_free, scores.free),
            (softmax.scale, scores.scale),
            (scores.sum_turn, softmax.sum_beat.turn),
            (scores.valid, softmax.scored),
            (scores.score, softmax.score),
            (scores.beat, softmax.score_beat),
            (self.token_score.valid, scores.o.valid),
            (self.token_score.token, scores.o.token),
            (sequencer.weight_written, softmax.weight_written),
            (sequencer.body_done, array.body_done),
            (sequencer.head_done, heads.done),
            (heads.final, softmax.final | sequencer.start_empty),
            (heads.m, softmax.m),
            (heads.l, softmax.l),
            (heads.op_id, scores.context.op_id),
            (heads.empty, sequencer.empty),
            (heads.last_query, sequencer.last_query),
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

        if self.params.slices > 1:
            with m.If(heads.done):
                m.d.sync += fault.eq(0)
        m.d.comb += heads.fault.eq(fault)
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
