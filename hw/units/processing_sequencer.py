"""Front of the processing unit: takes commands, queries and kv beats, and says what every beat is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Shape, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.layouts import command_layout

if TYPE_CHECKING:
    from hw.params import ProcessingParams

__all__ = ["Sequencer", "beat_layout", "token_shape"]


def beat_layout(params: ProcessingParams) -> data.StructLayout:
    """Return the layout of what a kv beat is; it travels beside the beat through the pipeline.

    ``is_value`` tells V from K, ``slot`` is the half of the score buffer that its tile has, ``index`` its
    place in the token and ``beat_last`` the token's end; ``tile_first`` the first tile of the operation,
    ``token_first`` and ``token_last`` the ends of a tile, ``final`` the last token of its kind.
    """
    return data.StructLayout(
        {
            "is_value": 1,
            "slot": 1,
            "index": range(params.beats),
            "beat_last": 1,
            "tile_first": 1,
            "token_first": 1,
            "token_last": 1,
            "final": 1,
        }
    )


def token_shape(params: ProcessingParams) -> Shape:
    """Return the shape of a token's number in its tile; one bit at least, for Verilog has no vectors of none."""
    return unsigned(max((params.tile_tokens - 1).bit_length(), 1))


class Sequencer(wiring.Component):
    """Walk through K0, K1, V0, K2, V1, ..., V_last and let each kv beat in when its time has come.

    A K beat is never held back. A V beat waits until its token's weight is in the score buffer, and the
    first ones of an operation until the body of the operation before has left the lanes. The command and
    the query of the next operation are taken while the current one reads V beats only, so that its first
    K beat can come in the cycle after the last V beat. An operation does not start before the head of its
    predecessor has reached the output register: until then m, l and the operation's id stand still.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    command : In(stream)
        One item of :func:`hw.layouts.command_layout` an operation.
    query_valid, query_ready : In(1), Out(1)
        Handshake of the query stream, ``beats`` items an operation.
    query_index : Out
        Where the query beat that is being taken belongs.
    kv_valid, kv_ready : In(1), Out(1)
        Handshake of the kv stream.
    accept : Out(1)
        A kv beat is being taken.
    beat : Out(beat_layout)
        What it is.
    token : Out
        Its token's number in the tile.
    op_id, scale, empty : Out
        The current operation; constant until ``head_done``.
    start_empty : Out(1)
        An operation without tokens starts: its head is due.
    weight_written : In(1)
        One more weight is in the score buffer.
    head_done : In(1)
        The head of the current operation is in the output register.
    body_done : In(1)
        The last body beat of the last operation is in the output register.
    """

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(params))),
                "query_valid": In(1),
                "query_ready": Out(1),
                "query_index": Out(range(params.beats)),
                "kv_valid": In(1),
                "kv_ready": Out(1),
                "accept": Out(1),
                "beat": Out(beat_layout(params)),
                "token": Out(token_shape(params)),
                "op_id": Out(params.op_id_bits),
                "scale": Out(params.state_format.bits),
                "empty": Out(1),
                "start_empty": Out(1),
                "weight_written": In(1),
                "head_done": In(1),
                "body_done": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the sequencer."""
        m = Module()
        params = self.params
        active = Signal()
        finishing = Signal()
        start = Signal()
        query_full = Signal()
        head_owed = Signal()

        # The command of the next operation waits in a register of its own.
        waiting = Signal()
        pending = Signal(command_layout(params))
        m.d.comb += self.command.ready.eq(~waiting)
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [waiting.eq(1), pending.eq(self.command.payload)]

        m.d.comb += self.query_ready.eq(~query_full)
        with m.If(self.query_valid & self.query_ready):
            m.d.sync += self.query_index.eq(self.query_index + 1)
            with m.If(self.query_index == params.beats - 1):
                m.d.sync += [self.query_index.eq(0), query_full.eq(1)]

        # Tokens not yet read, keys and values apart; the tile of each kind that is being read or comes next.
        keys_left = Signal(params.token_bits)
        values_left = Signal(params.token_bits)
        key_tile_first = Signal()
        value_tile_first = Signal()
        key_slot = Signal()
        value_slot = Signal()
        is_value = Signal()
        index = Signal(range(params.beats))
        beat_last = Signal()
        token_last = Signal()
        final = Signal()
        m.d.comb += [
            beat_last.eq(index == params.beats - 1),
            final.eq(Mux(is_value, values_left, keys_left) == 1),
            token_last.eq(final | (self.token == params.tile_tokens - 1)),
            self.beat.is_value.eq(is_value),
            self.beat.slot.eq(Mux(is_value, value_slot, key_slot)),
            self.beat.index.eq(index),
            self.beat.beat_last.eq(beat_last),
            self.beat.tile_first.eq(Mux(is_value, value_tile_first, key_tile_first)),
            self.beat.token_first.eq(self.token == 0),
            self.beat.token_last.eq(token_last),
            self.beat.final.eq(final),
        ]

        weights = Signal(range(2 * params.tile_tokens + 1))
        body_busy = Signal()
        value_ready = Signal()
        m.d.comb += [
            value_ready.eq(weights.any() & ~body_busy),
            self.kv_ready.eq(active & (~is_value | value_ready)),
            self.accept.eq(self.kv_valid & self.kv_ready),
            finishing.eq(self.accept & is_value & beat_last & final),
        ]
        weight_used = self.accept & is_value & beat_last
        m.d.sync += weights.eq(weights + self.weight_written - weight_used)

        with m.If(self.accept):
            m.d.sync += index.eq(Mux(beat_last, 0, index + 1))
        with m.If(self.accept & beat_last):
            m.d.sync += self.token.eq(Mux(token_last, 0, self.token + 1))
            with m.If(is_value):
                m.d.sync += values_left.eq(values_left - 1)
                with m.If(token_last):
                    m.d.sync += [value_slot.eq(~value_slot), value_tile_first.eq(0), is_value.eq(~keys_left.any())]
            with m.Else():
                m.d.sync += keys_left.eq(keys_left - 1)
                with m.If(token_last):
                    # The keys of the second tile follow those of the first at once.
                    m.d.sync += [
                        key_slot.eq(~key_slot),
                        key_tile_first.eq(0),
                        is_value.eq(~key_tile_first | final),
                    ]
                with m.If(final):
                    m.d.sync += query_full.eq(0)

        with m.If(finishing):
            m.d.sync += [active.eq(0), body_busy.eq(1)]
        with m.If(self.body_done):
            m.d.sync += body_busy.eq(0)
        with m.If(self.head_done):
            m.d.sync += head_owed.eq(0)

        m.d.comb += [
            start.eq((~active | finishing) & waiting & query_full & ~head_owed),
            self.start_empty.eq(start & ~pending.num_tokens.any()),
        ]
        with m.If(start):
            m.d.sync += [
                waiting.eq(0),
                self.op_id.eq(pending.op_id),
                self.scale.eq(pending.scale),
                self.empty.eq(self.start_empty),
                head_owed.eq(1),
                active.eq(~self.start_empty),
                is_value.eq(0),
                keys_left.eq(pending.num_tokens),
                values_left.eq(pending.num_tokens),
                key_tile_first.eq(1),
                value_tile_first.eq(1),
            ]
            with m.If(self.start_empty):
                m.d.sync += query_full.eq(0)
        return m
