"""The index scoring unit in Amaranth: keys stream in, one score a key, or a block of keys, streams out."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, enum, memory, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hw.index_score_params import IndexScoreParams
from hw.timing.index_score import held_scores
from hw.units.index_score_dots import ExactDot, RoundDot, WideDot, delayed
from hw.units.index_score_heads import Heads
from hw.units.index_score_keys import KeyBeats
from hw.units.index_score_layouts import command_layout, key_score_layout, number_below, query_layout

__all__ = ["IndexScore"]


class _State(enum.Enum, shape=range(3)):
    """What the unit does in a cycle."""

    IDLE = 0
    LOAD = 1
    SCAN = 2


class IndexScore(wiring.Component):
    """Scores of index keys: dot products with all heads of a query, weighted and joined, at the rate of the memory.

    Overview
    --------
    A beat of a key meets ``head_lanes`` heads at once, or with 16-bit keys ``wide_head_lanes``; a query of more heads
    is cut into groups, and each beat stays for as many cycles. Behind the multipliers the heads' terms are joined, the
    key's scale multiplied in, and a block's largest score kept. What is computed is told by each command
    (:class:`golden.retrieval.index_spec.ScoreMode`):

    =================  ============================================================  ===========================
    mode               score                                                         cycles a key
    =================  ============================================================  ===========================
    indexer            scale * sum of w_h ReLU(q_h . k), E4M3                        4 G + 1/8; 8 G + 1/8 of 256
    best token         largest of sum of w_h (q_h . k) over a block, 16 bits         8 G
    centroids, labels  largest q_h . k, 16 bits                                      8 G; 1 G of 1 to 16 channels
    cosine             the same times 1/|k| as scale                                 8 G + 1/8
    page bounds        largest sum of max(q_hi low_i, q_hi high_i), 16 bits          16 G a page
    =================  ============================================================  ===========================

    G groups of heads, vectors of 128 elements and beats of 32 bytes; 64 heads of DeepSeek's indexer are 3 groups of 22,
    12.1 cycles a key, where a channel of a KARAT device takes 12.9 cycles of 1.83 GHz to deliver it. Vectors of half a
    beat, such as labels of 8 channels, lie two in one and have their turns one after the other; of 16 bits each meets
    2 * ``wide_head_lanes`` heads at once. Every switch goes with every other one and with both formats.

    Protocol
    --------
    Plain ready/valid streams. An operation is one transfer on ``command``, the query's beats on ``query``, the keys'
    and scales' beats on ``keys`` as :mod:`golden.retrieval.index_beats` orders them, and its scores on ``scores``,
    numbered from 0. An operation without keys gives none. The unit works at one operation at a time; ``command`` is
    ready again two cycles after the last score left. ``command.ready``, ``query.ready`` and ``keys.ready`` depend on
    registers alone, and so does all of ``scores``. A command that doesn't fit
    (:meth:`hw.index_score_params.ScoreWork.require_fits`) must not be given.

    A NaN goes through to its score, which the top-k unit tells as a fault.

    Timing
    ------
    One head, two keys of one beat each, no scales, at a latency of 8 (C the command, Q the query)::

        cycle     0  1  2  3  4  5  6  7  8  9 10 11 12 13 14
        command   C  .  .  .  .  .  .  .  .  .  .  .  .  .  C
        query     .  Q  .  .  .  .  .  .  .  .  .  .  .  .  .
        keys      .  .  A  B  .  .  .  .  .  .  .  .  .  .  .
        scores    .  .  .  .  .  .  .  .  .  .  .  A  B  .  .

    Latency and throughput
    ----------------------
    A beat of scales takes a cycle, a beat of a key one for each group of heads; a score is on offer G + L cycles after
    its key's last beat came, L being ``ceil(log2(beat_bytes) / 2) + ceil(log2(head_lanes)) + 6`` for E4M3 and
    ``log2(beat_bytes) + ceil(log2(head_lanes)) + 6`` for 16 bits. The query takes a cycle for each head and beat of a
    vector. :mod:`hw.timing.index_score` gives whole runs, and every cycle of a stalled one.

    Numerics
    --------
    :func:`golden.retrieval.index_score.index_scores`, bit for bit (``tests/rtl/test_index_score.py``).

    Parameters
    ----------
    params : IndexScoreParams
        Sizes.

    Members
    -------
    command : ``In(stream.Signature(command_layout(params)))``
        Operations.
    query : ``In(stream.Signature(query_layout(params)))``
        Beats of the heads and their weights.
    keys : ``In(stream.Signature(beat_bits))``
        Beats of keys and scales.
    scores : ``Out(stream.Signature(key_score_layout(params)))``
        Scores.

    Raises
    ------
    TypeError
        If ``params`` is not an IndexScoreParams.
    """

    command: stream.Interface
    query: stream.Interface
    keys: stream.Interface
    scores: stream.Interface

    def __init__(self, params: IndexScoreParams) -> None:
        if not isinstance(params, IndexScoreParams):
            raise TypeError(f"params must be an IndexScoreParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(params))),
                "query": In(stream.Signature(query_layout(params))),
                "keys": In(stream.Signature(params.beat_bits)),
                "scores": Out(stream.Signature(key_score_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the query's store, the dot products, the heads and the queue of scores."""
        m = Module()
        params, spec = self.params, self.params.spec
        config = Signal(command_layout(params))
        m.submodules.keys = keys = KeyBeats(params)
        m.submodules.heads = heads = Heads(params)
        wiring.connect(m, wiring.flipped(self.keys), keys.keys)
        m.d.comb += [keys.config.eq(config), heads.config.eq(config)]
        vectors = data.ArrayLayout(params.beat_bits // 2, 2 * spec.head_lanes)
        m.submodules.vectors = store = memory.Memory(shape=vectors, depth=len(number_below(params.query_rows)), init=[])
        m.submodules.weights = weights = memory.Memory(
            shape=data.ArrayLayout(FP32.bits, spec.head_lanes), depth=len(number_below(params.max_groups)), init=[]
        )
        self._control(m, config, keys, heads, store.write_port(granularity=1), weights.write_port(granularity=1))

        query = store.read_port()
        m.d.comb += [query.addr.eq(keys.row), query.en.eq(keys.row_read)]
        steps = delayed(m, "step", keys.step, params.wide_stages + 2)
        exact, wide = (steps[stages:][:3] for stages in (params.exact_stages, params.wide_stages))
        wide_dots: list[WideDot] = []
        for lane in range(spec.head_lanes):
            m.submodules[f"exact_{lane}"] = exact_dot = ExactDot(params)
            m.submodules[f"round_{lane}"] = rounded = RoundDot(params)
            m.d.comb += [rounded.i.eq(exact_dot.dot), exact_dot.counted.eq(exact[0])]
            dots, dot = [exact_dot], rounded.o
            if lane < spec.wide_head_lanes:
                m.submodules[f"wide_{lane}"] = wide_dot = WideDot(params)
                m.d.comb += [wide_dot.counted.eq(wide[0]), wide_dot.shares.eq(config.shares)]
                wide_dots.append(wide_dot)
                dots, dot = [exact_dot, wide_dot], Mux(config.wide, wide_dot.dot, dot)
            elif lane < 2 * spec.wide_head_lanes:
                dot = Mux(config.wide, wide_dots[lane - spec.wide_head_lanes].upper, dot)
            for unit in dots:
                m.d.comb += [
                    unit.step.eq(keys.step),
                    unit.bounds.eq(config.bounds),
                    unit.query.eq(Cat(query.data[2 * lane], query.data[2 * lane + 1])),
                    unit.key.eq(keys.key),
                ]
            m.d.sync += heads.dots[lane].eq(dot)

        # The weights of a group are read in the cycle before its dot products are there.
        weight = weights.read_port()
        m.d.comb += [
            weight.addr.eq(Mux(config.wide, wide[1].group, exact[1].group)),
            heads.weights.eq(weight.data),
            heads.step.eq(Mux(config.wide, wide[2], exact[2])),
        ]

        m.submodules.queue = queue = SyncFIFO(width=len(heads.score.as_value()), depth=held_scores(params))
        m.d.comb += [
            queue.w_data.eq(heads.score),
            queue.w_en.eq(heads.score_valid),
            self.scores.payload.eq(queue.r_data),
            self.scores.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.scores.ready),
            keys.score_taken.eq(self.scores.valid & self.scores.ready),
        ]
        return m

    def _control(
        self,
        m: Module,
        config: data.View,
        keys: KeyBeats,
        heads: Heads,
        vectors: memory.WritePort,
        weights: memory.WritePort,
    ) -> None:
        """Take a command, then its query into its rows, then let keys come until all scores have left."""
        params, spec = self.params, self.params.spec
        state = Signal(_State)
        row, beat = Signal(number_below(params.query_rows)), Signal(number_below(params.query_rows))
        lane, group = Signal(number_below(spec.head_lanes)), Signal(config.groups.shape())
        arrives, last_head, full = Signal(), Signal(), Signal()
        chosen, halves = Const(1, spec.head_lanes) << lane, Const(3, 2 * spec.head_lanes) << (lane << 1)
        wide_lanes, half = spec.wide_head_lanes, params.beat_bits // 2
        last_lane = Mux(config.wide, Mux(config.shares, 2 * wide_lanes, wide_lanes) - 1, spec.head_lanes - 1)
        lower, upper = self.query.payload.elements[:half], self.query.payload.elements[half:]
        with m.If(config.shares):
            # Heads beyond the lanes of 16-bit products fill those lanes' upper halves.
            m.d.comb += vectors.en.eq(
                Mux(arrives, Cat(Cat(chosen[place], chosen[place + wide_lanes]) for place in range(wide_lanes)), 0)
            )
        with m.Else():
            m.d.comb += vectors.en.eq(Mux(arrives, halves, 0))
        m.d.comb += [
            self.command.ready.eq(state == _State.IDLE),
            self.query.ready.eq(state == _State.LOAD),
            arrives.eq(self.query.valid & self.query.ready),
            last_head.eq((group == config.groups) & (lane == config.last_lane)),
            full.eq(last_head & (beat == config.beats)),
            vectors.addr.eq(row),
            vectors.data.eq(Cat(lower, Mux(config.shares, lower, upper)).replicate(spec.head_lanes)),
            weights.addr.eq(group),
            weights.data.eq(Cat(self.query.payload.weight for _ in range(spec.head_lanes))),
            weights.en.eq(Mux(arrives, chosen, 0)),
            keys.start.eq(arrives & full & config.keys.any()),
            heads.restart.eq(state == _State.LOAD),
        ]
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [config.eq(self.command.payload), row.eq(0), beat.eq(0), lane.eq(0), group.eq(0)]
            m.d.sync += state.eq(_State.LOAD)
        with m.If(arrives):
            m.d.sync += lane.eq(lane + 1)
            with m.If(last_head | (lane == last_lane)):
                m.d.sync += [lane.eq(0), group.eq(group + 1), row.eq(row + 1)]
            with m.If(last_head):
                m.d.sync += [group.eq(0), beat.eq(beat + 1)]
            with m.If(full):
                m.d.sync += state.eq(Mux(config.keys.any(), _State.SCAN, _State.IDLE))
        with m.If((state == _State.SCAN) & ~keys.busy):
            m.d.sync += state.eq(_State.IDLE)
