"""A shard of the top-k unit in Amaranth: stores scores, counts their digits, gives out the ids taken."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, enum, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.retrieval.radix import KEY_BITS
from hw.top_k_params import TopKShardParams
from hw.units.top_k_counters import DigitCounters
from hw.units.top_k_emitter import RowEmitter
from hw.units.top_k_keys import digits_of, leading_ones, ordered_key
from hw.units.top_k_layouts import scan_layout, score_layout, selected_layout

__all__ = ["TopKShard"]


class _State(enum.Enum, shape=range(10)):
    """What a shard does in a cycle."""

    CLEAR = 0
    IDLE = 1
    SCAN = 2
    SWEEP = 3
    DRAIN = 4
    SEND = 5
    CHOICE = 6
    EQUAL = 7
    QUOTA = 8
    EMIT = 9


class TopKShard(wiring.Component):
    """Scores of one range of ids, of which those above a threshold are given out.

    Overview
    --------
    Each score becomes a key (:func:`golden.retrieval.radix.ordered_keys`) and lies at the place of its id, so that the
    order in which scores come changes nothing. The keys' highest digit is counted while they come. Then, digit by
    digit, the counts go to the merge (:class:`hw.units.top_k_merge.TopKMerge`), which answers with the digit of the
    threshold, and a sweep of the store counts the next digit of the keys that begin with the digits found, ``lanes`` of
    them a cycle. A last sweep gives out the ids of all keys above the threshold and of the first ones that equal it,
    ascending, those of a row at once, and clears the store behind itself.

    Protocol
    --------
    Plain ready/valid streams. An operation is one transfer on ``scan``, then ``count`` transfers on ``scores``, of ids
    that all differ, in any order. On ``counts`` go ``2**digit_bits`` numbers for each digit, that of the highest value
    first, and after the last digit one more, the scores that equal the threshold; ``choice`` answers each digit's
    numbers with a digit, and the last number with how many of the equal ones to take. ``selected`` gives the rows that
    have ids taken, each as a bit a lane, and one transfer marked ``end``. A shard works at one operation at a time;
    ``scan`` is ready after the end was given out and, after reset, once the store is cleared: ``rows`` cycles.

    ``fault`` of an end says that of the operation's scores one was NaN (it is taken only when every number was), two
    had the same id (the operation's ids mean nothing then), or that ``base`` and an id taken did not fit ``id_bits``.
    No fault outlives its operation. ``selected`` is registered; ``scan.ready`` and ``scores.ready`` depend on the state
    alone.

    Timing
    ------
    Four scores and digits of one bit, the merge answering at once (S scan, letters scores, n counts, d choice)::

        cycle    0  1  2  3  4  5  6  7  8  9
        scan     S  .  .  .  .  .  .  .  .  .
        scores   .  A  B  C  D  .  .  .  .  .
        counts   .  .  .  .  .  .  .  n  n  .
        choice   .  .  .  .  .  .  .  .  .  d

    Latency and throughput
    ----------------------
    One score a cycle; ``count + 3`` cycles from the scan to the first counts. A digit more takes ``2**digit_bits + 4``
    cycles and one for each row swept: the rows up to that of the highest id, ``ceil(count / lanes)`` where ids are
    dense. The last sweep takes a cycle a row, whatever is taken of it: how long a selection takes depends on how many
    scores there are, and on nothing else. :mod:`hw.timing.top_k` gives whole runs, and every cycle of a stalled one.

    Numerics
    --------
    Order and ties are those of :func:`golden.retrieval.topk.top_k`: -0 = +0, -inf a score, the lower of equal scores'
    ids first; NaN below everything. The ids are :func:`golden.retrieval.radix.select`
    (``tests/rtl/test_top_k.py``).

    Parameters
    ----------
    params : TopKShardParams
        Sizes.

    Members
    -------
    scan : ``In(stream.Signature(scan_layout(params)))``
        Operations.
    scores : ``In(stream.Signature(score_layout(params)))``
        Scores.
    counts : ``Out(stream.Signature(count_bits))``
        Numbers for the merge.
    choice : ``In(stream.Signature(choice_bits))``
        Its answers.
    selected : ``Out(stream.Signature(selected_layout(id_bits, lanes)))``
        Rows of ids and ends.

    Raises
    ------
    TypeError
        If ``params`` is not a TopKShardParams.
    """

    scan: stream.Interface
    scores: stream.Interface
    counts: stream.Interface
    choice: stream.Interface
    selected: stream.Interface

    def __init__(self, params: TopKShardParams) -> None:
        if not isinstance(params, TopKShardParams):
            raise TypeError(f"params must be a TopKShardParams, not {params!r}")
        self.params = params
        super().__init__(
            {
                "scan": In(stream.Signature(scan_layout(params))),
                "scores": In(stream.Signature(score_layout(params))),
                "counts": Out(stream.Signature(params.count_bits)),
                "choice": In(stream.Signature(params.choice_bits)),
                "selected": Out(stream.Signature(selected_layout(params.id_bits, params.lanes))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the store, the counters, the emitter and the sequence of sweeps."""
        m = Module()
        state = Signal(_State, init=_State.CLEAR)
        params = self.params
        row_bits = range(params.rows)
        words = data.ArrayLayout(KEY_BITS, params.lanes)
        m.submodules.store = store = memory.Memory(shape=words, depth=params.rows, init=[])
        m.submodules.counters = counters = DigitCounters(params)
        m.submodules.emitter = emitter = RowEmitter(params)
        write, read = store.write_port(granularity=1), store.read_port()

        row, last_row = Signal(row_bits), Signal(row_bits)
        read_all = Signal()
        left, base, fault = Signal(params.count_bits), Signal(params.id_bits), Signal()
        threshold, digit = Signal(KEY_BITS), Signal(range(params.digits))

        # A score: its key, its lane, and whether its place was taken.
        score = self.scores.payload
        key, nan = ordered_key(m, score.score)
        score_lane, score_row = score.id[: params.lane_bits], score.id[params.lane_bits :]
        taken = Signal()
        stored, stored_lane = Signal(), Signal(params.lane_bits)
        m.d.comb += [taken.eq(self.scores.valid & self.scores.ready)]
        m.d.sync += [stored.eq(taken), stored_lane.eq(score_lane)]
        present = Cat(read.data[lane].any() for lane in range(params.lanes))
        with m.If(taken & nan | stored & present.bit_select(stored_lane, 1)):
            m.d.sync += fault.eq(1)

        # A row of the store: read in one cycle, looked at in the next.
        issue, fresh, waits = Signal(), Signal(), Signal()
        read_row = Signal(row_bits)
        m.d.comb += [read.addr.eq(row), read.en.eq(issue | taken)]
        m.d.sync += fresh.eq(issue)
        with m.If(issue):
            m.d.sync += [read_row.eq(row), row.eq(row + 1)]
        with m.If(taken):
            m.d.comb += [
                read.addr.eq(score_row),
                write.addr.eq(score_row),
                write.data[score_lane].eq(key),
                write.en.eq(Const(1, params.lanes) << score_lane),
            ]

        # Digits: of the score that comes, or of the row that was read.
        sweeping = Signal()
        m.d.comb += counters.row.eq(sweeping & fresh | taken)
        begins = Array(
            [Const(0, KEY_BITS)]
            + [Const(leading_ones(n * params.digit_bits), KEY_BITS) for n in range(1, params.digits)]
        )[digit]
        for lane in range(params.lanes):
            word = read.data[lane]
            parts = Array(digits_of(word, params.digit_bits))
            m.d.comb += [
                counters.hits[lane].eq(sweeping & fresh & (((word ^ threshold) & begins) == 0)),
                counters.digits[lane].eq(parts[digit]),
                emitter.above[lane].eq(word > threshold),
                emitter.equal[lane].eq((word == threshold) & threshold.any()),
            ]
        with m.If(taken):
            m.d.comb += [counters.hits.eq(1), counters.digits[0].eq(key[-params.digit_bits :])]

        chosen = self.choice.payload
        m.d.comb += [
            counters.pick.eq(threshold[: params.digit_bits]),
            self.counts.payload.eq(counters.top),
            emitter.base.eq(base),
            emitter.quota.eq(chosen),
            emitter.fault.eq(fault),
            emitter.row.eq(read_row),
        ]
        wiring.connect(m, emitter.selected, wiring.flipped(self.selected))

        turns = Signal(params.digit_bits)
        with m.If(state == _State.CLEAR):
            m.d.comb += [write.addr.eq(row), write.en.eq(-1)]
            m.d.sync += row.eq(row + 1)
            with m.If(row == params.rows - 1):
                m.d.sync += state.eq(_State.IDLE)
        with m.If(state == _State.IDLE):
            m.d.comb += [self.scan.ready.eq(1), counters.clear.eq(1)]
            with m.If(self.scan.valid):
                m.d.sync += [
                    left.eq(self.scan.payload.count),
                    base.eq(self.scan.payload.base),
                    fault.eq(0),
                    last_row.eq(0),
                    digit.eq(0),
                    threshold.eq(0),
                ]
                m.d.sync += state.eq(_State.DRAIN)
                with m.If(self.scan.payload.count.any()):
                    m.d.sync += state.eq(_State.SCAN)
        with m.If(state == _State.SCAN):
            m.d.comb += self.scores.ready.eq(1)
            with m.If(taken):
                m.d.sync += [left.eq(left - 1), last_row.eq(Mux(score_row > last_row, score_row, last_row))]
                with m.If(left == 1):
                    m.d.sync += state.eq(_State.DRAIN)
        with m.If(state == _State.SWEEP):
            m.d.comb += [issue.eq(1), sweeping.eq(1)]
            with m.If(row == last_row):
                m.d.sync += state.eq(_State.DRAIN)
        with m.If(state == _State.DRAIN):
            m.d.comb += sweeping.eq(1)
            with m.If(~fresh & ~counters.busy):
                m.d.sync += state.eq(_State.SEND)
        with m.If(state == _State.SEND):
            m.d.comb += [self.counts.valid.eq(1), counters.turn.eq(self.counts.ready)]
            with m.If(self.counts.ready):
                m.d.sync += turns.eq(turns + 1)
                with m.If(turns == params.bins - 1):
                    m.d.sync += state.eq(_State.CHOICE)
        with m.If(state == _State.CHOICE):
            m.d.comb += self.choice.ready.eq(1)
            with m.If(self.choice.valid):
                m.d.sync += [Array(digits_of(threshold, params.digit_bits))[digit].eq(chosen), row.eq(0)]
                with m.If(digit == params.digits - 1):
                    m.d.sync += state.eq(_State.EQUAL)
                with m.Else():
                    m.d.comb += counters.clear.eq(1)
                    m.d.sync += digit.eq(digit + 1)
                    m.d.sync += state.eq(_State.SWEEP)
        with m.If(state == _State.EQUAL):
            m.d.comb += [self.counts.valid.eq(1), self.counts.payload.eq(counters.picked)]
            with m.If(self.counts.ready):
                m.d.sync += state.eq(_State.QUOTA)
        with m.If(state == _State.QUOTA):
            m.d.comb += [self.choice.ready.eq(1), emitter.load.eq(self.choice.valid)]
            with m.If(self.choice.valid):
                m.d.sync += read_all.eq(0)
                m.d.sync += state.eq(_State.EMIT)
        with m.If(state == _State.EMIT):
            # A row that was read waits in the store's output; its place is cleared in the cycle after the read.
            m.d.comb += [
                emitter.row_valid.eq(waits),
                issue.eq(~read_all & (~waits | emitter.row_ready)),
                emitter.finish.eq(read_all & ~waits),
            ]
            with m.If(issue):
                m.d.sync += [waits.eq(1), read_all.eq(row == last_row)]
            with m.Elif(emitter.row_ready):
                m.d.sync += waits.eq(0)
            with m.If(fresh):
                m.d.comb += [write.addr.eq(read_row), write.en.eq(-1)]
            with m.If(emitter.finished):
                m.d.sync += state.eq(_State.IDLE)
        return m
