"""Netlists of library cells, as synthesis leaves them: read, counted, evaluated.

A net is a number; a constant is the text ``0``, ``1`` or ``x``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from hw.liberty import Cell, Library

__all__ = ["Instance", "Net", "Netlist", "NetlistError", "evaluate", "topological_order"]

Net = int | str
"""A net's number, or a constant."""


class NetlistError(ValueError):
    """A netlist can't be read or timed; the message is one line."""


@dataclass(frozen=True)
class Instance:
    """One cell of a netlist.

    Parameters
    ----------
    cell : str
        Name in the library.
    pins : dict of str to Net
        What each connected pin is connected to.
    """

    cell: str
    pins: dict[str, Net]


@dataclass(frozen=True)
class Netlist:
    """One flat module.

    Parameters
    ----------
    inputs, outputs : dict of str to list of Net
        Bits of each port, least significant first.
    instances : list of Instance
        In no particular order.
    """

    inputs: dict[str, list[Net]]
    outputs: dict[str, list[Net]]
    instances: list[Instance]

    @classmethod
    def from_yosys(cls, document: Mapping[str, Any], top: str, library: Library) -> Netlist:
        """Return module ``top`` of what ``write_json`` of Yosys wrote.

        Raises
        ------
        NetlistError
            If a cell is not in the library.
        """
        module = document["modules"][top]
        instances = [
            Instance(cell["type"], {pin: bits[0] for pin, bits in cell["connections"].items() if bits})
            for cell in module["cells"].values()
            if cell["type"] != "$scopeinfo"
        ]
        unknown = sorted({instance.cell for instance in instances} - library.cells.keys())
        if unknown:
            raise NetlistError(f"library {library.name} has no cell for {', '.join(unknown)}")
        ports = module["ports"]
        for name, port in ports.items():
            if port["direction"] == "inout":
                raise NetlistError(f"ports must be inputs or outputs, and {name} is both")
        by_direction = {
            direction: {name: list(port["bits"]) for name, port in ports.items() if port["direction"] == direction}
            for direction in ("input", "output")
        }
        return cls(by_direction["input"], by_direction["output"], instances)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Netlist:
        """Return what :meth:`to_dict` gave."""
        return cls(
            document["inputs"],
            document["outputs"],
            [Instance(cell, pins) for cell, pins in document["instances"]],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the netlist as JSON can hold it."""
        return {
            "inputs": self.inputs,
            "outputs": self.outputs,
            "instances": [[instance.cell, instance.pins] for instance in self.instances],
        }

    def area(self, library: Library) -> float:
        """Return the sum of the cells' areas, in the library's unit."""
        return sum(library.cells[instance.cell].area for instance in self.instances)

    def flip_flops(self, library: Library) -> int:
        """Return the number of flip-flops."""
        return sum(library.cells[instance.cell].flip_flop is not None for instance in self.instances)

    def with_library(self, library: Library) -> Iterator[tuple[Instance, Cell]]:
        """Yield each instance with its cell."""
        return ((instance, library.cells[instance.cell]) for instance in self.instances)


def topological_order(netlist: Netlist, library: Library) -> list[int]:
    """Return the numbers of the combinational instances, each behind those that drive it.

    Raises
    ------
    NetlistError
        If there is a latch or a loop.
    """
    driver: dict[Net, int] = {}
    waiting: dict[int, int] = {}
    sinks: dict[Net, list[int]] = {}
    for number, (instance, cell) in enumerate(netlist.with_library(library)):
        if cell.sequential:
            if cell.flip_flop is None:
                raise NetlistError(f"cell {cell.name} is a latch or a clock gate, which have no timing here")
            continue
        waiting[number] = 0
        for pin in cell.functions:
            if pin in instance.pins:
                driver[instance.pins[pin]] = number
        for pin in cell.capacitance:
            if pin in instance.pins:
                sinks.setdefault(instance.pins[pin], []).append(number)
    for net, users in sinks.items():
        if net in driver:
            for user in users:
                waiting[user] += 1
    ready = [number for number, count in waiting.items() if not count]
    order: list[int] = []
    while ready:
        number = ready.pop()
        order.append(number)
        instance = netlist.instances[number]
        for pin in library.cells[instance.cell].functions:
            for user in sinks.get(instance.pins.get(pin, "x"), ()):
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
    if len(order) < len(waiting):
        raise NetlistError("the netlist has a combinational loop")
    return order


def evaluate(
    netlist: Netlist, library: Library, inputs: Mapping[str, npt.NDArray[np.uint64]], *, cycles: int = 0
) -> dict[str, npt.NDArray[np.uint64]]:
    """Return the outputs for constant ``inputs`` after ``cycles`` clock edges.

    Flip-flops start at 0; of one with set, reset or enable only the next-state expression counts.

    Parameters
    ----------
    netlist : Netlist
        Of cells of ``library``.
    library : Library
        Their functions.
    inputs : mapping of str to ndarray of uint64, shape (n,)
        Port values, one case an entry; ports left out are 0.
    cycles : int
        Clock edges before the outputs are read.
    """
    shape = next((values.shape for values in inputs.values()), (1,))
    zeros = np.zeros(shape, dtype=bool)
    ones = ~zeros
    values: dict[Net, npt.NDArray[np.bool_]] = {"0": zeros, "1": ones, "x": zeros}
    for port, bits in netlist.inputs.items():
        given = inputs.get(port, np.zeros(shape, dtype=np.uint64))
        values |= {net: (given >> np.uint64(place) & np.uint64(1)).astype(bool) for place, net in enumerate(bits)}
    flip_flops = [(instance, cell) for instance, cell in netlist.with_library(library) if cell.flip_flop]
    state = [zeros for _ in flip_flops]
    order = topological_order(netlist, library)
    for cycle in range(cycles + 1):
        for (instance, cell), held in zip(flip_flops, state, strict=True):
            assert cell.flip_flop
            inner = {cell.flip_flop[0]: held, cell.flip_flop[1]: ~held}
            for pin, function in cell.functions.items():
                if pin in instance.pins:
                    values[instance.pins[pin]] = function.evaluate(inner, ones)
        for number in order:
            instance = netlist.instances[number]
            cell = library.cells[instance.cell]
            pins = {pin: values[instance.pins.get(pin, "x")] for pin in cell.capacitance}
            for pin, function in cell.functions.items():
                if pin in instance.pins:
                    values[instance.pins[pin]] = function.evaluate(pins, ones)
        if cycle < cycles:
            state = [
                cell.next_state.evaluate({pin: values[instance.pins.get(pin, "x")] for pin in cell.capacitance}, ones)
                for instance, cell in flip_flops
            ]
    return {
        port: sum(
            (values[net].astype(np.uint64) << np.uint64(place) for place, net in enumerate(bits)),
            np.zeros(shape, dtype=np.uint64),
        )
        for port, bits in netlist.outputs.items()
    }
