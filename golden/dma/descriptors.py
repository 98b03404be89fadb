"""What the DMA is told and what it answers: descriptors, completions, and the reasons to refuse."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from golden.checks import require_int

if TYPE_CHECKING:
    from golden.kv.block_table import TokenAddress

__all__ = ["Completion", "Descriptor", "Operation", "Segment", "Status", "check_segments"]


class Operation(IntEnum):
    """What becomes of the copies that a token had before."""

    MOVE = 1
    """All but the one at the destination are given up."""
    COPY = 2
    """They stay; the one at the destination is read from now on."""


class Status(IntEnum):
    """How a descriptor ended. All but OK leave every token that is not counted as done where it was."""

    OK = 0
    ZERO_LENGTH = 1
    """No tokens, or no bytes."""
    UNMAPPED = 2
    """An address of no token, or beyond the end of a memory."""
    MISALIGNED = 3
    """An address or a length that is no multiple of the granule."""
    OVERLAP = 4
    """A token, or a byte, named twice."""
    SAME_PLACE = 5
    """The token is read from the destination already, or source and destination share bytes."""
    QUEUE_FULL = 6
    """Not accepted; it may be given again."""
    DESTINATION_FULL = 7
    """No free slot."""
    LINK_DOWN = 8
    """The link failed at every attempt, last by going down."""
    CRC_MISMATCH = 9
    """Bytes were damaged at every attempt, last on the way or at the destination."""
    READ_ERROR = 10
    """No copy could be read, last for an uncorrectable error."""
    RESET = 11
    """Cut short by a reset."""


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """Bring tokens to one memory.

    Parameters
    ----------
    tag : int
        32 bits that come back in the completion.
    operation : Operation
        Move or copy.
    addresses : tuple of TokenAddress
        Any tokens, layers and KV heads, each once.
    destination : str
        Memory where they are to be read from.
    compressed : bool
        Whether they cross the link in 8 bits.

    Raises
    ------
    TypeError, ValueError
        If the tag is no integer of 32 bits.
    """

    tag: int
    operation: Operation
    addresses: tuple[TokenAddress, ...]
    destination: str
    compressed: bool = False

    def __post_init__(self) -> None:
        require_int("tag", self.tag, 0, (1 << 32) - 1)


@dataclass(frozen=True)
class Completion:
    """End of a descriptor.

    Parameters
    ----------
    tag : int
        The descriptor's.
    status : Status
        How it ended.
    done : int
        Tokens, from the front of the list, that are read from the destination now.
    """

    tag: int
    status: Status
    done: int


@dataclass(frozen=True)
class Segment:
    """Consecutive bytes of one memory and where they go.

    Parameters
    ----------
    source, destination : int
        First byte at either end.
    length : int
        Bytes.
    """

    source: int
    destination: int
    length: int


def check_segments(
    segments: tuple[Segment, ...], *, granule_bytes: int, source_bytes: int, destination_bytes: int, same_memory: bool
) -> Status:
    """Return the first reason not to carry out a gather or scatter list, in the order of the numbers of Status, or OK.

    Parameters
    ----------
    segments : tuple of Segment
        The list.
    granule_bytes : int
        What addresses and lengths must be multiples of.
    source_bytes, destination_bytes : int
        Bytes of the two memories.
    same_memory : bool
        Whether they are one.
    """
    if not segments or any(part.length <= 0 for part in segments):
        return Status.ZERO_LENGTH
    for part in segments:
        ends = ((part.source, source_bytes), (part.destination, destination_bytes))
        if any(not 0 <= start <= size - part.length for start, size in ends):
            return Status.UNMAPPED
    if any(number % granule_bytes for part in segments for number in (part.source, part.destination, part.length)):
        return Status.MISALIGNED
    written = sorted((part.destination, part.destination + part.length) for part in segments)
    if any(end > start for (_, end), (start, _) in pairwise(written)):
        return Status.OVERLAP
    read = [(part.source, part.source + part.length) for part in segments]
    if same_memory and any(a < end and start < b for a, b in read for start, end in written):
        return Status.SAME_PLACE
    return Status.OK
