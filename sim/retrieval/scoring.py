"""Scoring near memory: what the unit of each channel does of a scan, by the formula of its RTL.

Keys are spread evenly over channels, whole blocks in one. The query is loaded before keys come; they then come at the
memory's rate or as fast as the unit takes them, whichever is slower::

    loading and draining / clock + max(bytes / memory, cycles of the keys / clock)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.index_score_params import ScoreWork
from hw.timing import index_score

if TYPE_CHECKING:
    from golden.retrieval.index_spec import ScoreMode
    from hw.index_score_params import IndexScoreParams

__all__ = ["IndexScan", "ScanCycles", "scan_cycles"]


@dataclass(frozen=True, kw_only=True)
class IndexScan:
    """What one selection scores.

    Parameters
    ----------
    mode : ScoreMode
        How a key is scored.
    heads, dim : int
        Query heads, and elements of a vector.
    keys : int
        Keys, or pages.
    """

    mode: ScoreMode
    heads: int
    dim: int
    keys: int


@dataclass(frozen=True)
class ScanCycles:
    """Cycles of a channel's unit for one scan.

    Parameters
    ----------
    keys : int
        While keys come.
    around : int
        Before and after: the query, the first and the last score.
    """

    keys: int
    around: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.keys + self.around


def scan_cycles(params: IndexScoreParams, scan: IndexScan, channels: int) -> ScanCycles | None:
    """Return the cycles of the busiest channel, or None if the unit has no room for the query or the keys.

    Parameters
    ----------
    params : IndexScoreParams
        The unit of each channel.
    scan : IndexScan
    channels : int
        Channels that the keys are spread over.
    """
    blocks = -(-scan.mode.candidates(scan.keys) // channels)
    keys = min(scan.keys, blocks * scan.mode.block_keys)
    work = ScoreWork(mode=scan.mode, heads=scan.heads, dim=scan.dim, keys=keys)
    try:
        work.require_fits(params)
    except ValueError:
        return None
    scanned = index_score.scan_cycles(params, work)
    return ScanCycles(scanned, index_score.operation_cycles(params, work) - scanned)
