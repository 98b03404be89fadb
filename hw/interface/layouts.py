"""Payloads of the DMA's streams, each a function of the parameters; the first field sits at bit 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.lib import data

from golden.dma.frames import WORD_BYTES

if TYPE_CHECKING:
    from hw.dma_params import CompressionParams, FlitParams

__all__ = [
    "bytes_layout",
    "decoded_layout",
    "flit_beat_layout",
    "frame_beat_layout",
    "numbers_layout",
    "units_layout",
    "unpacked_layout",
]


def numbers_layout(params: CompressionParams) -> data.StructLayout:
    """One beat of a payload of 16-bit numbers; ``last`` ends the payload."""
    return data.StructLayout({"codes": data.ArrayLayout(16, params.lanes), "last": 1})


def decoded_layout(params: CompressionParams) -> data.StructLayout:
    """One beat of a decompressed payload; ``fault`` says that its bytes ended in the middle of a beat."""
    return data.StructLayout({"codes": data.ArrayLayout(16, params.lanes), "last": 1, "fault": 1})


def units_layout(unit_bits: int, units: int) -> data.StructLayout:
    """Up to ``units`` units of equal width, the first ``count`` of which are there; ``last`` ends the payload."""
    return data.StructLayout({"units": data.ArrayLayout(unit_bits, units), "count": range(units + 1), "last": 1})


def bytes_layout(params: CompressionParams) -> data.StructLayout:
    """One beat of compressed bytes: at most the scale and a beat of raw numbers."""
    return units_layout(8, params.word_bytes + 1)


def frame_beat_layout(params: FlitParams) -> data.StructLayout:
    """Up to a beat of words of frames, the first ``count`` of which are there; ``flush`` ends a run of frames."""
    return data.StructLayout(
        {
            "words": data.ArrayLayout(8 * WORD_BYTES, params.beat_words),
            "count": range(params.beat_words + 1),
            "flush": 1,
        }
    )


def flit_beat_layout(params: FlitParams) -> data.StructLayout:
    """One beat of a flit; ``last`` is the one with its trailer."""
    return data.StructLayout({"words": data.ArrayLayout(8 * WORD_BYTES, params.beat_words), "last": 1})


def unpacked_layout(params: FlitParams) -> data.StructLayout:
    """One beat of a frame: its header by itself, or up to a beat of its payload, which ends with ``last``."""
    return data.StructLayout(
        {
            "words": data.ArrayLayout(8 * WORD_BYTES, params.beat_words),
            "count": range(params.beat_words + 1),
            "header": 1,
            "last": 1,
        }
    )
