"""Parameters of the DMA's units: frozen, validated when made, free of Amaranth."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from golden.checks import require_int
from golden.dma.compression import BlockCompression
from golden.dma.flits import NUMBERS, TRAILER, FlitFormat
from golden.dma.frames import HEADER, MAX_PAYLOAD_BYTES, WORD_BYTES
from golden.formats import FP16
from golden.kv.address_map import AddressMap

__all__ = [
    "AddressParams",
    "CompressionParams",
    "FlitParams",
    "LinkParams",
    "PathParams",
    "RelayoutParams",
    "ReorderParams",
]


@dataclass(frozen=True, kw_only=True)
class CompressionParams:
    """Compressor and decompressor.

    Parameters
    ----------
    compression : BlockCompression
        What they compute.
    lanes : int
        Numbers of a beat; a power of two from 2 to 64 that divides the block.

    Raises
    ------
    TypeError, ValueError
        If ``compression`` is something else, or ``lanes`` is no integer or impossible.
    """

    compression: BlockCompression = field(default_factory=lambda: BlockCompression(fmt=FP16, block=32))
    lanes: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.compression, BlockCompression):
            raise TypeError(f"compression must be a BlockCompression, not {self.compression!r}")
        require_int("lanes", self.lanes, 2, 64)
        if self.lanes & (self.lanes - 1):
            raise ValueError(f"lanes must be a power of two, not {self.lanes!r}")
        if self.compression.block % self.lanes:
            raise ValueError(f"lanes must divide the block of {self.compression.block} numbers, not {self.lanes!r}")

    @property
    def block_beats(self) -> int:
        """Beats of a whole block."""
        return self.compression.block // self.lanes

    @property
    def word_bytes(self) -> int:
        """Bytes of a beat of 16-bit numbers."""
        return 2 * self.lanes


@dataclass(frozen=True, kw_only=True)
class FlitParams:
    """Packer and unpacker of flits.

    Parameters
    ----------
    flits : FlitFormat
        Format of the link's flits.
    beat_bytes : int
        Bytes of a beat, of frames and of flits; a multiple of 4, at least 8, that divides a flit and is less than it.

    Raises
    ------
    TypeError, ValueError
        If ``flits`` is something else, or ``beat_bytes`` is no integer or impossible.
    """

    flits: FlitFormat = field(default_factory=lambda: FlitFormat(256))
    beat_bytes: int = 32

    def __post_init__(self) -> None:
        if not isinstance(self.flits, FlitFormat):
            raise TypeError(f"flits must be a FlitFormat, not {self.flits!r}")
        require_int("beat_bytes", self.beat_bytes, TRAILER.size, self.flits.flit_bytes // 2)
        if self.beat_bytes % WORD_BYTES or self.flits.flit_bytes % self.beat_bytes:
            raise ValueError(
                f"beat_bytes must be a multiple of {WORD_BYTES} that divides the flit of {self.flits.flit_bytes}, "
                f"not {self.beat_bytes!r}"
            )

    @property
    def beats(self) -> int:
        """Beats of a flit."""
        return self.flits.flit_bytes // self.beat_bytes

    @property
    def beat_words(self) -> int:
        """Words of a beat."""
        return self.beat_bytes // WORD_BYTES

    @property
    def last_words(self) -> int:
        """Words of a flit's last beat that are payload."""
        return self.beat_words - TRAILER.size // WORD_BYTES

    @property
    def header_words(self) -> int:
        """Words of a frame's header."""
        return HEADER.size // WORD_BYTES


@dataclass(frozen=True, kw_only=True)
class AddressParams:
    """Address generation.

    Parameters
    ----------
    space : AddressMap
        Order in which slots lie. Its first level are the bytes of a column. All levels but the slowest have sizes that
        are powers of two: an address is then a slot's number with its bits in other places.

    Raises
    ------
    TypeError, ValueError
        If ``space`` is something else, a slot is less than a column, or another size is no power of two.
    """

    space: AddressMap

    def __post_init__(self) -> None:
        if not isinstance(self.space, AddressMap):
            raise TypeError(f"space must be an AddressMap, not {self.space!r}")
        for level in self.space.levels[:-1]:
            if level.size & (level.size - 1):
                raise ValueError(f"size of level {level.name} must be a power of two, not {level.size!r}")

    @property
    def description(self) -> str:
        """The order in a few words."""
        return f"{self.space.name}, slots of {self.space.slot_bytes} bytes"

    @property
    def columns(self) -> int:
        """Columns of a slot."""
        return self.space.slot_bytes // self.space.levels[0].size

    @property
    def slot_bits(self) -> int:
        """Bits of a slot's number, one more than needed, so that a number out of range can be given."""
        return (self.space.slots - 1).bit_length() + 1


