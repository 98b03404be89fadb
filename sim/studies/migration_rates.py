"""Rates of the DMA as they were measured on Verilated ends, beside what the format of flits leaves of a link.

A row is a point of ``hw/tables/dma.json``: bytes of tokens over those that the link could have taken, of the slower
direction where both go. What is asked is asked of links that are slower than the ends: where an end takes longer for a
token than the link (:func:`hw.timing.dma.interval_cycles`), the share says how fast the end is, and nothing is asked.
In 8 bits what is asked is the ratio to the same tokens raw.

The format of frames and flits alone (:mod:`golden.dma.frames`, :mod:`golden.dma.flits`) leaves a slot of b bytes in a
frame of f bytes the part ``b / f * payload / flit`` of the link. In 8 bits a slot is sent as blocks, each a scale and
one byte a number, and the part counts the 16-bit numbers that arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from golden.dma.frames import frame_bytes
from hw.presets.dma_bench import DMA_BENCHES
from hw.timing.dma import interval_cycles
from sim.provenance import Part, combine

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams
    from hw.tables.dma import DmaPoint, DmaTable

__all__ = [
    "COMPRESSED",
    "CONTIGUOUS",
    "SCATTERED",
    "LinkShares",
    "format_share",
    "format_shares",
    "is_plain",
    "link_decides",
    "measured_shares",
    "rate_rows",
    "raw_of",
    "table_part",
]

CONTIGUOUS, SCATTERED, COMPRESSED = 0.95, 0.9, 1.85
"""What is asked: shares of the peak of runs of at least 4 KiB and of tokens that lie apart, and 8 bits over 16."""

_LONG_BYTES = 4096


@dataclass(frozen=True)
class LinkShares:
    """Bytes of tokens for each byte that a link has room for.

    Parameters
    ----------
    raw, compressed : float
        As they lie in memory, and in 8 bits on the link; the latter may be above 1.
    part : Part
        Where both come from.
    """

    raw: float
    compressed: float
    part: Part


def format_share(params: DmaParams, *, compressed: bool) -> float:
    """Return what the format leaves of a link for slots of an end, the bound of any rate.

    Parameters
    ----------
    params : DmaParams
        The end.
    compressed : bool
        In 8 bits.
    """
    slot = params.space.space.slot_bytes
    flits, blocks = params.path.link.flit.flits, params.path.compression.compression
    numbers = slot // 2
    sent = numbers + -(-numbers // blocks.block) if compressed else slot
    return flits.payload_bytes / flits.flit_bytes * slot / frame_bytes(sent)


def format_shares() -> LinkShares:
    """Return what the format leaves of a link for slots of 512 bytes: the bound, where nothing was measured."""
    params = DMA_BENCHES["device"].near
    source = "frames in flits without a gap: golden.dma.frames, golden.dma.flits"
    return LinkShares(
        format_share(params, compressed=False),
        format_share(params, compressed=True),
        Part("bytes of tokens on a link", "modelled", source),
    )


def link_decides(point: DmaPoint) -> bool:
    """Return whether the link of a point takes longer for a token than an end does."""
    params = _end(point)
    beats, cycles = point.link_beats
    columns = point.slot_bytes / point.beat_bytes / format_share(params, compressed=point.compressed)
    return columns * cycles / beats > interval_cycles(params)


def _end(point: DmaPoint) -> DmaParams:
    """Return an end with slots of a point's size."""
    return next(bench.near for bench in DMA_BENCHES.values() if bench.near.space.space.slot_bytes == point.slot_bytes)


def measured_shares(table: DmaTable) -> LinkShares:
    """Return the least shares of scattered tokens in both directions where links decide, and memories take no time.

    What moves waits for its memories apart from its links (:mod:`sim.migration`).

    Parameters
    ----------
    table : DmaTable
        Measured rates.
    """
    raw, compressed = (
        min(
            point.least_share
            for point in table.points
            if is_plain(point) and point.compressed == packed and point.memories == "immediate" and link_decides(point)
        )
        for packed in (False, True)
    )
    return LinkShares(raw, compressed, table_part(table))


def rate_rows(table: DmaTable) -> list[dict[str, Any]]:
    """Return a row a point, and one for each that was sent in 8 bits over the same sent raw.

    Parameters
    ----------
    table : DmaTable
        Measured rates.
    """
    rows = [_row(point, table, _share_asked(point), point.least_share, "of the link") for point in table.points]
    for point in table.points:
        if point.compressed:
            raw = raw_of(table, point)
            asked = COMPRESSED if point.direction == "both" and link_decides(point) else None
            row = _row(point, table, asked, point.least_share / raw.least_share, "of 16 bits")
            rows.append(row | {"name": f"{row['name']}, over 16 bits"})
    return rows


def raw_of(table: DmaTable, packed: DmaPoint) -> DmaPoint:
    """Return the point that is one in 8 bits sent raw."""
    return next(point for point in table.points if _sent_raw(point, packed))


def _sent_raw(point: DmaPoint, packed: DmaPoint) -> bool:
    """Return whether a point is another sent raw, all else alike."""
    same = ("direction", "memories", "slot_bytes", "run_tokens", "reorder", "packing", "reads_waiting", "link_beats")
    return not point.compressed and all(getattr(point, name) == getattr(packed, name) for name in same)


def is_plain(point: DmaPoint) -> bool:
    """Return whether a point is scattered tokens of one head in both directions, by ends that leave nothing out."""
    return (
        point.direction == "both"
        and point.reorder
        and point.packing
        and point.slot_bytes * point.run_tokens < _LONG_BYTES
    )


def _share_asked(point: DmaPoint) -> float | None:
    """Return the share that is asked of a point, None where nothing is."""
    if point.compressed or point.direction != "both" or not link_decides(point):
        return None
    if point.slot_bytes * point.run_tokens >= _LONG_BYTES:
        return CONTIGUOUS
    return SCATTERED if is_plain(point) else None


def _row(point: DmaPoint, table: DmaTable, asked: float | None, reached: float, unit: str) -> dict[str, Any]:
    beats, cycles = point.link_beats
    bound = format_share(_end(point), compressed=point.compressed)
    return {
        "kind": "rate",
        "name": f"{point.name}, {point.direction}, {point.memories}, {beats} of {cycles} beats",
        "asked": asked,
        "reached": reached,
        "unit": unit,
        "within": None if asked is None else reached >= asked,
        "note": f"{point.tokens:,} tokens; the format leaves {bound:.1%}"
        + ("" if link_decides(point) else "; the ends are slower than this link"),
        "point": point.name,
        "direction": point.direction,
        "memories": point.memories,
        "link_beats": f"{beats}/{cycles}",
        "share": point.least_share,
        "cycles": point.cycles,
        "verilog_sha256": table.verilog_sha256,
        "provenance": combine([table_part(table)]).to_dict(),
    }


def table_part(table: DmaTable) -> Part:
    """Return where measured rates come from."""
    return Part(
        "bytes of tokens on a link", "measured-rtl", f"hw/tables/dma.json, Verilog sha256 {table.verilog_sha256}"
    )
