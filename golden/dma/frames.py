"""Frames: what one message is on a link.

A frame is, in this order, little-endian:

====== ===================================================================================
bytes  field
====== ===================================================================================
1      kind of the payload, :class:`Kind`; 0 is filler
1      0
2      bytes of the payload
4      tag, which names what the payload belongs to
n      payload, filled with zeros to a multiple of 4 bytes
====== ===================================================================================

Frames cross a link in flits (:mod:`golden.dma.flits`), which carry the check sums.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from golden.checks import require_int
from golden.dma.compression import RAW_SCALE, BlockRecord

if TYPE_CHECKING:
    from golden.dma.compression import BlockCompression

__all__ = ["HEADER", "MAX_PAYLOAD_BYTES", "WORD_BYTES", "Frame", "Kind", "compress", "decompress", "frame_bytes"]

HEADER = struct.Struct("<BBHI")
"""Kind, 0, bytes of payload, tag."""

WORD_BYTES = 4
"""What a frame's bytes are a multiple of."""

MAX_PAYLOAD_BYTES = (1 << 16) - 1
"""Bytes of payload of the longest frame."""


class Kind(IntEnum):
    """What a payload is. A compressed payload has its own kind, so that none is compressed, or expanded, twice."""

    RAW = 1
    """16-bit numbers as they lie in memory."""
    COMPRESSED = 2
    """The same numbers as blocks of :class:`golden.dma.compression.BlockCompression`."""
    STATE = 3
    """A partial state: m, l and o in fp32."""
    VERDICT = 4
    """What a receiver found of copies that arrived, told to their sender."""


@dataclass(frozen=True)
class Frame:
    """One message.

    Parameters
    ----------
    kind : Kind
        What the payload is.
    tag : int
        32 bits that the receiver gets back.
    payload : bytes
        From 1 to 65,535 bytes.

    Raises
    ------
    TypeError, ValueError
        If the kind does not exist, the tag has more bits, or the payload another length.
    """

    kind: Kind
    tag: int
    payload: bytes

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))
        require_int("tag", self.tag, 0, (1 << 32) - 1)
        require_int("payload bytes", len(self.payload), 1, MAX_PAYLOAD_BYTES)

    def to_bytes(self) -> bytes:
        """Return the bytes on the wire."""
        filler = bytes(-len(self.payload) % WORD_BYTES)
        return HEADER.pack(self.kind, 0, len(self.payload), self.tag) + self.payload + filler


def frame_bytes(payload_bytes: int) -> int:
    """Return the bytes on the wire of a frame with so much payload: ``8 + 4 * ceil(payload_bytes / 4)``."""
    return HEADER.size + payload_bytes + -payload_bytes % WORD_BYTES


def compress(frame: Frame, compression: BlockCompression) -> Frame:
    """Return a raw frame with its numbers compressed.

    Raises
    ------
    ValueError
        If the frame is not raw, so that nothing is compressed twice, or its payload is no whole number of codes.
    """
    if frame.kind is not Kind.RAW or len(frame.payload) % 2:
        raise ValueError(
            f"frame must be RAW with whole 16-bit numbers, not {frame.kind.name} of {len(frame.payload)} bytes"
        )
    parts: list[bytes] = []
    for record in compression.encode(np.frombuffer(frame.payload, "<u2")):
        size = 2 if record.scale == RAW_SCALE else 1
        parts.append(bytes([record.scale]) + b"".join(code.to_bytes(size, "little") for code in record.codes))
    return replace(frame, kind=Kind.COMPRESSED, payload=b"".join(parts))


def decompress(frame: Frame, compression: BlockCompression, numbers: int) -> Frame:
    """Return a compressed frame with its ``numbers`` numbers in 16 bits again.

    Raises
    ------
    ValueError
        If the frame is not compressed, or holds another number of numbers.
    """
    if frame.kind is not Kind.COMPRESSED:
        raise ValueError(f"frame must be COMPRESSED, not {frame.kind.name}")
    records: list[BlockRecord] = []
    position, left = 0, numbers
    while left:
        if position >= len(frame.payload):
            break
        scale = frame.payload[position]
        size, count = 2 if scale == RAW_SCALE else 1, min(left, compression.block)
        codes = np.frombuffer(frame.payload[position + 1 : position + 1 + size * count], f"<u{size}")
        if codes.size != count:
            break
        records.append(BlockRecord(scale, tuple(int(code) for code in codes)))
        position += 1 + size * count
        left -= count
    if left or position != len(frame.payload):
        raise ValueError(f"payload must hold {numbers} numbers, its {len(frame.payload)} bytes do not")
    return replace(frame, kind=Kind.RAW, payload=compression.decode(records).astype("<u2").tobytes())
