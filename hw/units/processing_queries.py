"""Takes the queries of a processing unit's next operation, and says where each beat of them is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

if TYPE_CHECKING:
    from amaranth.hdl import ValueLike
    from amaranth.lib import data

    from hw.params import ProcessingParams

__all__ = ["QueryIntake", "store"]


def store(m: Module, words: data.View, number: ValueLike, value: ValueLike) -> None:
    """Write ``value`` to one of the registers ``words``, each a case of its own: Verilator wants none left out."""
    for place in range(words.shape().length):
        with m.If(number == place):
            m.d.sync += words[place].eq(value)


class QueryIntake(wiring.Component):
    """Count the beats of the queries of one operation, query after query.

    Kept they lie beat by beat, in the order in which they are used: of g queries, beat b of query j has the place
    ``b * g + j``. Only the command says how many queries there are, and of how many beats; one of one there is in any
    case, so that the first beat may come ahead of the command.

    Parameters
    ----------
    params : ProcessingParams
        Sizes of the unit.

    Members
    -------
    waiting, beats, last_query : In
        The command is there; beats of each query, number of the last one.
    closed : In(1)
        The queries of the current operation are still read.
    start : In(1)
        The operation starts: the next beat is another one's.
    valid, ready : In(1), Out(1)
        Handshake of the query stream.
    index : Out
        Place of the beat that is being taken.
    held : Out(1)
        Command and queries are there.
    """

    def __init__(self, params: ProcessingParams) -> None:
        self.params = params
        super().__init__(
            {
                "waiting": In(1),
                "beats": In(range(params.beats + 1)),
                "last_query": In(params.query_range),
                "closed": In(1),
                "start": In(1),
                "valid": In(1),
                "ready": Out(1),
                "index": Out(range(params.held_beats)),
                "held": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the counters of beats, of queries and of places."""
        m = Module()
        params = self.params
        count = Signal(range(params.beats + 1))
        query = Signal(params.query_range)
        query_end = Signal()
        m.d.comb += [
            query_end.eq(self.waiting & (count == self.beats)),
            self.held.eq(query_end & (query == self.last_query)),
            self.ready.eq(~self.closed & ~self.held & (self.waiting | (count == 0))),
        ]
        taken = self.valid & self.ready
        if params.queries == 1:
            m.d.comb += self.index.eq(count)
            with m.If(taken):
                m.d.sync += count.eq(count + 1)
        else:
            before = Signal(range(params.held_beats))
            along = Mux(count == 0, 0, before + self.last_query + 1)
            m.d.comb += self.index.eq(Mux(query_end, query + 1, along))
            with m.If(taken):
                m.d.sync += [before.eq(self.index), count.eq(Mux(query_end, 1, count + 1)), query.eq(query + query_end)]
        with m.If(self.start):
            m.d.sync += [count.eq(0), query.eq(0)]
        return m
