"""Copying of one token over a link, with its check at the destination and as many attempts as are allowed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from golden.checks import require_int
from golden.dma.descriptors import Status
from golden.dma.flits import CrcError
from golden.dma.frames import Frame, Kind, compress, decompress
from golden.dma.memory import UncorrectableError
from golden.dma.wire import LinkDownError, Wire

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from golden.dma.compression import BlockCompression
    from golden.dma.flits import FlitFormat
    from golden.dma.memory import Memory
    from golden.kv.block_table import Place

__all__ = ["Copier"]


class Copier:
    """Bring the bytes of a token from a slot to another.

    Parameters
    ----------
    memories : mapping of str to Memory
        The memories.
    wire : Wire
        The link between them.
    token_bytes : int
        Bytes of a token, key and value; a multiple of 2, and no more than a slot of any memory.
    compression : BlockCompression
        Of copies that ask for it.
    flits : FlitFormat
        Of the link.
    attempts : int
        Attempts at a token.

    Attributes
    ----------
    retries : int
        Attempts behind the first of each token so far.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or out of range.
    """

    def __init__(
        self,
        memories: Mapping[str, Memory],
        wire: Wire,
        *,
        token_bytes: int,
        compression: BlockCompression,
        flits: FlitFormat,
        attempts: int,
    ) -> None:
        require_int("token_bytes", token_bytes, 2, min(memory.slot_bytes for memory in memories.values()))
        if token_bytes % 2:
            raise ValueError(f"token_bytes must be a multiple of 2, not {token_bytes!r}")
        require_int("attempts", attempts, 1)
        self.memories = memories
        self.wire = wire
        self.token_bytes = token_bytes
        self.compression = compression
        self.flits = flits
        self.attempts = attempts
        self.retries = 0

    def copy_until_verified(
        self, sources: Sequence[Place], place: Place, *, tag: int, compressed: bool
    ) -> Generator[None, None, Status]:
        """Copy a token to ``place`` and verify it there, each attempt from the next of ``sources``.

        Yields between steps. The status is that of the last attempt: OK, READ_ERROR, LINK_DOWN or CRC_MISMATCH.
        """
        status = Status.OK
        for attempt in range(self.attempts):
            self.retries += attempt > 0
            source = sources[attempt % len(sources)]
            status = yield from self._copy(source, place, tag=tag, compressed=compressed)
            if status is Status.OK:
                return status
            yield
        return status

    def _copy(self, source: Place, place: Place, *, tag: int, compressed: bool) -> Generator[None, None, Status]:
        memory = self.memories[place.device]
        try:
            payload = self.memories[source.device].read(source.slot)[: self.token_bytes]
        except UncorrectableError:
            return Status.READ_ERROR
        frame = Frame(Kind.RAW, tag, payload)
        if compressed:
            frame = compress(frame, self.compression)
        yield
        try:
            received = self._over_the_link(frame)
        except LinkDownError as error:
            # The worst that can be: what did arrive was written.
            memory.write(place.slot, error.received[: self.token_bytes])
            return Status.LINK_DOWN
        except CrcError:
            return Status.CRC_MISMATCH
        if received.kind is Kind.COMPRESSED:
            received = decompress(received, self.compression, self.token_bytes // 2)
        yield
        memory.write(place.slot, received.payload[: self.token_bytes // 2])
        yield
        memory.write(place.slot, received.payload)
        yield
        try:
            written = memory.read(place.slot)[: self.token_bytes]
        except UncorrectableError:
            return Status.READ_ERROR
        return Status.OK if zlib.crc32(written) == zlib.crc32(received.payload) else Status.CRC_MISMATCH

    def _over_the_link(self, frame: Frame) -> Frame:
        arrived = self.wire.carry(b"".join(self.flits.pack([frame])))
        size = self.flits.flit_bytes
        (received,) = self.flits.unpack([arrived[start : start + size] for start in range(0, len(arrived), size)])
        return received