@dataclass(frozen=True, kw_only=True)
class ReorderParams:
    """Command reorder unit.

    Parameters
    ----------
    depth : int
        Commands among which it chooses; at least 1.
    groups : int
        Bank groups, or whatever has one open row; at least 1.
    row_bits, tag_bits : int
        Width of a row's number, and of what travels with a command.
    patience : int
        Commands that may go before the oldest one while it waits as the oldest; at least 0.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or too small.
    """

    depth: int = 16
    groups: int = 16
    row_bits: int = 14
    tag_bits: int = 16
    patience: int = 32

    def __post_init__(self) -> None:
        for item in fields(self):
            require_int(item.name, getattr(self, item.name), 0 if item.name == "patience" else 1)


@dataclass(frozen=True, kw_only=True)
class RelayoutParams:
    """Re-layout buffer.

    Parameters
    ----------
    regions : int
        Slots that gather at once; at least 2.
    columns : int
        Columns of a slot; at least 1.
    column_bytes : int
        Bytes of a column; at least 1.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or too small.
    """

    regions: int = 8
    columns: int = 16
    column_bytes: int = 32

    def __post_init__(self) -> None:
        require_int("regions", self.regions, 2)
        require_int("columns", self.columns, 1)
        require_int("column_bytes", self.column_bytes, 1)


@dataclass(frozen=True, kw_only=True)
class LinkParams:
    """Both ends of a link.

    Parameters
    ----------
    flit : FlitParams
        Flits, and bytes of a beat.
    window : int
        Flits that the receiver has room for, and the sender keeps to send again; a power of two from 2 to 16,384.
    timeout_cycles : int
        Cycles without an acknowledgement that tells the sender something new after which it sends again; at least 1,
        and more than the link's round trip and a flit take.
    attempts : int
        Times that it sends again before it calls the link down; at least 1.

    Raises
    ------
    TypeError, ValueError
        If ``flit`` is something else, or a number is no integer or impossible.
    """

    flit: FlitParams = field(default_factory=FlitParams)
    window: int = 8
    timeout_cycles: int = 1024
    attempts: int = 4

    def __post_init__(self) -> None:
        if not isinstance(self.flit, FlitParams):
            raise TypeError(f"flit must be a FlitParams, not {self.flit!r}")
        require_int("window", self.window, 2, NUMBERS // 4)
        if self.window & (self.window - 1):
            raise ValueError(f"window must be a power of two, not {self.window!r}")
        require_int("timeout_cycles", self.timeout_cycles, 1)
        require_int("attempts", self.attempts, 1)

    @property
    def number_bits(self) -> int:
        """Bits of a flit's number."""
        return NUMBERS.bit_length() - 1


@dataclass(frozen=True, kw_only=True)
class PathParams:
    """The way of payloads from one memory's side of a link to the other's.

    Parameters
    ----------
    compression : CompressionParams
        Of payloads that are sent in 8 bits; a beat of its numbers has the bytes of a beat of the link.
    link : LinkParams
        The link.
    payload_beats : int
        Beats of numbers of the longest payload; at least 1, and no more than a frame takes.

    Raises
    ------
    TypeError, ValueError
        If a part is something else, the beats differ, or the number is no integer or impossible.
    """

    compression: CompressionParams = field(default_factory=CompressionParams)
    link: LinkParams = field(default_factory=LinkParams)
    payload_beats: int = 32

    def __post_init__(self) -> None:
        if not isinstance(self.compression, CompressionParams):
            raise TypeError(f"compression must be a CompressionParams, not {self.compression!r}")
        if not isinstance(self.link, LinkParams):
            raise TypeError(f"link must be a LinkParams, not {self.link!r}")
        if self.compression.word_bytes != self.link.flit.beat_bytes:
            raise ValueError(
                f"lanes of compression must fill {self.link.flit.beat_bytes} bytes, not {self.compression.lanes!r}"
            )
        # A block that can't be compressed has its scale beside its numbers.
        require_int("payload_beats", self.payload_beats, 1, MAX_PAYLOAD_BYTES // (self.compression.word_bytes + 1))

    @property
    def description(self) -> str:
        """The way in a few words."""
        compression, flit = self.compression.compression, self.link.flit
        return (
            f"{compression.fmt.name} in blocks of {compression.block}, {flit.flits.flit_bytes}-byte flits in beats of "
            f"{flit.beat_bytes}, {self.link.window} of them ahead"
        )

    @property
    def buffer_beats(self) -> int:
        """Beats of words that the longest payload takes, every block with its scale."""
        blocks = -(-self.payload_beats // self.compression.block_beats)
        return -(-(self.payload_beats * self.compression.word_bytes + blocks) // self.compression.word_bytes)
