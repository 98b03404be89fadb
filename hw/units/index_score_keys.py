"""Keys of the index scoring unit: beats as they come, their turns at the groups of heads, scales and blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hw.timing.index_score import held_scores
from hw.units.index_score_layouts import command_layout, number_below, step_layout

if TYPE_CHECKING:
    from hw.index_score_params import IndexScoreParams

__all__ = ["KeyBeats"]


class KeyBeats(wiring.Component):
    """Takes beats of keys and gives each a turn at every group of heads.

    A beat of scales waits in a register of its own, and gives one to the last beat of each key. Of a beat of two keys
    the second one waits, too, and has its turns after the first, as if it came in a beat of its own; where two heads
    share a beat's products a key fills both halves. The first beat of a key that ends a block is not taken while as
    many scores as the queue holds are under way or in it, so that nothing behind has to be held up.

    Parameters
    ----------
    params : IndexScoreParams
        Sizes of the unit.

    Members
    -------
    config : In(command_layout)
        The operation.
    start : In(1)
        Keys come from the next cycle on; not of an operation without keys.
    keys : ``In(stream.Signature(beat_bits))``
        Beats.
    score_taken : In(1)
        A score leaves the unit.
    row, row_read : Out, Out(1)
        Row of the query that the next cycle's turn needs, and whether there will be one.
    step, key : Out(step_layout), Out(beat_bits)
        The turn, and its beat.
    busy : Out(1)
        Keys are still to come, or scores under way.
    """

    keys: stream.Interface

    def __init__(self, params: IndexScoreParams) -> None:
        self.params = params
        super().__init__(
            {
                "config": In(command_layout(params)),
                "start": In(1),
                "keys": In(stream.Signature(params.beat_bits)),
                "score_taken": In(1),
                "row": Out(number_below(params.query_rows)),
                "row_read": Out(1),
                "step": Out(step_layout(params)),
                "key": Out(params.beat_bits),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the counters of beats, keys, scales and scores under way."""
        m = Module()
        params, config, step = self.params, self.config, self.step
        held = held_scores(params)

        # The beat that comes next: its place in the key, the key's in its block and under its beat of scales.
        beat, high = Signal(number_below(params.query_rows)), Signal()
        left = Signal(params.count_bits)
        block, place = Signal(config.block.shape()), Signal(range(params.spec.scales_per_beat))
        scales_next = Signal()
        scales = Signal(params.beat_bits)
        under_way = Signal(range(held + 1))
        first, last, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            first.eq((beat == 0) & ~high),
            last.eq((beat == config.beats) & (high | ~config.bounds)),
            ends.eq((block == config.block) | (left == 1)),
        ]

        # The second key of a beat of two waits for the first one's turns.
        half = params.beat_bits // 2
        rest, rest_next, vector = Signal(half), Signal(), Signal(half)
        payload = Signal(params.beat_bits)
        m.d.comb += [
            vector.eq(Mux(rest_next, rest, self.keys.payload[:half])),
            payload.eq(Mux(config.pairs, Cat(vector, Mux(config.shares, vector, 0)), self.keys.payload)),
        ]

        more, room, taken, counts = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            more.eq(step.valid & ~step.final),
            room.eq((under_way != held) | ~(first & ends)),
            self.keys.ready.eq(left.any() & ~more & (scales_next | room) & ~rest_next),
            taken.eq(rest_next & ~more & room | self.keys.valid & self.keys.ready & ~scales_next),
            counts.eq(taken & first & ends),
            self.busy.eq(left.any() | under_way.any()),
        ]
        m.d.sync += under_way.eq(under_way + counts - self.score_taken)

        # Turns of the beat that is held, and rows of the query, which two beats of a page share.
        group = Signal(config.groups.shape())
        turn_high, turn_last, final = Signal(), Signal(), Signal()
        row, base = Signal.like(self.row), Signal.like(self.row)
        m.d.comb += [
            group.eq(Mux(taken, 0, step.group + 1)),
            final.eq(group == config.groups),
            turn_high.eq(Mux(taken, high, step.high)),
            turn_last.eq(Mux(taken, last, step.last)),
            self.row.eq(row),
            self.row_read.eq(taken | more),
        ]
        m.d.sync += step.valid.eq(self.row_read)
        with m.If(self.row_read):
            m.d.sync += [step.group.eq(group), step.final.eq(final), row.eq(row + 1)]
            with m.If(final):
                m.d.sync += [row.eq(Mux(turn_last, 0, row + 1)), base.eq(Mux(turn_last, 0, row + 1))]
                with m.If(config.bounds & ~turn_high):
                    m.d.sync += [row.eq(base), base.eq(base)]

        with m.If(taken):
            m.d.sync += [
                self.key.eq(payload),
                rest.eq(self.keys.payload[half:]),
                rest_next.eq(config.pairs & ~rest_next & (left != 1)),
                step.first.eq(first),
                step.last.eq(last),
                step.high.eq(high),
                step.ends.eq(ends),
                step.scale.eq(Mux(config.scaled, scales[: FP32.bits], Const(FP32.one_code, FP32.bits))),
                high.eq(config.bounds & ~high),
            ]
            with m.If(high | ~config.bounds):
                m.d.sync += beat.eq(beat + 1)
            with m.If(last):
                m.d.sync += [
                    beat.eq(0),
                    left.eq(left - 1),
                    block.eq(Mux(ends, 0, block + 1)),
                    place.eq(place + 1),
                    scales.eq(scales >> FP32.bits),
                    scales_next.eq(config.scaled & place.all()),
                ]
        with m.If(self.keys.valid & self.keys.ready & scales_next):
            m.d.sync += [scales.eq(self.keys.payload), scales_next.eq(0)]
        with m.If(self.start):
            m.d.sync += [left.eq(config.keys), scales_next.eq(config.scaled), place.eq(0)]
        return m
