"""What memories with open rows leave of the gain of 8 bits: where links are fast, the memories set the pace.

A slot each way is read, written and read back on the buses of either memory, whatever the link carries for it
(:func:`hw.timing.dma_memory.bus_cycles`), so 8 bits can't bring more slots than the memories take. A row stands beside
each point that was sent in 8 bits both ways over memories with open rows: what the buses alone would allow, and what
part of the time they are in use at the rate that was reached. The last row is the fastest of the links over which 8
bits brought what is asked. It is slower than the one over which they would take as long as the memories do when the
link does not matter: where both take nearly as long, each waits for the other now and then::

    beats of a cycle = columns / (asked * share of 16 bits * cycles a slot each way over a link of a beat a cycle)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hw.presets.dma_bench import DMA_BENCHES
from hw.timing.dma_memory import bus_cycles
from sim.provenance import Part, combine
from sim.studies.migration_rates import COMPRESSED, format_share, is_plain, link_decides, raw_of, table_part

if TYPE_CHECKING:
    from hw.tables.dma import DmaPoint, DmaTable

__all__ = ["BusShare", "measured_bus_share", "memory_rows"]

_BUSES = Part("cycles of the buses", "modelled", "hw.timing.dma_memory.bus_cycles: columns and turn-arounds, no rows")


@dataclass(frozen=True)
class BusShare:
    """Part of the time in which the buses of memories with rows carry what moves.

    Parameters
    ----------
    share : float
        Of the memory that has less time left.
    parts : tuple of Part
        Where it comes from.
    """

    share: float
    parts: tuple[Part, ...]


def measured_bus_share(table: DmaTable) -> BusShare | None:
    """Return what buses reach at most: tokens both ways in 16 bits over links that do not matter; None if not measured.

    Parameters
    ----------
    table : DmaTable
        Measured rates.
    """
    bench = DMA_BENCHES["device"]
    busiest = max(bus_cycles(bench, name) for name in ("near", "far"))
    shares = [
        busiest / _interval(point)
        for point in table.points
        if is_plain(point) and not point.compressed and point.memories == "open-row" and point.link_beats == (1, 1)
    ]
    return BusShare(max(shares), (table_part(table), _BUSES)) if shares else None


def memory_rows(table: DmaTable) -> list[dict[str, Any]]:
    """Return a row for each point in 8 bits whose link decides, and for each kind one of the link that is slow enough.

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
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(point.name for point in packed):
        mine = [point for point in packed if point.name == name]
        decided = [point for point in mine if link_decides(point)]
        rows += [_bound_row(point, table) for point in decided]
        enough = [point for point in decided if _gain(point, table) >= COMPRESSED]
        unbound = [point for point in mine if point.link_beats == (1, 1)]
        if enough and unbound:
            rows.append(_link_row(max(enough, key=_beats_a_cycle), unbound[0], table))
    return rows


def _gain(point: DmaPoint, table: DmaTable) -> float:
    return point.least_share / raw_of(table, point).least_share


def _beats_a_cycle(point: DmaPoint) -> float:
    beats, cycles = point.link_beats
    return beats / cycles


def _interval(point: DmaPoint) -> float:
    """Return the cycles of a slot of the slower direction."""
    return point.slot_bytes / point.beat_bytes / (point.least_share * _beats_a_cycle(point))


def _bound_row(point: DmaPoint, table: DmaTable) -> dict[str, Any]:
    bench = DMA_BENCHES["device"]
    beats, cycles = point.link_beats
    buses = {name: bus_cycles(bench, name) for name in ("near", "far")}
    memories = point.slot_bytes / point.beat_bytes / (max(buses.values()) * _beats_a_cycle(point))
    sent, raw = (min(memories, format_share(bench.near, compressed=compressed)) for compressed in (True, False))
    used = {name: bus / _interval(point) for name, bus in buses.items()}
    gain = _gain(point, table)
    wanted = COMPRESSED / gain * max(used.values())
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


def _link_row(point: DmaPoint, unbound: DmaPoint, table: DmaTable) -> dict[str, Any]:
    columns, interval = point.slot_bytes / point.beat_bytes, _interval(unbound)
    memories = columns / (COMPRESSED * raw_of(table, point).least_share * interval)
    return _row(
        f"{point.name}: fastest link measured over which they bring {COMPRESSED:g} of 16 bits",
        _beats_a_cycle(point),
        "beats a cycle",
        f"memories take {interval:.1f} cycles for a slot each way, as long as 8 bits over {memories:.2f} beats a cycle",
        [table_part(table)],
        link_beats="{}/{}".format(*point.link_beats),
        gain=_gain(point, table),
        near_bus=None,
        far_bus=None,
    )


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
