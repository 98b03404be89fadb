"""A run that a solver found, once more in Amaranth's simulator: whether the claim fails there, a table, a waveform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.formal.bench import Bench

__all__ = ["Replay", "replay"]

_PERIOD = 1e-9
_SETTLED = _PERIOD / 4


@dataclass(frozen=True)
class Replay:
    """What the simulator says: whether the claim fails, and the inputs, an input a line and a cycle a column."""

    confirmed: bool
    table: str


def replay(bench: Bench, claim: str, inputs: Sequence[dict[str, int]], waveform: Path) -> Replay:
    """Run the inputs of a run and see whether ``claim`` fails in its last cycle.

    Where it doesn't, the claim needs what has no defined value to have a certain one: the simulator takes 0.

    Parameters
    ----------
    bench : Bench
        The circuit, not yet finished.
    claim : str
        Name of the claim.
    inputs : sequence of dict
        Inputs by name, a dict a cycle.
    waveform : Path
        VCD file that is written.
    """
    number = list(bench.claims).index(claim)
    circuit, ports, fails = bench.finish()
    top, domain = Module(), ClockDomain("sync")
    top.domains += domain
    top.submodules.bench = circuit
    found = []

    async def drive(ctx):
        for cycle in inputs:
            for port in ports:
                ctx.set(port, cycle.get(port.name, 0))
            ctx.set(domain.rst, cycle.get("rst", 0))
            await ctx.delay(_SETTLED)
            found.append(ctx.get(fails[number]))
            await ctx.tick()

    simulator = Simulator(top)
    simulator.add_clock(_PERIOD)
    simulator.add_testbench(drive)
    with simulator.write_vcd(str(waveform)):
        simulator.run()
    return Replay(bool(found[-1]), _table([*bench.inputs, "rst"], inputs))


def _table(names: Sequence[str], inputs: Sequence[dict[str, int]]) -> str:
    rows = [["cycle", *(str(cycle) for cycle in range(len(inputs)))]]
    rows += [[name, *(f"{cycle.get(name, 0):x}" for cycle in inputs)] for name in names]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
