"""Payloads of the streams of the DMA's ends, each a function of the parameters; the first field sits at bit 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.lib import data, enum

from hw.interface.layouts import column_address_layout, region_bits

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams

__all__ = [
    "SLOT_BITS",
    "MessageKind",
    "answer_layout",
    "arrival_layout",
    "ask_layout",
    "completion_layout",
    "fetch_address_layout",
    "fetch_layout",
    "fetched_layout",
    "held_layout",
    "message_layout",
    "outcome_layout",
    "outgoing_layout",
    "read_layout",
    "readback_layout",
    "segment_layout",
    "token_layout",
    "write_layout",
]

SLOT_BITS = 32
"""Bits of the number of a slot at the other end: what the tag of a frame holds."""

_STATUS_BITS = 4


class MessageKind(enum.Enum, shape=2):
    """What the holder of the block table is told of a token."""

    SWITCH = 0
    """Its copy at the destination is verified: it is the one that is read from now on."""
    RELEASE = 1
    """Its copy at the source is superfluous, and to be given up once nobody reads it."""
    ABANDON = 2
    """The answer is not made use of: the slot that was reserved is free, or the copy that was there is as it was."""


def segment_layout(params: DmaParams) -> data.StructLayout:
    """One segment of a descriptor: consecutive bytes of this memory. ``last`` ends the descriptor.

    ``tag``, ``move`` (or copy), ``compressed`` and ``destination`` (number of a memory) are those of the descriptor and
    count in its last segment.
    """
    return data.StructLayout(
        {
            "tag": 32,
            "move": 1,
            "compressed": 1,
            "destination": 8,
            "source": params.address_bits,
            "length": params.address_bits,
            "last": 1,
        }
    )


def completion_layout(params: DmaParams) -> data.StructLayout:
    """End of a descriptor: status (:class:`golden.dma.descriptors.Status`) and tokens done, from the front."""
    return data.StructLayout({"tag": 32, "status": _STATUS_BITS, "done": params.address_bits})


def token_layout(params: DmaParams) -> data.StructLayout:
    """One token of a descriptor and its slot; ``ends`` is the descriptor's last."""
    return data.StructLayout({"tag": 32, "move": 1, "compressed": 1, "slot": params.source_bits, "ends": 1})


def ask_layout(params: DmaParams) -> data.StructLayout:
    """Question to the holder of the block table, where the token in a slot of this memory may go."""
    return data.StructLayout({"tag": 32, "slot": params.source_bits})


def answer_layout() -> data.StructLayout:
    """Answer: a slot reserved at the destination, or with ``there`` that of a valid copy, or another status than OK."""
    return data.StructLayout({"status": _STATUS_BITS, "there": 1, "slot": SLOT_BITS})


def message_layout(params: DmaParams) -> data.StructLayout:
    """Message to the holder of the block table: what becomes of a token (:class:`MessageKind`)."""
    return data.StructLayout({"kind": MessageKind, "tag": 32, "source": params.source_bits, "slot": SLOT_BITS})


def read_layout(params: DmaParams) -> data.StructLayout:
    """Order to read a token and send it."""
    return data.StructLayout(
        {"copy": params.copy_bits, "source": params.source_bits, "slot": SLOT_BITS, "compressed": 1}
    )


def outcome_layout(params: DmaParams) -> data.StructLayout:
    """How an order to read and send a token ended."""
    return data.StructLayout({"copy": params.copy_bits, "status": _STATUS_BITS})


def held_layout(params: DmaParams) -> data.StructLayout:
    """Token that is to leave the ring: ``reserved`` says that its answer was OK, ``quiet`` that no write is under way.

    The other fields are those of its token, its answer and its outcome.
    """
    return data.StructLayout(
        {
            "tag": 32,
            "move": 1,
            "ends": 1,
            "source": params.source_bits,
            "slot": SLOT_BITS,
            "reserved": 1,
            "quiet": 1,
            "status": _STATUS_BITS,
        }
    )


def _ticket(params: DmaParams) -> dict[str, int]:
    return {"region": region_bits(params.relayout), "place": max(1, (params.columns - 1).bit_length())}


def fetch_address_layout(params: DmaParams) -> data.StructLayout:
    """Address of a column of this memory."""
    shape = column_address_layout(params.space)["coordinates"].shape
    assert isinstance(shape, data.StructLayout)
    return shape


def fetch_layout(params: DmaParams) -> data.StructLayout:
    """Read of a column of this memory; ``region`` and ``place`` come back with it."""
    return data.StructLayout({"address": fetch_address_layout(params), **_ticket(params)})


def fetched_layout(params: DmaParams) -> data.StructLayout:
    """Column that was read; ``error`` says that its bytes are lost."""
    return data.StructLayout({"column": _column(params), **_ticket(params), "error": 1})


def write_layout(params: DmaParams) -> data.StructLayout:
    """Column to write into this memory."""
    return data.StructLayout({"address": fetch_address_layout(params), "column": _column(params)})


def readback_layout(params: DmaParams) -> data.StructLayout:
    """Column that was written, as the memory has it."""
    return data.StructLayout({"column": _column(params), "error": 1})


def _column(params: DmaParams) -> data.ArrayLayout:
    return data.ArrayLayout(8, params.relayout.column_bytes)


def outgoing_layout(params: DmaParams) -> data.StructLayout:
    """Beat of a frame to send; kind, tag and flush are the same in all beats of one."""
    codes = data.ArrayLayout(16, params.path.compression.lanes)
    return data.StructLayout({"codes": codes, "last": 1, "kind": 8, "tag": 32, "flush": 1})


def arrival_layout(params: DmaParams) -> data.StructLayout:
    """Beat of a frame that arrived; the tag is the same in all beats of one."""
    codes = data.ArrayLayout(16, params.path.compression.lanes)
    return data.StructLayout({"codes": codes, "last": 1, "fault": 1, "tag": 32})
