"""Made-up measurements of the DMA, for tests of what is worked out from them."""

from __future__ import annotations

from typing import Any

from hw.tables.dma import DmaPoint

__all__ = ["point"]


def point(name: str, share: float, **changes: Any) -> DmaPoint:
    """Return a point of 1,000 tokens of 512 B each way."""
    made: dict[str, Any] = {
        "name": name,
        "direction": "both",
        "memories": "open-row",
        "slot_bytes": 512,
        "run_tokens": 1,
        "compressed": False,
        "reorder": True,
        "packing": True,
        "reads_waiting": 4,
        "link_beats": (1, 4),
        "tokens": 2000,
        "cycles": 68_000,
        "offered_beats": 34_000,
        "beat_bytes": 32,
        "near_share": share,
        "far_share": share + 0.01,
        "rows_opened": 1,
        "lone_cycles": 164,
    }
    return DmaPoint(**(made | changes))
