"""Parameters of one end of the DMA: frozen, validated when made, free of Amaranth."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from golden.checks import require_int
from hw.dma_params import AddressParams, PathParams, RelayoutParams, ReorderParams

__all__ = ["DmaParams"]


@dataclass(frozen=True, kw_only=True)
class DmaParams:
    """One end of the DMA: a memory and its side of a link to another memory.

    What moves is a slot of the memory's address map, so the map says whether that is the key and value of a head or one
    of the two. A column of the map is a beat of the link.

    Parameters
    ----------
    space : AddressParams
        Order in which the slots of the memory lie; a slot has a power of two bytes.
    path : PathParams
        The way to the other end; its longest payload is at least a slot.
    groups, rows : tuple of str
        Coordinates of ``space`` that name what has one open row, and the row in it.
    reorder_depth, patience : int
        Reads among which the reorder unit chooses, and how many may pass the oldest.
    regions : int
        Slots that gather at once; a power of two, at least 2.
    copies : int
        Tokens in flight, at either end alike; a power of two, at least 4.
    attempts : int
        Attempts at a token; at least 1.
    queue_depth, max_segments : int
        Descriptors accepted and not ended, and segments of each; at least 1.
    run_frames : int
        Frames that share flits before the rest of a flit is given up; 1 begins each frame with a flit of its own.
    verdict_wait_cycles : int
        Cycles that a verdict waits for others while payloads are being sent; at least 1.
    silence_cycles : int
        Cycles without a verdict, while one is due, after which the link counts as down; at least 1, and more than the
        far memory may hold a token up: dies of flash that program, collect and erase do so for milliseconds, which
        :func:`hw.presets.dma.before_flash` adds.
    memory, peer : int
        Numbers of this memory and of the one at the other end; from 0 to 255, different.

    Raises
    ------
    TypeError, ValueError
        If a part is something else, a number is no integer or impossible, or a coordinate does not exist.
    """

    space: AddressParams
    path: PathParams = field(default_factory=PathParams)
    groups: tuple[str, ...]
    rows: tuple[str, ...]
    reorder_depth: int = 16
    patience: int = 32
    regions: int = 8
    copies: int = 64
    attempts: int = 4
    queue_depth: int = 8
    max_segments: int = 8
    run_frames: int = 256
    verdict_wait_cycles: int = 2048
    silence_cycles: int = 1 << 16
    memory: int = 0
    peer: int = 1

    def __post_init__(self) -> None:
        for name, kind in (("space", AddressParams), ("path", PathParams)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be of {kind.__name__}, not {getattr(self, name)!r}")
        column_bytes, beat_bytes = self.space.space.levels[0].size, self.path.link.flit.beat_bytes
        if column_bytes != beat_bytes:
            raise ValueError(f"columns of space must have the {beat_bytes} bytes of a beat, not {column_bytes!r}")
        slot_bytes = self.space.space.slot_bytes
        if slot_bytes & (slot_bytes - 1):
            raise ValueError(f"slots of space must have a power of two bytes, not {slot_bytes!r}")
        require_int("columns of a slot", self.columns, 1, self.path.payload_beats)
        for name in (*self.groups, *self.rows):
            if name not in self.coordinates:
                raise ValueError(f"groups and rows must be of {', '.join(self.coordinates)}, not {name!r}")
        for name in ("run_frames", "verdict_wait_cycles", "silence_cycles"):
            require_int(name, getattr(self, name), 1)
        # Counters and addresses of fewer would have no bits, and Verilog has no vectors of none.
        for name in ("attempts", "queue_depth", "max_segments"):
            require_int(name, getattr(self, name), 2)
        for name, least in (("regions", 2), ("copies", 4)):
            require_int(name, getattr(self, name), least)
            if getattr(self, name) & (getattr(self, name) - 1):
                raise ValueError(f"{name} must be a power of two, not {getattr(self, name)!r}")
        for name in ("memory", "peer"):
            require_int(name, getattr(self, name), 0, 255)
        if self.memory == self.peer:
            raise ValueError(f"peer must be another memory than {self.memory}, not {self.peer!r}")
        # Made once here, so that their own checks come now.
        _ = self.reorder, self.relayout

    @property
    def columns(self) -> int:
        """Columns of a slot."""
        return self.space.columns

    @property
    def coordinates(self) -> dict[str, int]:
        """Bits of each coordinate of a column, in the order of an address."""
        space = self.space.space
        return {
            name: max(1, (size - 1).bit_length()) for name, size in space.sizes.items() if name != space.levels[0].name
        }

    @property
    def reorder(self) -> ReorderParams:
        """Command reorder unit; its tag is an address, a region and a place there."""
        bits = self.coordinates
        ticket_bits = (self.regions - 1).bit_length() + max(1, (self.columns - 1).bit_length())
        return ReorderParams(
            depth=self.reorder_depth,
            groups=prod(1 << bits[name] for name in self.groups),
            row_bits=sum(bits[name] for name in self.rows),
            tag_bits=sum(bits.values()) + ticket_bits,
            patience=self.patience,
        )

    @property
    def relayout(self) -> RelayoutParams:
        """Re-layout buffer."""
        return RelayoutParams(regions=self.regions, columns=self.columns, column_bytes=self.space.space.levels[0].size)

    @property
    def source_bits(self) -> int:
        """Bits of the number of a slot of this memory."""
        return max(1, (self.space.space.slots - 1).bit_length())

    @property
    def address_bits(self) -> int:
        """Bits of a byte's address and of a length in a descriptor; enough for some that are out of range."""
        return self.space.space.capacity_bytes.bit_length() + 1

    @property
    def copy_bits(self) -> int:
        """Bits of the number of a token in flight."""
        return self.copies.bit_length() - 1

    @property
    def verdicts(self) -> int:
        """Verdicts that one frame has room for: four bits each, in one beat."""
        return 2 * self.path.link.flit.beat_bytes

    @property
    def verdict_batch(self) -> int:
        """Verdicts that are sent without waiting for more: half of the tokens in flight, so that the others go on."""
        return min(self.verdicts, self.copies // 2)
