"""Rates of the DMA measured on two Verilated ends, as ``nearkv measure dma`` writes them; free of Amaranth."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hw.builds import digest
from hw.presets.dma_bench import DMA_BENCHES
from hw.tables import table_folder
from hw.timing.tables import TableError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DIRECTIONS",
    "DmaPoint",
    "DmaTable",
    "dma_params_sha256",
    "dma_point",
    "dma_table_text",
    "load_dma_table",
    "read_dma_table",
]

DIRECTIONS = ("near to far", "far to near", "both")
"""Ways that tokens go: from HBM3 to DDR4, back, and both at once."""


@dataclass(frozen=True, kw_only=True)
class DmaPoint:
    """One measured run, counted from a fifth of its tokens to the last tenth.

    Parameters
    ----------
    name : str
        What was moved: ``contiguous``, ``scattered`` and so on.
    direction : str
        One of :data:`DIRECTIONS`.
    memories : str
        ``immediate`` or ``open-row``.
    slot_bytes : int
        Bytes of a token.
    run_tokens : int
        Tokens that lie together.
    compressed, reorder, packing : bool
        Whether tokens went in 8 bits, reads could overtake each other, and frames shared flits.
    reads_waiting : int
        Reads that could wait in a channel of memories with open rows.
    link_beats : tuple of int
        Beats that the link took at most, of cycles.
    tokens, cycles : int
        Tokens counted, of both directions where both went, and cycles that they took, the longer of the two.
    offered_beats : int
        Beats that the link could have taken meanwhile, of both directions where both went.
    beat_bytes : int
        Bytes of a beat.
    near_share, far_share : float or None
        Share of the peak of what the near and the far end sent; None where it sent nothing.
    rows_opened : int
        Rows that both memories opened while the tokens of one direction were counted; 0 where they answer at once.
    lone_cycles : int
        Cycles from the descriptor of a lone token to its completion.
    """

    name: str
    direction: str
    memories: str
    slot_bytes: int
    run_tokens: int
    compressed: bool
    reorder: bool
    packing: bool
    reads_waiting: int
    link_beats: tuple[int, int]
    tokens: int
    cycles: int
    offered_beats: int
    beat_bytes: int
    near_share: float | None
    far_share: float | None
    rows_opened: int
    lone_cycles: int

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, not {self.direction!r}")

    @property
    def share_of_peak(self) -> float:
        """Bytes of tokens, as they are in memory, over those that the link could have taken."""
        return self.tokens * self.slot_bytes / (self.offered_beats * self.beat_bytes)

    @property
    def least_share(self) -> float:
        """The same of the slower direction."""
        return min(share for share in (self.near_share, self.far_share) if share is not None)


@dataclass(frozen=True, kw_only=True)
class DmaTable:
    """Measured rates of the DMA.

    Parameters
    ----------
    points : tuple of DmaPoint
        What was measured.
    clock_ns : float
        Clock of the ends that the memories' timings were counted against.
    verilog_sha256 : str
        Hash of the Verilog that was run.
    seed : int
        Seed of the places of tokens.
    versions : mapping of str to str
        Tools that wrote and ran the Verilog.
    """

    points: tuple[DmaPoint, ...]
    clock_ns: float
    verilog_sha256: str
    seed: int
    versions: Mapping[str, str]


def dma_params_sha256() -> str:
    """Return a hash of everything that the benches are elaborated from."""
    return digest(*(f"{name} {params!r}" for name, params in DMA_BENCHES.items()))


def dma_point(entry: dict[str, Any]) -> DmaPoint:
    """Return the point that :func:`dataclasses.asdict` made ``entry`` of, after it went through JSON."""
    fields = dict(entry)
    beats, cycles = fields["link_beats"]
    fields["link_beats"] = (beats, cycles)
    return DmaPoint(**fields)


def dma_table_text(table: DmaTable) -> str:
    """Return the file of a table: the same text for the same table, a point a line."""
    head = {
        "clock_ns": table.clock_ns,
        "params_sha256": dma_params_sha256(),
        "verilog_sha256": table.verilog_sha256,
        "seed": table.seed,
        "versions": dict(table.versions),
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    points = ",\n".join(f"    {json.dumps(asdict(point))}" for point in table.points)
    return "{\n" + ",\n".join([*lines, f'  "points": [\n{points}\n  ]']) + "\n}\n"


def read_dma_table(text: str) -> DmaTable:
    """Return the table of a file's text.

    Raises
    ------
    TableError
        If it is no table, or one of benches with other parameters than those of today.
    """
    try:
        entries: dict[str, Any] = json.loads(text)
        measured_params = entries.pop("params_sha256")
        entries["points"] = tuple(dma_point(point) for point in entries["points"])
        table = DmaTable(**entries)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TableError(f"table of the DMA must be a file that nearkv measure wrote: {error}") from None
    if measured_params != dma_params_sha256():
        raise TableError("table of the DMA must be of today's parameters, it is of others: run nearkv measure dma")
    return table


@functools.cache
def load_dma_table() -> DmaTable:
    """Return the table that ships.

    Raises
    ------
    TableError
        If there is none, or it was measured with other parameters.
    """
    path = table_folder() / "dma.json"
    if not path.is_file():
        raise TableError("table of the DMA must be there, it is not: run nearkv measure dma")
    return read_dma_table(path.read_text(encoding="utf-8"))
