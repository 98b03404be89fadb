"""Flits: the unit that a link carries, checks and sends again.

A flit is, in this order, little-endian:

======== =================================================================================
bytes    field
======== =================================================================================
n - 8    payload
2        number of the flit, counting from 0 modulo 2^16
2        0
4        CRC-32 (IEEE 802.3, clause 3.2.9) of all bytes of the flit, these four taken as 0
======== =================================================================================

The payloads of successive flits are one run of bytes in which frame follows frame, whatever the borders of flits. Where
a run of frames ends the rest of its last flit is zeros, and the next frame begins with a flit.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.checks import require_int
from golden.dma.frames import HEADER, WORD_BYTES, Frame, Kind, frame_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["NUMBERS", "TRAILER", "CrcError", "FlitFormat"]

TRAILER = struct.Struct("<HHI")
"""Number of the flit, 0, check sum."""

NUMBERS = 1 << 16
"""Numbers of flits before they repeat."""


class CrcError(ValueError):
    """A flit did not arrive as it was sent, or in its turn."""


@dataclass(frozen=True)
class FlitFormat:
    """Flits of one link.

    Parameters
    ----------
    flit_bytes : int
        Bytes of a flit, trailer included; a multiple of 4, at least 12.

    Raises
    ------
    TypeError, ValueError
        If the number is no integer or impossible.
    """

    flit_bytes: int

    def __post_init__(self) -> None:
        require_int("flit_bytes", self.flit_bytes, TRAILER.size + WORD_BYTES)
        if self.flit_bytes % WORD_BYTES:
            raise ValueError(f"flit_bytes must be a multiple of {WORD_BYTES}, not {self.flit_bytes!r}")

    @property
    def payload_bytes(self) -> int:
        """Bytes of frames that a flit carries."""
        return self.flit_bytes - TRAILER.size

    def flit(self, payload: bytes, number: int) -> bytes:
        """Return one flit; a short payload is filled with zeros.

        Raises
        ------
        TypeError, ValueError
            If the payload has more bytes than fit, or the number is no integer of 16 bits.
        """
        require_int("payload bytes", len(payload), 0, self.payload_bytes)
        require_int("number", number, 0, NUMBERS - 1)
        body = payload + bytes(self.payload_bytes - len(payload))
        crc = zlib.crc32(body + TRAILER.pack(number, 0, 0))
        return body + TRAILER.pack(number, 0, crc)

    def payload(self, flit: bytes, number: int) -> bytes:
        """Return the payload of a flit that should have a number.

        Raises
        ------
        CrcError
            If the flit has another length, another check sum or another number.
        """
        if len(flit) != self.flit_bytes:
            raise CrcError(f"flit must have {self.flit_bytes} bytes, not {len(flit)}")
        found, zero, crc = TRAILER.unpack(flit[self.payload_bytes :])
        wanted = zlib.crc32(flit[: self.payload_bytes] + TRAILER.pack(found, zero, 0))
        if crc != wanted:
            raise CrcError(f"check sum must be {wanted:#010x}, not {crc:#010x}")
        if found != number:
            raise CrcError(f"number of the flit must be {number}, not {found}")
        return flit[: self.payload_bytes]

    def pack(self, frames: Iterable[Frame], *, first: int = 0) -> list[bytes]:
        """Return the flits that carry a run of frames, numbered from ``first`` on."""
        wire = b"".join(frame.to_bytes() for frame in frames)
        starts = range(0, len(wire), self.payload_bytes)
        return [
            self.flit(wire[start : start + self.payload_bytes], (first + number) % NUMBERS)
            for number, start in enumerate(starts)
        ]

    def unpack(self, flits: Sequence[bytes], *, first: int = 0) -> list[Frame]:
        """Return the frames that flits carry, numbered from ``first`` on.

        Raises
        ------
        CrcError
            If a flit is damaged or out of its turn, a frame does not end, or is of no known kind.
        """
        payloads = [self.payload(flit, (first + number) % NUMBERS) for number, flit in enumerate(flits)]
        wire = b"".join(payloads)
        frames: list[Frame] = []
        position = 0
        while position < len(wire):
            if wire[position] == 0:
                position += self.payload_bytes - position % self.payload_bytes
                continue
            header = wire[position : position + HEADER.size]
            kind, _, length, tag = HEADER.unpack(header + bytes(HEADER.size - len(header)))
            start, end = position + HEADER.size, position + frame_bytes(length)
            if len(header) < HEADER.size or end > len(wire) or not length or kind not in list(Kind):
                raise CrcError(f"frame at byte {position} must be of a known kind and end in time, it is not")
            frames.append(Frame(Kind(kind), tag, wire[start : start + length]))
            position = end
        return frames

    def flits_alone(self, payloads_bytes: Iterable[int]) -> int:
        """Return the flits that frames of so many bytes of payload take if each begins with a flit of its own."""
        return sum(-(-frame_bytes(size) // self.payload_bytes) for size in payloads_bytes)
