"""Payloads of the DMA's streams, each a function of the parameters; the first field sits at bit 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.lib import data

from golden.dma.frames import WORD_BYTES

if TYPE_CHECKING:
    from hw.dma_params import (
        AddressParams,
        CompressionParams,
        FlitParams,
        LinkParams,
        RelayoutParams,
        ReorderParams,
    )

__all__ = [
    "acknowledgement_layout",
    "bytes_layout",
    "column_address_layout",
    "decoded_layout",
    "flit_beat_layout",
    "frame_beat_layout",
    "frame_command_layout",
    "frame_head_layout",
    "gathered_layout",
    "numbers_layout",
    "placed_column_layout",
    "read_command_layout",
    "region_bits",
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


def read_command_layout(params: ReorderParams) -> data.StructLayout:
    """Read of one row; ``tag`` names it to whoever sent it."""
    return data.StructLayout({"group": range(params.groups), "row": params.row_bits, "tag": params.tag_bits})


def column_address_layout(params: AddressParams) -> data.StructLayout:
    """Address of a column; ``last`` is a slot's last, ``unmapped`` says that there is no such slot."""
    sizes = dict(params.space.sizes)
    del sizes[params.space.levels[0].name]
    coordinates = data.StructLayout({name: max(1, (size - 1).bit_length()) for name, size in sizes.items()})
    return data.StructLayout({"coordinates": coordinates, "last": 1, "unmapped": 1})


def region_bits(params: RelayoutParams) -> int:
    """Return the bits of a region's number."""
    return (params.regions - 1).bit_length()


def placed_column_layout(params: RelayoutParams) -> data.StructLayout:
    """Column of a slot, the region that it is for, and its place there."""
    return data.StructLayout(
        {
            "column": data.ArrayLayout(8, params.column_bytes),
            "region": region_bits(params),
            "place": range(max(2, params.columns)),
        }
    )


def gathered_layout(params: RelayoutParams) -> data.StructLayout:
    """Column of a whole region; ``last`` is its last."""
    return data.StructLayout(
        {"column": data.ArrayLayout(8, params.column_bytes), "last": 1, "region": region_bits(params)}
    )


def acknowledgement_layout(params: LinkParams) -> data.StructLayout:
    """News of the receiver for the sender; ``check`` holds all other bits inverted.

    ``freed`` and ``expected`` are numbers of flits: all before ``freed`` have left the receiver, all before
    ``expected`` have arrived. ``again`` asks for ``expected`` and all behind it once more.
    """
    bits = params.number_bits
    return data.StructLayout({"freed": bits, "expected": bits, "again": 1, "check": 2 * bits + 1})


def frame_command_layout() -> data.StructLayout:
    """Content of a frame's header beside its length; ``flush`` says that no frame is to follow in the same flit."""
    return data.StructLayout({"kind": 8, "tag": 32, "flush": 1})


def frame_head_layout() -> data.StructLayout:
    """Header of a frame that arrived; ``length`` is the bytes of its payload."""
    return data.StructLayout({"kind": 8, "length": 16, "tag": 32})
