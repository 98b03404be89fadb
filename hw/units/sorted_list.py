"""A chain of places in Amaranth that keeps the largest scores sorted: what selection by sorting costs."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.checks import require_int
from golden.retrieval.radix import KEY_BITS
from hw.units.top_k_keys import ordered_key

__all__ = ["SortedList", "SortedListParams", "entry_layout", "given_layout"]


@dataclass(frozen=True, kw_only=True)
class SortedListParams:
    """Parameters of :class:`SortedList`.

    Parameters
    ----------
    places : int
        Scores that it keeps; 2 to 4,096.
    id_bits : int
        Width of an id; 1 to 32.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not an integer or out of range.
    """

    places: int = 2048
    id_bits: int = 20

    def __post_init__(self) -> None:
        require_int("places", self.places, 2, 4096)
        require_int("id_bits", self.id_bits, 1, 32)


def entry_layout(params: SortedListParams) -> data.StructLayout:
    """One score: its fp32 code and its id, and whether it is the last of its operation."""
    return data.StructLayout({"score": KEY_BITS, "id": params.id_bits, "last": 1})


def given_layout(params: SortedListParams) -> data.StructLayout:
    """One id taken; or, with ``end``, the end of an operation, which is no id."""
    return data.StructLayout({"id": params.id_bits, "end": 1})


class SortedList(wiring.Component):
    """Ids of the largest scores, the largest first; of equal ones, those that came first.

    Overview
    --------
    What :class:`hw.units.top_k.TopK` is compared with. Every place holds a key and an id, compares the score that comes
    with its own, and takes it, its upper neighbour's or neither: a register, a comparator and two multiplexers for each
    of k places, whatever is selected, and one score a cycle for all of them.

    Protocol
    --------
    Plain ready/valid streams: scores up to and with one marked ``last``, then ids and an end. Nothing is taken while
    ids are given out. NaN is below everything, as in the top-k unit.

    Latency and throughput
    ----------------------
    A score a cycle. From the last score to the end there are ``min(scores, places) + 1`` cycles, an id in each before.

    Numerics
    --------
    :func:`golden.retrieval.topk.top_k` for ids that ascend (``tests/hw/test_sorted_list.py``).

    Parameters
    ----------
    params : SortedListParams
        Sizes.

    Members
    -------
    scores : ``In(stream.Signature(entry_layout(params)))``
        Scores.
    selected : ``Out(stream.Signature(given_layout(params)))``
        Ids and ends.
    """

    scores: stream.Interface
    selected: stream.Interface

    def __init__(self, params: SortedListParams) -> None:
        self.params = params
        super().__init__(
            {
                "scores": In(stream.Signature(entry_layout(params))),
                "selected": Out(stream.Signature(given_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the places."""
        m = Module()
        held = data.StructLayout({"key": KEY_BITS, "id": self.params.id_bits})
        places = [Signal(held, name=f"place_{number}") for number in range(self.params.places)]
        new = Signal(held)
        key, _ = ordered_key(m, self.scores.payload.score)
        gives, taken = Signal(), Signal()
        m.d.comb += [
            new.key.eq(key),
            new.id.eq(self.scores.payload.id),
            self.scores.ready.eq(~gives),
            taken.eq(self.scores.valid & ~gives),
            self.selected.valid.eq(gives),
            # No score has key 0.
            self.selected.payload.end.eq(places[0].key == 0),
            self.selected.payload.id.eq(places[0].id),
        ]
        with m.If(taken & self.scores.payload.last):
            m.d.sync += gives.eq(1)
        with m.If(gives & self.selected.ready & self.selected.payload.end):
            m.d.sync += gives.eq(0)

        upper, before = new.as_value(), Const(0, 1)
        for number, place in enumerate(places):
            lower = places[number + 1].as_value() if number + 1 < len(places) else Const(0, held.size)
            passes = Signal(name=f"passes_{number}")
            m.d.comb += passes.eq(new.key > place.key)
            with m.If(taken & passes):
                m.d.sync += place.eq(Mux(before, upper, new.as_value()))
            with m.If(gives & self.selected.ready):
                m.d.sync += place.eq(lower)
            upper, before = place.as_value(), passes
        return m
