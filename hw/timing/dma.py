"""Cycles of an end of the DMA without stalls: they equal the RTL (``tests/rtl/test_dma.py``)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from hw.timing.flits import packer_cycles
from hw.timing.formula import Formula

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams
    from hw.dma_params import FlitParams

__all__ = [
    "flit_cycles",
    "frame_cycles",
    "interval_cycles",
    "interval_formula_of",
    "latency_cycles",
    "latency_formula_of",
    "link_interval",
]

_FIXED_CYCLES = 56
"""Registers on the way there and back: 10 to the first read and 10 from the last column to the link, 8 to the first
write, 3 to the last column read back, 11 to the link, 11 to the switch and 3 to the completion."""

_FRAME_CYCLES = 2
"""Cycles of a frame in which no column of it is written: its header comes, and its slot is looked up."""


def flit_cycles(params: DmaParams, columns: int) -> int:
    """Return the cycles from the header of a frame of so many columns to the last beat of its first flit.

    The recurrence of :func:`hw.timing.flits.packer_cycles`.
    """
    return _packed(params, columns)[0]


def frame_cycles(params: DmaParams, columns: int) -> int:
    """Return the cycles from the header of a frame of so many columns to the write of its last column at the far end.

    A flit is packed whole before it is sent, and has come whole before it is read. A column is written when the beat
    with its last word is read, one a cycle; the first waits a cycle more, in which its slot is looked up::

        sent[f]    = max(packed[f], sent[f - 1] + beats)
        written[0] = sent[f] + beats + b + 1                      its last word in beat b of flit f
        written[k] = max(written[k - 1] + 1, sent[f] + beats + b)
    """
    flit = params.path.link.flit
    beats, flit_words = flit.beats, _flit_words(flit)
    sent: list[int] = []
    for packed in _packed(params, columns):
        sent.append(max(packed, sent[-1] + beats) if sent else packed)
    written = 0
    for place in range(1, columns + 1):
        number, word = divmod(flit.header_words + place * flit.beat_words - 1, flit_words)
        there = sent[number] + beats + word // flit.beat_words
        written = there + 1 if place == 1 else max(written + 1, there)
    return written


def _packed(params: DmaParams, columns: int) -> list[int]:
    """Return the cycle of the last beat of each flit of a frame."""
    flit = params.path.link.flit
    return packer_cycles(flit, [[flit.header_words] + [flit.beat_words] * columns])[flit.beats - 1 :: flit.beats]


def latency_cycles(params: DmaParams) -> int:
    """Return the cycles from a descriptor of one token to its completion, raw, with nothing else under way.

    Memories and the holder of the block table answer in the cycle behind the question, and the link brings a beat in
    the cycle behind that in which it was sent. A column passes four times: it is read, gathered into a frame, sent and
    written, and read back. The flit of the verdict is packed and kept whole at the link::

        3 * columns + frame_cycles(columns) + beats + flit_cycles(1) + 56
    """
    beats = params.path.link.flit.beats
    passes = 3 * params.columns + frame_cycles(params, params.columns)
    return passes + beats + flit_cycles(params, 1) + _FIXED_CYCLES


def link_interval(params: DmaParams) -> Fraction:
    """Return the beats of the link that a raw token takes where frames share flits, verdicts aside."""
    flit = params.path.link.flit
    return Fraction(_frame_words(params) * flit.beats, _flit_words(flit))


def _frame_words(params: DmaParams) -> int:
    """Return the words of a raw token's frame."""
    flit = params.path.link.flit
    return flit.header_words + flit.beat_words * params.columns


def _flit_words(flit: FlitParams) -> int:
    """Return the words of frames in a flit."""
    return (flit.beats - 1) * flit.beat_words + flit.last_words


def interval_cycles(params: DmaParams) -> int:
    """Return the cycles between raw tokens where the end and a link of a beat a cycle are what they wait for.

    ``max(columns + 2, ceil(frame_words * beats / flit_words))``; where the second is more, flits bring some of them a
    cycle sooner. Where the first is, a column that lies in two flits holds up some of them by a cycle: 14 tokens of
    512 B in flits of 256 take 2 cycles more than that.
    """
    return max(params.columns + _FRAME_CYCLES, ceil(link_interval(params)))


def latency_formula_of(params: DmaParams) -> Formula:
    """Return the latency as text."""
    return Formula(
        formula=f"3 * columns + frame + beats + verdict_flit + {_FIXED_CYCLES}",
        variables={
            "columns": "columns of a token; it alone is under way, and all that is asked answers in the next cycle",
            "frame": "cycles in which the token's frame passes the link, hw.timing.dma.frame_cycles",
            "beats": "beats of a flit",
            "verdict_flit": "cycles in which the flit of a verdict is packed, hw.timing.dma.flit_cycles",
        },
        values={
            "columns": params.columns,
            "frame": frame_cycles(params, params.columns),
            "beats": params.path.link.flit.beats,
            "verdict_flit": flit_cycles(params, 1),
        },
        cycles=latency_cycles(params),
    )


def interval_formula_of(params: DmaParams) -> Formula:
    """Return the interval of tokens as text."""
    flit = params.path.link.flit
    return Formula(
        formula=f"max(columns + {_FRAME_CYCLES}, ceil(frame_words * beats / flit_words))",
        variables={
            "columns": "columns of a token, raw, over a link that takes a beat in every cycle",
            "frame_words": "words of its frame",
            "beats": "beats of a flit",
            "flit_words": "words of frames in a flit",
        },
        values={
            "columns": params.columns,
            "frame_words": _frame_words(params),
            "beats": flit.beats,
            "flit_words": _flit_words(flit),
        },
        cycles=interval_cycles(params),
    )
