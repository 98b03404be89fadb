"""Registers moved into a combinational unit so that it meets a clock, at one result a cycle.

The unit is mapped to cells first. The cells are then dealt out to stages, and a net from one stage to a later one
gets a flip-flop at each boundary that it crosses, so that every path from an input to an output meets the same number
of them: the function is kept by construction, and :func:`hw.netlist.evaluate` is asked all the same. Operands come
from flip-flops outside, which are not counted; every output bit ends in a flip-flop, which is.

Between two boundaries each cell may stand in an earlier or later stage as long as both meet the period. Where the
boundary runs is then a minimum cut: the fewest nets, each counted once however many cells it drives. Boundaries are
placed one by one from the inputs on, as early and as late as is equally cheap, for some periods around the one asked
for, because loads change once registers are there; each result is timed as it is, and the smallest that meets the
period is kept. It is an upper bound: no claim that a smaller pipeline does not exist.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hw.builds import replace_text
from hw.cuts import Stages
from hw.liberty import Library, read_library
from hw.netlist import Instance, Netlist, evaluate
from hw.static_timing import analyse
from hw.synth import Synthesis, SynthesisError, kept_file, mapped_netlist, measure

if TYPE_CHECKING:
    from pathlib import Path

    from hw.netlist import Net

__all__ = ["PIPELINE_SCRIPTS", "FlipFlop", "Pipeline", "pipeline", "registered"]

PIPELINE_SCRIPTS = ("area", "sized", "flatter", "delay")
"""Scripts tried by default: the smallest logic needs the most stages, so that the smallest unit may be another."""

# Stages are planned for a part of the period, first for more than all of it, because registers take loads off nets;
# then for less, step by step, until some plans have met the period.
_FIRST_PART, _STEP = 1.12, 0.965
_TRIES, _HITS = 16, 3
_FLIP_FLOP = "module one_flip_flop(input c, input d, output reg q); always @(posedge c) q <= d; endmodule\n"
_CASES = 512


@dataclass(frozen=True)
class Pipeline:
    """A unit with registers in its logic.

    Parameters
    ----------
    synthesis : Synthesis
        Area, registers included, and delay: the smallest period it runs at.
    registers : int
        Stages: clock edges from operand to result.
    period_nand2 : float
        The period asked for.
    period_ns : float or None
        The same; None for a library of NAND2 delays.
    """

    synthesis: Synthesis
    registers: int
    period_nand2: float
    period_ns: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, those of the synthesis among them."""
        return self.synthesis.to_dict() | {
            "registers": self.registers,
            "period_nand2": self.period_nand2,
            "period_ns": self.period_ns,
        }


def pipeline(
    verilog: str,
    top: str,
    library: Library | Path | None = None,
    *,
    period_ns: float | None = None,
    period_nand2: float | None = None,
    scripts: tuple[str, ...] = PIPELINE_SCRIPTS,
) -> Pipeline:
    """Return the smallest pipeline found of a combinational unit that meets a clock.

    Parameters
    ----------
    verilog : str
        Complete Verilog text of a unit without flip-flops. Outputs called ``ready`` or ``..._ready`` run against the
        data and stay wires.
    top : str
        Name of its top module.
    library : Library, Path or None
        Liberty file; :data:`hw.liberty.GENERIC` by default.
    period_ns, period_nand2 : float or None
        The clock period: one of them.
    scripts : tuple of str
        Keys of :data:`hw.abc_scripts.SCRIPTS` to try.

    Raises
    ------
    SynthesisError
        If the unit has flip-flops, or no script gives logic that can meet the period.
    ValueError
        If not exactly one period is given, it is not above 0, or it is in nanoseconds and the library has none.
    """
    library = library if isinstance(library, Library) else read_library(library)
    if (period_ns is None) == (period_nand2 is None):
        raise ValueError("exactly one of period_ns and period_nand2 must be given")
    if period_nand2 is None:
        if library.relative:
            raise ValueError(f"period must be in NAND2 delays for library {library.name}, which has no nanoseconds")
        assert period_ns is not None
        period_nand2 = period_ns / (library.nand2_delay * library.nanoseconds)
    if not period_nand2 > 0:
        raise ValueError(f"period must be above 0, not {period_nand2!r}")
    if not scripts:
        raise ValueError("scripts must name at least one script")
    kept = kept_file(verilog, top, library, scripts[0], "pipeline", repr(period_nand2), *scripts)
    if kept.exists():
        document = json.loads(kept.read_text())
        return Pipeline(Synthesis(**document.pop("synthesis")), **document)
    flip_flop = _flip_flop(library)
    found: list[tuple[Synthesis, int]] = []
    for script in scripts:
        core = mapped_netlist(verilog, top, library, script=script)
        if core.flip_flops(library):
            raise SynthesisError(f"{top} must be combinational to be pipelined, and has flip-flops")
        if found and core.area(library) / library.gate_area >= min(synthesis.area_ge for synthesis, _ in found):
            continue
        made = _fit(core, library, flip_flop, period_nand2 * library.nand2_delay)
        if made is not None:
            netlist, registers = made
            _check(core, netlist, library, registers, top)
            found.append((measure(netlist, top, library, verilog=verilog, script=script), registers))
    if not found:
        raise SynthesisError(f"{top} can't run at a period of {period_nand2:.3g} NAND2 delays in {library.name}")
    synthesis, registers = min(found, key=lambda pair: pair[0].area_ge)
    unit = None if library.relative else library.nand2_delay * library.nanoseconds
    result = Pipeline(synthesis, registers, period_nand2, unit and unit * period_nand2)
    replace_text(kept, json.dumps(asdict(result)))
    return result


