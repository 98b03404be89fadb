"""Cycles of an end of the DMA without stalls: they equal the RTL (``tests/rtl/test_dma.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.timing.flits import packer_cycles
from hw.timing.formula import Formula

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams

__all__ = ["flit_cycles", "interval_cycles", "interval_formula_of", "latency_cycles", "latency_formula_of"]

_FIXED_CYCLES = 64
"""Registers on the way there and back: 10 to the first read and 13 from the last column to the link, 10 to the first
write, 3 to the last column read back, 13 to the link, 12 to the switch and 3 to the completion."""

_FRAME_CYCLES = 4
"""Cycles of a frame in which no column of it is sent: chosen, named to the verdicts, commanded, begun."""


def flit_cycles(params: DmaParams, columns: int) -> int:
    """Return the cycles from the header of a frame of so many columns to the last beat of its first flit.

    The recurrence of :func:`hw.timing.flits.packer_cycles`.
    """
    flit = params.path.link.flit
    return packer_cycles(flit, [[flit.header_words] + [flit.beat_words] * columns])[flit.beats - 1]


def latency_cycles(params: DmaParams) -> int:
    """Return the cycles from a descriptor of one token to its completion, raw, with nothing else under way.

    Memories and the holder of the block table answer in the cycle behind the question, and the link brings a beat in
    the cycle behind that in which it was sent. A column passes four times: it is read, gathered into a frame, written
    and read back. The first flit of the token, and that of its verdict, are packed and kept whole at the link::

        4 * columns + 2 * beats + flit_cycles(columns) + flit_cycles(1) + 64
    """
    beats = params.path.link.flit.beats
    return 4 * params.columns + 2 * beats + flit_cycles(params, params.columns) + flit_cycles(params, 1) + _FIXED_CYCLES


def interval_cycles(params: DmaParams) -> int:
    """Return the cycles between raw tokens where nothing but the end itself is what they wait for: ``columns + 4``."""
    return params.columns + _FRAME_CYCLES


def latency_formula_of(params: DmaParams) -> Formula:
    """Return the latency as text."""
    return Formula(
        formula="4 * columns + 2 * beats + token_flit + verdict_flit + 64",
        variables={
            "columns": "columns of a token; it alone is under way, and all that is asked answers in the next cycle",
            "beats": "beats of a flit",
            "token_flit": "cycles in which the first flit of a token is packed, hw.timing.dma.flit_cycles",
            "verdict_flit": "the same of a verdict",
        },
        values={
            "columns": params.columns,
            "beats": params.path.link.flit.beats,
            "token_flit": flit_cycles(params, params.columns),
            "verdict_flit": flit_cycles(params, 1),
        },
        cycles=latency_cycles(params),
    )


def interval_formula_of(params: DmaParams) -> Formula:
    """Return the interval of tokens as text."""
    return Formula(
        formula=f"columns + {_FRAME_CYCLES}",
        variables={"columns": "columns of a token, raw, over a link that takes a beat in every cycle"},
        values={"columns": params.columns},
        cycles=interval_cycles(params),
    )
