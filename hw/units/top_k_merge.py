"""Merge of the top-k unit in Amaranth: the threshold of all shards together, from their counts."""

from __future__ import annotations

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.top_k_params import TopKParams

__all__ = ["TopKMerge"]


class _State(enum.Enum, shape=range(6)):
    """What the merge does in a cycle."""

    IDLE = 0
    COUNT = 1
    CHOOSE = 2
    EQUAL = 3
    SHARE = 4
    SHARED = 5


class TopKMerge(wiring.Component):
    """Digits of the k-th largest key of all shards, and each shard's share of the keys that equal it.

    Overview
    --------
    Counts add up: the sum of the shards' histograms is the histogram of all scores, and so the threshold is exact,
    however scores are spread over shards. Digit by digit the numbers of the shards, highest value first, are added by a
    tree and summed until they reach what is left of k: that value is the threshold's digit, and what lies above it is
    taken off. Of the scores that equal the threshold, as many as are left are shared out in the order of the shards.

    Protocol
    --------
    Plain ready/valid streams. An operation is one transfer on ``command``, k, which may be 0 and may be more than there
    are scores. ``counts[s]`` and ``choice[s]`` are those of :class:`hw.units.top_k_shard.TopKShard`; a number is taken
    from all shards in the same cycle. ``counts[s].ready`` depends on the valid of all. The ids of shard s are lower
    than those of shard s + 1: that makes the lower of equal scores' ids come first.

    Timing
    ------
    Two shards, digits of one bit, the last one (n numbers, d digits), then the equal ones (e) and their shares (q)::

        cycle      0  1  2  3  4  5  6  7  8
        counts     .  n  n  .  .  e  .  .  .
        choice[0]  .  .  .  .  d  .  .  q  .
        choice[1]  .  .  .  .  d  .  .  .  q

    Latency and throughput
    ----------------------
    A digit is on ``choice`` ``2**digit_bits + ceil(log2(shards))`` cycles after its first numbers; shard s gets its
    share ``s + 2`` cycles after the equal ones were taken. A command is taken ``shards + 2`` cycles after those at the
    earliest. The tree has a register a level.

    Numerics
    --------
    Integers, wide enough for all scores of all shards. :func:`golden.retrieval.radix.threshold` and
    :func:`golden.retrieval.radix.quotas` (``tests/rtl/test_top_k.py``).

    Parameters
    ----------
    params : TopKParams
        Sizes.

    Members
    -------
    command : ``In(stream.Signature(k_bits))``
        k of each operation.
    counts : ``In(stream.Signature(count_bits)).array(shards)``
        Numbers of the shards.
    choice : ``Out(stream.Signature(choice_bits)).array(shards)``
        Answers.

    Raises
    ------
    TypeError
        If ``params`` is not a TopKParams.
    """

    command: stream.Interface
    counts: list[stream.Interface]
    choice: list[stream.Interface]

    def __init__(self, params: TopKParams) -> None:
        if not isinstance(params, TopKParams):
            raise TypeError(f"params must be a TopKParams, not {params!r}")
        self.params = params
        shard = params.shard
        super().__init__(
            {
                "command": In(stream.Signature(params.k_bits)),
                "counts": In(stream.Signature(shard.count_bits)).array(params.shards),
                "choice": Out(stream.Signature(shard.choice_bits)).array(params.shards),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the tree, the running sum and the sequence of digits."""
        m = Module()
        state = Signal(_State, init=_State.IDLE)
        params, shard = self.params, self.params.shard
        left, digit = Signal(params.k_bits), Signal(range(shard.digits))

        # Numbers are taken from all shards at once.
        wanted, taken = Signal(), Signal()
        m.d.comb += taken.eq(wanted & Cat(port.valid for port in self.counts).all())
        for port in self.counts:
            m.d.comb += port.ready.eq(taken)

        # The tree; the value that a number counts travels along.
        adds = Signal()
        value = Signal(shard.digit_bits, init=shard.bins - 1)
        valid, counted, terms = adds, value, [port.payload for port in self.counts]
        with m.If(adds):
            m.d.sync += value.eq(value - 1)
        for level in range(params.levels):
            pairs = [terms[n : n + 2] for n in range(0, len(terms), 2)]
            sums = [Signal(shard.count_bits + level + 1, name=f"sum_{level}_{number}") for number in range(len(pairs))]
            next_valid, next_counted = Signal(name=f"valid_{level}"), Signal(shard.digit_bits, name=f"value_{level}")
            m.d.sync += [next_valid.eq(valid), next_counted.eq(counted)]
            m.d.sync += [total.eq(sum(pair[1:], pair[0])) for total, pair in zip(sums, pairs, strict=True)]
            valid, counted, terms = next_valid, next_counted, sums

        # The digit is the first value at which the sum reaches what is left; the least one if none does.
        pending, choice = Signal(params.shards), Signal(shard.choice_bits)
        still_pending = Signal(params.shards)
        above, reached = Signal(shard.count_bits + params.levels), Signal(shard.count_bits + params.levels + 1)
        found, decided = Signal(), Signal()
        m.d.comb += reached.eq(above + terms[0])
        for number, port in enumerate(self.choice):
            m.d.comb += [
                port.valid.eq(pending[number]),
                port.payload.eq(choice),
                still_pending[number].eq(pending[number] & ~port.ready),
            ]
        m.d.sync += pending.eq(still_pending)
        with m.If(valid):
            with m.If(~found & ((reached >= left) | (counted == 0))):
                m.d.sync += [found.eq(1), choice.eq(counted), left.eq(left - above)]
            with m.Elif(~found):
                m.d.sync += above.eq(reached)
            with m.If(counted == 0):
                m.d.sync += [pending.eq(-1), decided.eq(1), found.eq(0), above.eq(0)]

        equal = [Signal(shard.count_bits, name=f"equal_{number}") for number in range(params.shards)]
        turn = Signal(params.shards)
        share = Mux(equal[0] < left, equal[0], left)
        with m.If(state == _State.IDLE):
            m.d.comb += self.command.ready.eq(1)
            with m.If(self.command.valid):
                m.d.sync += [left.eq(self.command.payload), digit.eq(0)]
                m.d.sync += state.eq(_State.COUNT)
        with m.If(state == _State.COUNT):
            m.d.comb += [wanted.eq(1), adds.eq(taken)]
            with m.If(taken & (value == 0)):
                m.d.sync += state.eq(_State.CHOOSE)
        with m.If(state == _State.CHOOSE), m.If(decided & ~still_pending.any()):
            m.d.sync += [decided.eq(0), digit.eq(digit + 1)]
            m.d.sync += state.eq(_State.COUNT)
            with m.If(digit == shard.digits - 1):
                m.d.sync += state.eq(_State.EQUAL)
        with m.If(state == _State.EQUAL):
            m.d.comb += wanted.eq(1)
            with m.If(taken):
                m.d.sync += [count.eq(port.payload) for count, port in zip(equal, self.counts, strict=True)]
                m.d.sync += turn.eq(1)
                m.d.sync += state.eq(_State.SHARE)
        with m.If(state == _State.SHARE), m.If(~still_pending.any()):
            m.d.sync += [choice.eq(share), left.eq(left - share), pending.eq(turn), turn.eq(turn << 1)]
            m.d.sync += [count.eq(following) for count, following in pairwise(equal)]
            with m.If(turn[-1]):
                m.d.sync += state.eq(_State.SHARED)
        with m.If(state == _State.SHARED), m.If(~still_pending.any()):
            m.d.sync += state.eq(_State.IDLE)
        return m
