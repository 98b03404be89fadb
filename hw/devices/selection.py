"""Turns the forms in which selected tokens are told into the positions that a channel reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.selection import SelectionForm
from hw.devices.layouts import place_layout, selected_layout

if TYPE_CHECKING:
    from hw.device_params import ChannelParams

__all__ = ["Selection", "request_layout", "run_layout", "word_positions"]


def word_positions(params: ChannelParams) -> int:
    """Return the positions whose marks fit a word, which is as wide as a column.

    Raises
    ------
    ValueError
        If those of one do not, or a list's item does not.
    """
    bits, column_bits = selected_layout(params).size, params.organisation.column_bits
    if bits > column_bits:
        raise ValueError(f"a column must hold a place and a bit for each part, {bits} bits, not {column_bits}")
    return column_bits // params.parts


def run_layout(params: ChannelParams) -> data.StructLayout:
    """Return the layout of a :class:`golden.selection.TokenRun`, its first position as a place."""
    organisation = params.organisation
    return data.StructLayout(
        {
            "place": place_layout(params),
            "positions": range(organisation.rows * organisation.columns + 1),
            "first_part": range(params.parts),
            "end_part": range(params.parts + 1),
        }
    )


def request_layout(params: ChannelParams) -> data.StructLayout:
    """Return the layout of a request: one operation's selection.

    ``words`` is how many follow of a list or a bitmap; ``token_columns`` and ``tile_columns`` are those of its rows.
    """
    organisation = params.organisation
    return data.StructLayout(
        {
            "form": 2,
            "words": range(organisation.rows * organisation.columns + 1),
            "token_columns": range(organisation.columns + 1),
            "tile_columns": range(organisation.columns + 1),
            "runs": data.ArrayLayout(run_layout(params), 2),
        }
    )


class Selection(wiring.Component):
    """Name the positions that an operation reads, in ascending order, each with the parts that want its token.

    Overview
    --------
    A selection comes in one of three forms (:mod:`golden.selection`). List: a word for each position, an item of
    ``places`` in its low bits. Bitmap: words of marks, ``word_positions`` positions each, a row's from a new word on;
    positions without a mark are skipped, and so are words without any. Runs: no words, two runs of tokens that are
    dealt in turn, such as the first ones and a window that ends with the newest.

    Protocol
    --------
    Plain streams. A request is taken with the last of its words, or of its positions; words come after it, in order.
    A list's positions must ascend. Bits of a bitmap behind the end of a row must be 0. The second run must begin behind
    the end of the first; where both have tokens at one position, it is named once.

    Timing
    ------
    A bitmap of three words with two, no and one wanted positions; ``places`` always ready::

        cycle           0  1  2  3  4
        words           A  A  B  C  .      (A is taken in cycle 1)
        places          .  a  b  .  c

    Latency and throughput
    ----------------------
    A position a cycle, one cycle behind its word; a bitmap's word without one takes a cycle
    (:mod:`hw.timing.selection`, whose formulas are the interval of requests)::

        list n        bitmap sum max(n_w, 1)        runs n        and one at least

    A channel takes a position in ``token_columns * n_ccdab`` cycles, 4 at the least. With words in every cycle a bitmap
    makes it wait only where more than ``n_rtpl + n_rp`` empty words follow each other: else the row that was read is
    still being closed. At head dimension 128 a word is a row: of 1,024 positions 1/32, the same in all parts, is named
    in 64 to 94 cycles; reading them takes 3,480 where they are strewn, 940 in runs of 16 (``attacc``).

    Numerics
    --------
    Bits; the positions and marks are those of :mod:`golden.selection` (``tests/hw/test_selection.py``).

    Parameters
    ----------
    params : ChannelParams
        Sizes of the channel.

    Members
    -------
    request : In(stream of request_layout)
        One an operation that selects tokens.
    words : In(stream of column_bits)
        Lists and bitmaps.
    places : Out(stream of selected_layout)
        Positions for :class:`hw.devices.sequencer.ChannelSequencer`.

    Raises
    ------
    ValueError
        If a column does not hold an item of a list.
    """

    request: stream.Interface
    words: stream.Interface
    places: stream.Interface

    def __init__(self, params: ChannelParams) -> None:
        self.params = params
        self.word_positions = word_positions(params)
        super().__init__(
            {
                "request": In(stream.Signature(request_layout(params))),
                "words": In(stream.Signature(params.organisation.column_bits)),
                "places": Out(stream.Signature(selected_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the output register and the three ways to it."""
        m = Module()
        request = self.request.payload
        places = self.places
        free = Signal()
        found = Signal(selected_layout(self.params))
        load, done = Signal(), Signal()
        word_number = Signal.like(request.words)
        last_word = word_number + 1 >= request.words
        m.d.comb += [free.eq(~places.valid | places.ready), self.request.ready.eq(self.request.valid & done)]
        with m.If(places.ready):
            m.d.sync += places.valid.eq(0)
        with m.If(load):
            m.d.sync += [places.valid.eq(1), places.payload.eq(found)]
        with m.If(self.words.valid & self.words.ready):
            m.d.sync += word_number.eq(Mux(last_word, 0, word_number + 1))

        bitmap, bitmap_left, bitmap_last = self._bitmap(m, load)
        run, run_last = self._runs(m, load)
        no_words = request.words == 0
        word = self.request.valid & self.words.valid & ~no_words
        with m.Switch(request.form):
            with m.Case(SelectionForm.LIST.value):
                m.d.comb += [
                    Value.cast(found).eq(self.words.payload),
                    load.eq(word & free),
                    self.words.ready.eq(load),
                    done.eq(no_words | (load & last_word)),
                ]
            with m.Case(SelectionForm.BITMAP.value):
                m.d.comb += [
                    found.eq(bitmap),
                    load.eq(word & free & bitmap_left),
                    self.words.ready.eq(word & (~bitmap_left | (load & bitmap_last))),
                    done.eq(no_words | (self.words.ready & last_word)),
                ]
            with m.Default():
                none = ~(request.runs[0].positions.any() | request.runs[1].positions.any())
                m.d.comb += [
                    found.eq(run),
                    load.eq(self.request.valid & free & ~none),
                    self.words.ready.eq(0),  # said outright: Verilator wants every case of a signal named
                    done.eq(none | (load & run_last)),
                ]
        return m

    def _bitmap(self, m: Module, load: Signal) -> tuple[data.View, Value, Value]:
        """Return the first wanted position of the word that has not been named, if there is one, and if it is alone."""
        parts, count = self.params.parts, self.word_positions
        request = self.request.payload
        named = Signal(count)
        tile = Signal(range(self.params.organisation.rows))
        base = Signal.like(request.tile_columns)
        marks = Array(self.words.payload.word_select(position, parts) for position in range(count))
        left = Signal(count)
        index = Signal(range(max(count, 2)))  # a signal of no bits is no Verilog
        first = Signal(count)
        found = Signal(selected_layout(self.params))
        m.d.comb += [
            left.eq(Cat(marks[position].any() for position in range(count)) & ~named),
            first.eq(left & -left),
            found.place.tile.eq(tile),
            found.place.column.eq(base + index * request.token_columns),
            found.wanted.eq(marks[index]),
        ]
        for position in range(count):
            with m.If(first[position]):
                m.d.comb += index.eq(position)
        word_taken = self.words.valid & self.words.ready
        with m.If(load & (request.form == SelectionForm.BITMAP.value)):
            m.d.sync += named.eq(named | first)
        with m.If(word_taken):
            next_base = base + count * request.token_columns
            row_over = next_base >= request.tile_columns
            m.d.sync += [named.eq(0), base.eq(Mux(row_over, 0, next_base)), tile.eq(tile + row_over)]
        with m.If(self.request.ready):
            m.d.sync += [base.eq(0), tile.eq(0)]
        return found, left.any(), left == first

    def _runs(self, m: Module, load: Signal) -> tuple[data.View, Value]:
        """Return the next position of the runs, and whether it is the last."""
        params = self.params
        request = self.request.payload
        runs = request.runs
        second, going = Signal(), Signal()
        place, next_place = Signal(place_layout(params)), Signal(place_layout(params))
        left, next_left = Signal.like(runs[0].positions), Signal.like(runs[0].positions)
        found = Signal(selected_layout(params))
        is_second = second | ~runs[0].positions.any()
        run = Signal(run_layout(params))
        here = Signal(place_layout(params))
        run_last, meets = Signal(), Signal()
        both = Signal()
        column = here.column + request.token_columns
        row_over = column >= request.tile_columns
        first_mask = (-1 << runs[1].first_part) & ((1 << params.parts) - 1)
        m.d.comb += [
            run.eq(Mux(is_second, Value.cast(runs[1]), Value.cast(runs[0]))),
            here.eq(Mux(going, Value.cast(place), Value.cast(run.place))),
            next_left.eq(Mux(going, left, run.positions) - 1),
            run_last.eq(next_left == 0),
            meets.eq(Value.cast(here) == Value.cast(runs[1].place)),
            both.eq(~is_second & run_last & meets & runs[1].positions.any()),
            next_place.tile.eq(here.tile + row_over),
            next_place.column.eq(Mux(row_over, 0, column)),
            found.place.eq(here),
            found.wanted.eq(
                (Mux(going, -1, -1 << run.first_part) & Mux(run_last, (1 << run.end_part) - 1, -1))
                | Mux(both, first_mask & Mux(runs[1].positions == 1, (1 << runs[1].end_part) - 1, -1), 0)
            ),
        ]
        over = run_last & (is_second | ~runs[1].positions.any() | (both & (runs[1].positions == 1)))
        with m.If(load & (request.form == SelectionForm.RUNS.value)):
            m.d.sync += [
                place.eq(next_place),
                left.eq(Mux(both, runs[1].positions - 1, next_left)),
                going.eq(~over & (~run_last | both)),
                second.eq(~over & (is_second | run_last)),
            ]
        return found, over
