"""Deals the cells of a combinational netlist out to pipeline stages, with as few nets between stages as possible."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from hw.netlist import topological_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hw.liberty import Library
    from hw.netlist import Net, Netlist

__all__ = ["Stages", "minimum_cut"]

_FAR = 1 << 30


class Stages:
    """Stages of a netlist for a period.

    Parameters
    ----------
    core : Netlist
        Combinational.
    library : Library
        Its cells.
    delays : mapping of (int, str) to float
        Through an instance from one of its input pins; what is not there takes no time.
    launch, setup, period : float
        From the clock edge to a net behind a register, before the clock edge, and between two edges.

    Notes
    -----
    A boundary b divides the instances into those of stages up to b and the others; boundary 0 has none on its
    left, the last one all. Stages count from 1.
    """

    def __init__(
        self,
        core: Netlist,
        library: Library,
        delays: Mapping[tuple[int, str], float],
        *,
        launch: float,
        setup: float,
        period: float,
    ) -> None:
        self._launch, self._setup, self._period = launch, setup, period
        self._order = topological_order(core, library)
        driver: dict[Net, int] = {}
        for number in self._order:
            instance = core.instances[number]
            cell = library.cells[instance.cell]
            if cell.capacitance:
                driver |= {instance.pins[pin]: number for pin in cell.functions if pin in instance.pins}
        # Who drives each instance, by how long; None is an input of the unit. Constants drive nothing.
        inputs = {net for bits in core.inputs.values() for net in bits}
        self._fan_in: dict[int, list[tuple[int | None, float]]] = {number: [] for number in self._order}
        self._fan_out: dict[int, list[tuple[int, float]]] = {number: [] for number in self._order}
        self._nets: dict[Net, list[int]] = {}
        for number in self._order:
            instance = core.instances[number]
            for pin in library.cells[instance.cell].capacitance:
                net = instance.pins.get(pin, "x")
                delay = delays.get((number, pin), 0.0)
                if net in driver:
                    self._fan_in[number].append((driver[net], delay))
                    self._fan_out[driver[net]].append((number, delay))
                elif net in inputs:
                    self._fan_in[number].append((None, delay))
                else:
                    continue
                self._nets.setdefault(net, []).append(number)
        self._driver = driver
        self._outputs = {net for bits in core.outputs.values() for net in bits if net in driver or net in inputs}
        slowest = max(delays.values(), default=0.0)
        self.possible = launch + slowest + setup <= period
        """Whether each cell fits into a stage of its own."""
        self._latest = self._count_back() if self.possible else {}
        self.count = 1 - min(self._latest.values(), default=0)
        """Stages needed."""

    def numbers(self, *, late: bool) -> dict[int, int]:
        """Return the stage of each instance, from 1.

        Of several boundaries that cross equally few nets, the one nearest to the outputs is taken if ``late``, else
        the one nearest to the inputs.
        """
        cuts: list[set[int]] = [set()]
        for boundary in range(1, self.count):
            cuts.append(self._cut(cuts[-1], boundary, late=late))
        cuts.append(set(self._order))
        return {
            number: next(stage for stage in range(1, self.count + 1) if number in cuts[stage]) for number in self._order
        }

    def _count_back(self) -> dict[int, int]:
        """Return the latest stage of each instance, 0 the last and those before it negative."""
        latest: dict[int, int] = {}
        tails: dict[int, float] = {}
        for number in reversed(self._order):
            sinks = self._fan_out[number]
            stage = min((latest[sink] for sink, _ in sinks), default=0)
            tail = max((tails[sink] + delay for sink, delay in sinks if latest[sink] == stage), default=0.0)
            tail = max(tail, self._setup)
            longest = max((delay for _, delay in self._fan_in[number]), default=0.0)
            if self._launch + longest + tail > self._period:
                stage, tail = stage - 1, self._setup
            latest[number], tails[number] = stage, tail
        return latest

    def _cut(self, before: set[int], boundary: int, *, late: bool) -> set[int]:
        """Return the left side of the cheapest boundary behind the one with ``before`` on its left."""
        left = set(before)
        right: set[int] = set()
        arrivals: dict[int, float] = {}
        for number in self._order:
            if number in before:
                continue
            paths = [
                (self._launch if source is None or source in before else arrivals[source]) + delay
                for source, delay in self._fan_in[number]
            ]
            arrivals[number] = max(paths, default=0.0)
            if arrivals[number] + self._setup > self._period:
                right.add(number)
        left |= {number for number in self._order if self._latest[number] <= boundary - self.count}
        # What drives a cell on the left is on the left, what a cell on the right drives is on the right.
        for number in reversed(self._order):
            if any(sink in left for sink, _ in self._fan_out[number]):
                left.add(number)
        for number in self._order:
            if any(source in right for source, _ in self._fan_in[number]):
                right.add(number)
        right -= left
        return left | self._cheapest(left, right, late=late)

    def _cheapest(self, left: set[int], right: set[int], *, late: bool) -> set[int]:
        """Return the undecided instances that go to the left of the cut that crosses the fewest nets."""
        free = [number for number in self._order if number not in left and number not in right]
        node = {number: index for index, number in enumerate(free, 2)}
        edges: list[tuple[int, int, int]] = []
        extra = len(free) + 2

        def side(number: int | None) -> int:
            return 0 if number is None or number in left else 1 if number in right else node[number]

        for net, sinks in self._nets.items():
            source = side(self._driver.get(net))
            ends = {side(sink) for sink in sinks}
            if net in self._outputs:
                ends.add(1)
            if source == 1 or ends <= {source}:
                continue
            edges.append((source, extra, 1))
            for end in ends:
                edges.append((extra, end, _FAR))
                if end > 1 and source > 1:
                    edges.append((end, source, _FAR))
            extra += 1
        for net in self._outputs:
            source = side(self._driver.get(net))
            if net not in self._nets and source > 1:
                edges.append((source, 1, 1))
        reached = minimum_cut(extra, edges, late=late)
        return {number for number in free if node[number] in reached}


def minimum_cut(nodes: int, edges: list[tuple[int, int, int]], *, late: bool = False) -> set[int]:
    """Return the nodes on node 0's side of the cheapest cut that parts it from node 1.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    edges : list of (int, int, int)
        From, to and capacity.
    late : bool
        Of several such cuts, take the one with the most nodes on that side; else the one with the fewest.

    Notes
    -----
    Dinic's algorithm: shortest paths first, all of one length together.
    """
    heads: list[list[int]] = [[] for _ in range(nodes)]
    to: list[int] = []
    room: list[int] = []
    for source, target, capacity in edges:
        heads[source].append(len(to))
        to.append(target)
        room.append(capacity)
        heads[target].append(len(to))
        to.append(source)
        room.append(0)
    while True:
        level = _levels(heads, to, room, nodes)
        if level[1] < 0:
            if late:
                return set(range(nodes)) - _before_end(heads, to, room)
            return {node for node in range(nodes) if level[node] >= 0}
        follow = [0] * nodes
        while _augment(heads, to, room, level, follow):
            pass


def _before_end(heads: list[list[int]], to: list[int], room: list[int]) -> set[int]:
    """Return the nodes from which more could flow to node 1."""
    found = {1}
    queue = deque([1])
    while queue:
        for edge in heads[queue.popleft()]:
            # The edge's twin runs towards node 1.
            if room[edge ^ 1] and to[edge] not in found:
                found.add(to[edge])
                queue.append(to[edge])
    return found


def _levels(heads: list[list[int]], to: list[int], room: list[int], nodes: int) -> list[int]:
    level = [-1] * nodes
    level[0] = 0
    queue = deque([0])
    while queue:
        node = queue.popleft()
        for edge in heads[node]:
            if room[edge] and level[to[edge]] < 0:
                level[to[edge]] = level[node] + 1
                queue.append(to[edge])
    return level


def _augment(heads: list[list[int]], to: list[int], room: list[int], level: list[int], follow: list[int]) -> bool:
    """Send what fits along one shortest path."""
    path: list[int] = []
    node = 0
    while node != 1:
        while follow[node] < len(heads[node]):
            edge = heads[node][follow[node]]
            if room[edge] and level[to[edge]] == level[node] + 1:
                break
            follow[node] += 1
        else:
            if not path:
                return False
            edge = path.pop()
            node = to[edge ^ 1]
            follow[node] += 1
            continue
        path.append(edge)
        node = to[edge]
    least = min(room[edge] for edge in path)
    for edge in path:
        room[edge] -= least
        room[edge ^ 1] += least
    return True