def _fit(core: Netlist, library: Library, flip_flop: FlipFlop, period: float) -> tuple[Netlist, int] | None:
    """Return the smallest pipeline found that meets ``period`` when timed as it is."""
    delays = analyse(core, library).delays
    best: tuple[float, Netlist, int] | None = None
    for late in (False, True):
        part, hits = _FIRST_PART, 0
        for _ in range(_TRIES):
            stages = Stages(core, library, delays, launch=flip_flop.launch, setup=flip_flop.setup, period=period * part)
            if not stages.possible or hits == _HITS:
                break
            netlist = registered(core, library, stages.numbers(late=late), stages.count, flip_flop)
            if analyse(netlist, library).delay <= period:
                hits += 1
                area = netlist.area(library)
                if best is None or area < best[0]:
                    best = area, netlist, stages.count
            part *= _STEP
    return None if best is None else best[1:]


@dataclass(frozen=True)
class FlipFlop:
    """What the library's mapping makes of a plain flip-flop.

    Parameters
    ----------
    instances : list of Instance
        The cell, and whatever stands beside it; net names are ``c``, ``d`` and ``q`` and texts of their own.
    launch, setup : float
        Clock edge to output with the load of a NAND2 chain, and setup, in the library's unit of time.
    """

    instances: list[Instance]
    launch: float
    setup: float


def _flip_flop(library: Library) -> FlipFlop:
    netlist = mapped_netlist(_FLIP_FLOP, "one_flip_flop", library, script="quick")
    names: dict[Net, Net] = {netlist.inputs["c"][0]: "c", netlist.inputs["d"][0]: "d", netlist.outputs["q"][0]: "q"}
    names |= {constant: constant for constant in ("0", "1", "x")}
    instances = [
        Instance(instance.cell, {pin: names.get(net, f"inner{net}") for pin, net in instance.pins.items()})
        for instance in netlist.instances
    ]
    # From the input through setup, and from the clock to the output; the longer is what analyse returns, so
    # each is asked for alone.
    setup = analyse(Netlist(netlist.inputs, {}, netlist.instances), library).delay
    launch = analyse(Netlist({"c": netlist.inputs["c"]}, netlist.outputs, netlist.instances), library).delay
    return FlipFlop(instances, launch, setup)


def registered(core: Netlist, library: Library, stage: dict[int, int], count: int, flip_flop: FlipFlop) -> Netlist:
    """Return ``core`` with flip-flops between its stages.

    Parameters
    ----------
    core : Netlist
        Combinational.
    library : Library
        Its cells.
    stage : dict of int to int
        Stage of each instance by number, from 1; no lower than that of any instance that drives it.
    count : int
        Number of stages.
    flip_flop : FlipFlop
        What to put on a net at each boundary.
    """
    driven: dict[Net, int] = {net: 1 for bits in core.inputs.values() for net in bits}
    fixed: set[Net] = {"0", "1", "x"}
    for number, instance in enumerate(core.instances):
        cell = library.cells[instance.cell]
        for pin in cell.functions:
            if pin in instance.pins:
                net = instance.pins[pin]
                driven[net] = stage[number]
                if not cell.capacitance:
                    fixed.add(net)
    instances: list[Instance] = []
    copies: dict[tuple[Net, int], Net] = {}

    def at(net: Net, where: int) -> Net:
        """Return the net that carries ``net`` in stage ``where``."""
        if net in fixed or driven[net] == where:
            return net
        if (net, where) not in copies:
            before, behind = at(net, where - 1), f"{net}_in_{where}"
            names: dict[Net, Net] = {"c": "clock", "d": before, "q": behind, "0": "0", "1": "1", "x": "x"}
            instances.extend(
                Instance(part.cell, {pin: names.get(wire, f"{behind}_{wire}") for pin, wire in part.pins.items()})
                for part in flip_flop.instances
            )
            copies[net, where] = behind
        return copies[net, where]

    for number, instance in enumerate(core.instances):
        cell = library.cells[instance.cell]
        instances.append(
            Instance(
                instance.cell,
                {pin: at(net, stage[number]) if pin in cell.capacitance else net for pin, net in instance.pins.items()},
            )
        )
    outputs = {
        port: bits if port == "ready" or port.endswith("_ready") else [at(net, count + 1) for net in bits]
        for port, bits in core.outputs.items()
    }
    inputs: dict[str, list[Net]] = {**core.inputs, "clock": ["clock"]}
    return Netlist(inputs, outputs, instances)


def _check(core: Netlist, netlist: Netlist, library: Library, registers: int, top: str) -> None:
    """Raise if the pipeline answers other than the core for any of some random operands."""
    random = np.random.default_rng(1)
    inputs = {port: random.integers(0, 2**63, _CASES, dtype=np.uint64) for port in core.inputs}
    wanted = evaluate(core, library, inputs)
    given = evaluate(netlist, library, inputs, cycles=registers)
    for port, values in wanted.items():
        if not np.array_equal(values, given[port]):
            raise SynthesisError(f"the pipeline of {top} gives other results on {port}: this is a fault of nearkv")
