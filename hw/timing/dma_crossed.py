"""Cycles of an end of the DMA whose link has a clock of its own."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from hw.timing import dma
from hw.timing.formula import Formula

if TYPE_CHECKING:
    from hw.dma_crossed_params import DmaCrossedParams

__all__ = ["interval_formula_of", "latency_cycles", "latency_formula_of", "round_trip_cycles"]

CROSSING_CYCLES = 3
"""From the edge at which an item is written to that at which it can be taken, where both clocks are one."""

_CROSSINGS = 4
"""The token leaves one clock and enters another, and so does its verdict."""

_READ_CYCLES = 3
"""Most edges of the reading clock behind the writing edge: the pointer passes two registers."""

_RECEIVER_CYCLES = 4
"""From a flit's last beat to its acknowledgement: sum, number, answer, and the register of that."""

_SENDER_CYCLES = 3
"""From the last beat's read to the crossing, and from the acknowledgement to what it changes."""


def latency_cycles(params: DmaCrossedParams) -> int:
    """Return the cycles from a descriptor of one token to its completion where the link's clock is that of both ends.

    That of :func:`hw.timing.dma.latency_cycles` and four crossings; it equals the RTL
    (``tests/hw/test_dma_crossed.py``).
    """
    return dma.latency_cycles(params.dma) + _CROSSINGS * CROSSING_CYCLES


def round_trip_cycles(params: DmaCrossedParams, *, clock_s: float, link_s: float, peer_s: float, wire_s: float) -> int:
    """Return the most cycles of this end between two acknowledgements that tell something new, while it sends.

    The link's ``timeout_cycles`` must be more, or a link without faults sends flits again. The last beat of a flit
    leaves a full crossing, crosses the wire and enters the other end; its acknowledgement comes back over two more::

        (3 + 3 + 3) own + (depth + 1 + 3) link + 2 wire + (3 + 4) peer + (1 + 3) link

    with a beat, or its like, for every cycle of waiting for an edge; nothing else may hold the flit up at either end.

    Parameters
    ----------
    params : DmaCrossedParams
        Of both ends.
    clock_s, link_s, peer_s : float
        Periods of this end's clock, of the link's and of the other end's.
    wire_s : float
        From one end's side of the link to the other's, one way.
    """
    own = 2 * _SENDER_CYCLES + _READ_CYCLES
    link = params.depth + 1 + _READ_CYCLES + 1 + _READ_CYCLES
    peer = _READ_CYCLES + _RECEIVER_CYCLES
    return own + ceil((link * link_s + peer * peer_s + 2 * wire_s) / clock_s)


def latency_formula_of(params: DmaCrossedParams) -> Formula:
    """Return the latency as text."""
    within = dma.latency_formula_of(params.dma)
    return Formula(
        formula=f"{within.formula} + crossings * {CROSSING_CYCLES}",
        variables=within.variables | {"crossings": "of the token and of its verdict; the link's clock is that of both"},
        values=within.values | {"crossings": _CROSSINGS},
        cycles=latency_cycles(params),
    )


def interval_formula_of(params: DmaCrossedParams) -> Formula:
    """Return the interval of tokens as text; that of the end, in the clock of which it is."""
    return dma.interval_formula_of(params.dma)
