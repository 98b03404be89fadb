"""What memories with open rows leave of the gain of 8 bits: where links are fast, the memories set the pace.

A slot each way is read, written and read back on the buses of either memory, whatever the link carries for it
(:func:`hw.timing.dma_memory.bus_cycles`), so 8 bits can't bring more slots than the memories take. A row stands beside
each point that was sent in 8 bits both ways over memories with open rows: what the buses alone would allow, and what
part of the time they carry columns at the rate that was reached. The last row is the fastest link over which 8 bits
bring what is asked, by the rate that the memories reach when the link does not matter::

    beats of a cycle = columns / (asked * share of 16 bits * cycles a slot each way over a link of a beat a cycle)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hw.presets.dma_bench import DMA_BENCHES
from hw.timing.dma_memory import bus_cycles
from sim.provenance import Part, combine
from sim.studies.migration_rates import COMPRESSED, format_share, link_decides, raw_of, table_part

if TYPE_CHECKING:
    from hw.tables.dma import DmaPoint, DmaTable

__all__ = ["memory_rows"]

_BUSES = Part("cycles of the buses", "modelled", "hw.timing.dma_memory.bus_cycles: columns and turn-arounds, no rows")


def memory_rows(table: DmaTable) -> list[dict[str, Any]]:
    """Return a row for each point in 8 bits whose link decides, and one of the link from which on they gain enough.

    Parameters
    ----------
    table : DmaTable
        Measured rates.
    """
    packed = [
        point
        for point in table.points
        if point.compressed and point.direction == "both" and point.memories == "open-row"
    ]
    rows = [_bound_row(point, table) for point in packed if link_decides(point)]
    return rows + [_link_row(point, raw_of(table, point), table) for point in packed if point.link_beats == (1, 1)]


def _interval(point: DmaPoint) -> float:
    """Return the cycles of a slot of the slower direction."""
    beats, cycles = point.link_beats
    return point.slot_bytes / point.beat_bytes / point.least_share * cycles / beats


def _bound_row(point: DmaPoint, table: DmaTable) -> dict[str, Any]:
    bench = DMA_BENCHES["device"]
    beats, cycles = point.link_beats
    buses = {name: bus_cycles(bench, name) for name in ("near", "far")}
    memories = point.slot_bytes / point.beat_bytes / max(buses.values()) * cycles / beats
    sent, raw = (min(memories, format_share(bench.near, compressed=compressed)) for compressed in (True, False))
    used = {name: bus / _interval(point) for name, bus in buses.items()}
    gain = point.least_share / raw_of(table, point).least_share
    wanted = gain and COMPRESSED / gain * max(used.values())
    return _row(
        f"{point.name}, {beats} of {cycles} beats: bound by buses of memories and format",
        sent / raw,
        "of 16 bits",
        f"reached {gain:.2f} with {max(used.values()):.0%} of the time on the bus; {COMPRESSED:g} take {wanted:.0%}",
        [table_part(table), _BUSES],
        link_beats=f"{beats}/{cycles}",
        gain=gain,
        near_bus=used["near"],
        far_bus=used["far"],
    )


def _link_row(point: DmaPoint, raw: DmaPoint, table: DmaTable) -> dict[str, Any]:
    shares = [other.least_share for other in table.points if _alike(other, raw) and link_decides(other)]
    fastest = point.slot_bytes / point.beat_bytes / (COMPRESSED * max(shares) * _interval(point))
    return _row(
        f"{point.name}: fastest link over which they bring {COMPRESSED:g} of 16 bits",
        fastest,
        "beats a cycle",
        f"memories take {_interval(point):.1f} cycles for a slot each way",
        [table_part(table)],
        link_beats=None,
        gain=COMPRESSED,
        near_bus=None,
        far_bus=None,
    )


def _alike(one: DmaPoint, other: DmaPoint) -> bool:
    """Return whether two points differ in nothing but their links."""
    same = ("name", "direction", "memories", "slot_bytes", "run_tokens", "compressed", "reorder", "packing")
    return all(getattr(one, name) == getattr(other, name) for name in same)


def _row(name: str, reached: float, unit: str, note: str, parts: list[Part], **more: object) -> dict[str, Any]:
    return {
        "kind": "memory bound",
        "name": name,
        "asked": None,
        "reached": reached,
        "unit": unit,
        "within": None,
        "note": note,
        **more,
        "provenance": combine(parts).to_dict(),
    }
