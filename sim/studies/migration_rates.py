"""What of a link's bytes are bytes of tokens.

The format of frames and flits alone (:mod:`golden.dma.frames`, :mod:`golden.dma.flits`) leaves a slot of b bytes in a
frame of f bytes the part ``b / f * payload / flit`` of the link. In 8 bits a slot is sent as blocks, each a scale and
one byte a number, and the part counts the 16-bit numbers that arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from golden.dma.frames import frame_bytes
from hw.presets.dma import STACK_END
from sim.provenance import Part

if TYPE_CHECKING:
    from hw.dma_engine_params import DmaParams

__all__ = ["LinkShares", "format_shares"]


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


def format_shares(params: DmaParams = STACK_END) -> LinkShares:
    """Return what the format leaves of a link for slots of an end of the DMA, the bound of what it can reach."""
    slot = params.space.space.slot_bytes
    flits, blocks = params.path.link.flit.flits, params.path.compression.compression
    payload = flits.payload_bytes / flits.flit_bytes
    numbers = slot // 2
    packed = numbers + -(-numbers // blocks.block)
    source = "frames in flits without a gap: golden.dma.frames, golden.dma.flits"
    return LinkShares(
        raw=payload * slot / frame_bytes(slot),
        compressed=payload * slot / frame_bytes(packed),
        part=Part("bytes of tokens on a link", "modelled", source),
    )
