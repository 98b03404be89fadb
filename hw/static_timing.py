"""Static timing of a netlist by its library's tables; wires weigh nothing and take no time.

Every output pin sees the input capacitances that it drives. An input of the unit arrives at time 0 with the
transition of the NAND2 chain of :mod:`hw.liberty`, as the clock does, and an output drives the load of that
chain. The longest path starts at an input or at a clock edge and ends at an output or, setup included, at a
flip-flop; rising and falling edges are kept apart, and of several the latest time and slowest transition count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hw.netlist import topological_order

if TYPE_CHECKING:
    from hw.liberty import Cell, Library
    from hw.liberty_timing import Arc
    from hw.netlist import Instance, Net, Netlist

__all__ = ["Edges", "Timing", "analyse"]

Edges = tuple[float, float, float, float]
"""Time and transition of the rising edge, then of the falling one."""


@dataclass(frozen=True)
class Timing:
    """What :func:`analyse` found, in the library's unit of time.

    Parameters
    ----------
    delay : float
        The longest path: the smallest clock period, or the delay of a unit without flip-flops.
    delays : dict of (int, str) to float
        Through each combinational instance from an input pin, by instance number: mean of both output edges.
    """

    delay: float
    delays: dict[tuple[int, str], float]


def analyse(netlist: Netlist, library: Library) -> Timing:
    """Time ``netlist``.

    Raises
    ------
    NetlistError
        If there is a latch or a combinational loop.
    """
    order = topological_order(netlist, library)
    loads = _loads(netlist, library)
    start: Edges = (0.0, library.nand2_slew, 0.0, library.nand2_slew)
    arrivals: dict[Net, Edges] = {net: start for bits in netlist.inputs.values() for net in bits}
    for instance, cell in netlist.with_library(library):
        if cell.flip_flop:
            for pin, net in _driven(instance, cell):
                arcs = [arc for arc in cell.arcs.get(pin, ()) if arc.kind == "edge"]
                arrivals[net] = _latest([_through(arc, start, loads.get(net, 0.0)) for arc in arcs], start)
    delays: dict[tuple[int, str], float] = {}
    for number in order:
        instance = netlist.instances[number]
        cell = library.cells[instance.cell]
        for pin, net in _driven(instance, cell):
            load = loads.get(net, 0.0)
            found: list[Edges] = []
            for arc in cell.arcs.get(pin, ()):
                source = arrivals.get(instance.pins.get(arc.source, "x"))
                # A constant has no edges.
                if arc.kind == "combinational" and source is not None:
                    found.append(_through(arc, source, load))
                    key = (number, arc.source)
                    mean = (arc.rise.at(source[1], load) + arc.fall.at(source[3], load)) / 2
                    delays[key] = max(mean, delays.get(key, 0.0))
            if found:
                arrivals[net] = _latest(found, start)
    ends = [0.0]
    for bits in netlist.outputs.values():
        ends += [max(arrivals[net][0], arrivals[net][2]) for net in bits if net in arrivals]
    for instance, cell in netlist.with_library(library):
        if cell.flip_flop:
            ends += _setups(instance, cell, arrivals, library.nand2_slew)
    return Timing(max(ends), delays)


def _loads(netlist: Netlist, library: Library) -> dict[Net, float]:
    loads: dict[Net, float] = {}
    for instance, cell in netlist.with_library(library):
        for pin, capacitance in cell.capacitance.items():
            if pin in instance.pins:
                net = instance.pins[pin]
                loads[net] = loads.get(net, 0.0) + capacitance
    for bits in netlist.outputs.values():
        for net in bits:
            loads[net] = loads.get(net, 0.0) + library.chain_load
    return loads


def _driven(instance: Instance, cell: Cell) -> list[tuple[str, Net]]:
    return [(pin, instance.pins[pin]) for pin in cell.functions if pin in instance.pins]


def _through(arc: Arc, source: Edges, load: float) -> Edges:
    """Return the output's edges that an input's edges cause."""
    rising, falling = source[:2], source[2:]
    if arc.kind == "edge":
        # Edges of the clock: both outputs follow the same one.
        up, down = [rising], [rising]
    elif arc.sense == "positive_unate":
        up, down = [rising], [falling]
    elif arc.sense == "negative_unate":
        up, down = [falling], [rising]
    else:
        up, down = [rising, falling], [rising, falling]
    return (
        max(time + arc.rise.at(slew, load) for time, slew in up),
        max(arc.rise_slew.at(slew, load) for _, slew in up),
        max(time + arc.fall.at(slew, load) for time, slew in down),
        max(arc.fall_slew.at(slew, load) for _, slew in down),
    )


def _latest(found: list[Edges], otherwise: Edges) -> Edges:
    if not found:
        return otherwise
    rise, rise_slew, fall, fall_slew = zip(*found, strict=True)
    return max(rise), max(rise_slew), max(fall), max(fall_slew)


def _setups(instance: Instance, cell: Cell, arrivals: dict[Net, Edges], clock_slew: float) -> list[float]:
    ends: list[float] = []
    for pin in cell.capacitance:
        data = arrivals.get(instance.pins.get(pin, "x"))
        if data is not None:
            for arc in cell.arcs.get(pin, ()):
                if arc.kind == "setup":
                    ends.append(data[0] + arc.rise.at(data[1], clock_slew))
                    ends.append(data[2] + arc.fall.at(data[3], clock_slew))
    return ends
