"""Front of the processing unit: takes commands, queries and kv beats, and says what every beat is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.layouts import command_layout
from hw.timing.operation import OperationKind
from hw.units.processing_beat import beat_layout, token_shape
from hw.units.processing_queries import QueryIntake
from hw.units.processing_scores import context_layout

if TYPE_CHECKING:
    from amaranth.hdl import Value

    from hw.params import ProcessingParams

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Walk through K0, K1, V0, K2, V1, ..., V_last and let each kv beat in when its time has come.

    A beat is taken for its first query and used by the others in the cycles that follow. A K beat is never held back
    otherwise. A V beat waits until its token's weights are in the score buffer, the first ones of an operation until
    the bodies of the operation before have left the lanes, and each until the word of o that it adds to is written:
    with one beat and one query a token, for one cycle. Beats of tokens that do not count are dropped, at the same pace;
    beats that are marked keep the pace of all others. The command and the queries of the next operation are taken while
    the current one reads V beats only, so that its first K beat can come in the cycle after the last use of the last V
    beat. An operation does not start before the heads of its predecessor have reached the output registers: until then
    m, l and the operation's id stand still.

    An operation of scores has K beats alone, tile by tile, and no head. Where its last token that counts has used a
    word of q, the next query's may take its place. An operation whose context is not free waits
    (:class:`hw.units.processing_scores.TokenScores`).

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    command : In(stream)
        One item of :func:`hw.layouts.command_layout` an operation.
    query_valid, query_ready : In(1), Out(1)
        Handshake of the query stream, as many items a query as a token has beats.
    query_index : Out
        Where the query beat that is being taken belongs.
    kv_valid, kv_ready : In(1), Out(1)
        Handshake of the kv stream.
    kv_skip : In(1)
        The beat's mark.
    accept : Out(1)
        A kv beat that counts is being used.
    beat : Out(beat_layout)
        What it is.
    token : Out
        Its token's number in the tile.
    last_query : Out
        Number of the last query of the current operation.
    empty : Out
        The current operation has no token that counts; constant until ``head_done``.
    start, next_context, next_scored : Out
        An operation starts; its context, and whether it is one of scores with tokens that count.
    turn, context_free : In(1)
        Number of the current operation's context; the next one's is free.
    start_empty : Out(1)
        An operation without tokens that count starts: its head is due.
    weight_written : In(1)
        The weights of one more token are in the score buffer.
    head_done : In(1)
        The heads of the current operation are in the output registers.
    body_done : In(1)
        The last body beat of the last operation is in the output register.
    next_ready : Out(1)
        The next operation has a walk and will start as soon as the current one has read its last beat.
    start_walk : Out(1)
        An operation with a walk starts.
    start_idle : Out(1)
        An operation without a walk starts.
    live_tile, dropped_tile : Out(1)
        The last K beat that counts of a tile has its last use; the last K beat of a tile in which none counts.
    body_free : Out(1)
        From the next cycle on no body is in the lanes.
    """

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(params))),
                "query_valid": In(1),
                "query_ready": Out(1),
                "query_index": Out(range(params.held_beats)),
                "kv_valid": In(1),
                "kv_ready": Out(1),
                "kv_skip": In(1),
                "accept": Out(1),
                "beat": Out(beat_layout(params)),
                "token": Out(token_shape(params)),
                "last_query": Out(params.query_range),
                "start": Out(1),
                "next_context": Out(context_layout(params)),
                "next_scored": Out(1),
                "turn": In(1),
                "context_free": In(1),
                "empty": Out(1),
                "start_empty": Out(1),
                "weight_written": In(1),
                "head_done": In(1),
                "body_done": In(1),
                "next_ready": Out(1),
                "start_walk": Out(1),
                "start_idle": Out(1),
                "live_tile": Out(1),
                "dropped_tile": Out(1),
                "body_free": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the sequencer."""
        m = Module()
        params = self.params
        active = Signal()
        finishing = Signal()
        start = self.start
        head_owed = Signal()
        scored = Signal()

        # The command of the next operation waits in a register of its own.
        waiting = Signal()
        pending = Signal(command_layout(params))
        m.d.comb += self.command.ready.eq(~waiting)
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [waiting.eq(1), pending.eq(self.command.payload)]

        m.submodules.queries = queries = QueryIntake(params)
        query_read = Signal()
        released = Signal()
        m.d.comb += [
            queries.waiting.eq(waiting),
            queries.beats.eq(pending.beats),
            queries.last_query.eq(pending.last_query if params.queries > 1 else 0),
            queries.closed.eq(query_read & ~released),
            queries.start.eq(start),
            queries.valid.eq(self.query_valid),
            self.query_ready.eq(queries.ready),
            self.query_index.eq(queries.index),
        ]

        # Tokens not yet read, keys and values apart: first those that count, then those that are dropped.
        dropped_tokens = Signal(params.token_bits)
        beat_end = Signal(range(params.beats))
        tile_end = Signal(token_shape(params))
        keys, values = _Kind("key", params), _Kind("value", params)
        keys_over = Signal()
        is_value = Signal()
        values_fresh = Signal()
        index = Signal(range(params.beats))
        use_index = Signal(range(params.held_beats)) if params.queries > 1 else index
        query = Signal(params.query_range)
        use = Signal()
        take = Signal()
        beat_last = Signal()
        drop = Signal()
        final = Signal()
        walk_last = Signal()
        tile_last = Signal()
        left = Mux(is_value, values.left, keys.left)
        skip = self._skip(m, query)
        m.d.comb += [
            drop.eq(Mux(is_value, values.drop, keys.drop)),
            beat_last.eq(index == beat_end),
            final.eq((left == 1) & ~drop),
            walk_last.eq((left == 1) & (drop | ~dropped_tokens.any())),
            tile_last.eq(walk_last | (self.token == tile_end)),
            self.beat.is_value.eq(is_value),
            self.beat.slot.eq(Mux(is_value, values.slot, keys.slot)),
            self.beat.index.eq(use_index),
            self.beat.query.eq(query),
            self.beat.again.eq(query != self.last_query),
            self.beat.beat_last.eq(beat_last),
            self.beat.tile_first.eq(Mux(is_value, values.tile_first, keys.tile_first)),
            self.beat.token_first.eq(Mux(is_value, values_fresh, self.token == 0)),
            self.beat.token_last.eq(final | (self.token == tile_end)),
            self.beat.final.eq(final),
            self.beat.skip.eq(skip),
            self.beat.scored.eq(scored),
            self.beat.turn.eq(self.turn),
            released.eq(scored & final & (queries.index < use_index)),
        ]

        weights = Signal(range(2 * params.tile_tokens + 1))
        body_busy = Signal()
        word_busy = Signal()
        value_ready = values.drop | (weights.any() & ~body_busy & ~word_busy)
        m.d.comb += [
            self.kv_ready.eq(active & (query == 0) & (~is_value | value_ready)),
            use.eq((self.kv_valid & self.kv_ready) | (query != 0)),
            # All that follows goes on at the last use of a beat.
            take.eq(use & (query == self.last_query)),
            self.accept.eq(use & ~drop),
            finishing.eq(take & (is_value | scored) & beat_last & walk_last),
            self.live_tile.eq(take & ~drop & ~is_value & ~scored & beat_last & self.beat.token_last),
        ]
        accept_value = take & ~drop & is_value
        m.d.sync += [
            weights.eq(weights + self.weight_written - (accept_value & beat_last)),
            word_busy.eq(accept_value & (beat_end == 0) & (self.last_query == 0)),
        ]

        if params.queries > 1:
            with m.If(use):
                m.d.sync += [
                    query.eq(Mux(take, 0, query + 1)),
                    use_index.eq(Mux(take & beat_last, 0, use_index + 1)),
                ]
        with m.If(take):
            m.d.sync += index.eq(Mux(beat_last, 0, index + 1))
        with m.If(take & beat_last):
            m.d.sync += self.token.eq(Mux(tile_last, 0, self.token + 1))
        for kind, selected in ((keys, ~is_value), (values, is_value)):
            with m.If(take & beat_last & selected):
                m.d.sync += [kind.left.eq(Mux(final, dropped_tokens, kind.left - 1)), kind.drop.eq(drop | final)]
                with m.If(tile_last if kind is keys else ~skip):
                    m.d.sync += kind.tile_first.eq(0)
                with m.If(self.beat.token_last & ~drop & ~scored):
                    m.d.sync += kind.slot.eq(~kind.slot)
        # A tile that holds the last token that counts counts itself, whatever follows in it.
        tile_counts = Signal()
        m.d.comb += self.dropped_tile.eq(take & ~is_value & ~scored & beat_last & tile_last & drop & ~tile_counts)
        with m.If(take & ~is_value & beat_last):
            m.d.sync += tile_counts.eq(~tile_last & (tile_counts | final))
            with m.If(final):
                m.d.sync += query_read.eq(0)
            with m.If(walk_last):
                m.d.sync += keys_over.eq(1)
            with m.If(tile_last):
                # The keys of the second tile follow those of the first at once.
                m.d.sync += is_value.eq(~scored & (~keys.tile_first | walk_last))
        with m.If(take & is_value & beat_last):
            m.d.sync += values_fresh.eq(tile_last | (values_fresh & skip))
            with m.If(tile_last):
                m.d.sync += is_value.eq(keys_over)

        m.d.comb += self.body_free.eq(~body_busy | self.body_done)
        with m.If(accept_value & beat_last & final):
            m.d.sync += body_busy.eq(1)
        with m.If(self.body_done):
            m.d.sync += body_busy.eq(0)
        with m.If(finishing):
            m.d.sync += active.eq(0)
        with m.If(self.head_done):
            m.d.sync += head_owed.eq(0)

        walks = pending.walk_tokens.any()
        counts = pending.num_tokens.any()
        scores = pending.kind == OperationKind.SCORE.value
        prepared = queries.held & ~head_owed & self.context_free
        m.d.comb += [
            start.eq((~active | finishing) & prepared),
            self.next_context.op_id.eq(pending.op_id),
            self.next_context.scale.eq(pending.scale),
            self.next_scored.eq(scores & counts),
            self.start_empty.eq(start & ~counts & ~scores),
            self.start_walk.eq(start & walks),
            self.start_idle.eq(start & ~walks),
            self.next_ready.eq(prepared & walks),
        ]
        with m.If(start):
            m.d.sync += [
                waiting.eq(0),
                query_read.eq(counts),
                self.last_query.eq(pending.last_query if params.queries > 1 else 0),
                self.empty.eq(~counts),
                scored.eq(scores),
                head_owed.eq(~scores),
                active.eq(walks),
                beat_end.eq(pending.beats - 1),
                tile_end.eq(pending.tile_tokens - 1),
                dropped_tokens.eq(pending.walk_tokens - pending.num_tokens),
                is_value.eq(0),
                keys_over.eq(0),
                values_fresh.eq(1),
            ]
            for kind in (keys, values):
                m.d.sync += [
                    kind.left.eq(Mux(counts, pending.num_tokens, pending.walk_tokens)),
                    kind.drop.eq(~counts),
                    kind.tile_first.eq(1),
                ]
        return m

    def _skip(self, m: Module, query: Signal) -> Value:
        """Keep the mark of the beat that came with the first query for the others."""
        if self.params.queries == 1:
            return self.kv_skip
        kept = Signal()
        with m.If(query == 0):
            m.d.sync += kept.eq(self.kv_skip)
        return Mux(query == 0, self.kv_skip, kept)


class _Kind:
    """Registers of keys or of values: tokens left, whether those are dropped, and the tile that comes next."""

    def __init__(self, name: str, params: ProcessingParams) -> None:
        self.left = Signal(params.token_bits, name=f"{name}s_left")
        self.drop = Signal(name=f"{name}s_dropped")
        self.tile_first = Signal(name=f"{name}_tile_first")
        self.slot = Signal(name=f"{name}_slot")
