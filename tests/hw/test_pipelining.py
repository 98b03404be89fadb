"""Registers moved into logic: the function stays, the clock is met, and the cut is the cheapest."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hw import pipelining
from hw.cuts import minimum_cut
from hw.liberty import read_library
from hw.netlist import evaluate
from hw.pipelining import pipeline, registered
from hw.synth import SynthesisError, mapped_netlist

if TYPE_CHECKING:
    from pathlib import Path

MULTIPLIER = """\
module top(input [5:0] a, input [5:0] b, input i__valid, input o__ready, output [11:0] o, output o__valid,
           output i__ready);
  assign o = a * b;
  assign o__valid = i__valid;
  assign i__ready = o__ready;
endmodule
"""


@pytest.fixture(autouse=True)
def own_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path / "build"))


def cheapest_by_trial(nodes: int, edges: list[tuple[int, int, int]]) -> int:
    """Smallest sum of capacities from a side with node 0 to one with node 1, over all sides."""
    return min(
        sum(c for s, t, c in edges if (s == 0 or s in side) and not (t == 0 or t in side))
        for size in range(nodes - 1)
        for side in map(set, itertools.combinations(range(2, nodes), size))
    )


@pytest.mark.parametrize("late", [False, True])
def test_minimum_cut_against_all_cuts(late: bool) -> None:
    drawn = random.Random(5)
    for _ in range(60):
        nodes = drawn.randint(2, 8)
        edges = [
            (source, target, drawn.choice([1, 1, 2, 3]))
            for source in range(nodes)
            for target in range(nodes)
            if source != target and target != 0 and source != 1 and drawn.random() < 0.4
        ]
        side = minimum_cut(nodes, edges, late=late)
        assert 0 in side
        assert 1 not in side
        assert sum(c for s, t, c in edges if s in side and t not in side) == cheapest_by_trial(nodes, edges)


def test_pipeline_meets_its_period_and_keeps_the_function() -> None:
    whole = pipeline(MULTIPLIER, "top", period_nand2=1000)
    assert whole.registers == 1
    assert whole.synthesis.flip_flops == 13  # twelve bits of the product and one valid
    areas = [whole.synthesis.area_ge]
    for period, fewest in ((25, 2), (18, 3)):
        result = pipeline(MULTIPLIER, "top", period_nand2=period)
        assert result.synthesis.delay_nand2 <= period
        assert result.registers >= fewest
        assert result.synthesis.flip_flops > 13
        assert result.period_ns is None
        areas.append(result.synthesis.area_ge)
    assert areas == sorted(areas)


def test_every_path_meets_each_boundary_once() -> None:
    library = read_library()
    core = mapped_netlist(MULTIPLIER, "top", library)
    flip_flop = pipelining._flip_flop(library)
    assert (flip_flop.launch, flip_flop.setup) == (pytest.approx(3.9, abs=1e-2), pytest.approx(2.1))
    stages = pipelining.Stages(
        core, library, pipelining.analyse(core, library).delays, launch=3.9, setup=2.1, period=18
    )
    assert stages.count > 2
    numbers = stages.numbers(late=False)
    netlist = registered(core, library, numbers, stages.count, flip_flop)
    a, b = (grid.ravel().astype(np.uint64) for grid in np.meshgrid(np.arange(64), np.arange(64)))
    ports = {"a": a, "b": b, "i__valid": a & np.uint64(1), "o__ready": b & np.uint64(1)}
    late = evaluate(netlist, library, ports, cycles=stages.count)
    assert np.array_equal(late["o"], a * b)
    assert np.array_equal(late["o__valid"], ports["i__valid"])
    # One edge earlier the last stage holds what the registers held at the start.
    early = evaluate(netlist, library, ports, cycles=stages.count - 1)
    assert not early["o__valid"].any()
    # Ready runs against the data and is a wire.
    assert np.array_equal(evaluate(netlist, library, ports)["i__ready"], ports["o__ready"])


def test_stage_of_a_cell_is_not_before_its_drivers() -> None:
    library = read_library()
    core = mapped_netlist(MULTIPLIER, "top", library)
    delays = pipelining.analyse(core, library).delays
    driver = {
        instance.pins[pin]: number
        for number, instance in enumerate(core.instances)
        for pin in library.cells[instance.cell].functions
    }
    for late in (False, True):
        numbers = pipelining.Stages(core, library, delays, launch=3.9, setup=2.1, period=16).numbers(late=late)
        for number, instance in enumerate(core.instances):
            for pin in library.cells[instance.cell].capacitance:
                source = driver.get(instance.pins[pin])
                assert source is None or numbers[source] <= numbers[number]


def test_cache_gives_the_same_without_running(monkeypatch: pytest.MonkeyPatch) -> None:
    first = pipeline(MULTIPLIER, "top", period_nand2=30, scripts=("quick",))
    monkeypatch.setattr(pipelining, "mapped_netlist", None)
    assert pipeline(MULTIPLIER, "top", period_nand2=30, scripts=("quick",)) == first


def test_refusals() -> None:
    with pytest.raises(ValueError, match="exactly one of period_ns and period_nand2 must be given"):
        pipeline(MULTIPLIER, "top")
    with pytest.raises(ValueError, match="period must be in NAND2 delays for library nearkv_generic"):
        pipeline(MULTIPLIER, "top", period_ns=1)
    with pytest.raises(ValueError, match="period must be above 0, not 0"):
        pipeline(MULTIPLIER, "top", period_nand2=0)
    with pytest.raises(SynthesisError, match="top can't run at a period of 6 NAND2 delays in nearkv_generic"):
        pipeline(MULTIPLIER, "top", period_nand2=6)
    with pytest.raises(ValueError, match="scripts must name at least one script"):
        pipeline(MULTIPLIER, "top", period_nand2=50, scripts=())
    register = "module top(input c, input d, output reg q); always @(posedge c) q <= d; endmodule\n"
    with pytest.raises(SynthesisError, match="top must be combinational to be pipelined, and has flip-flops"):
        pipeline(register, "top", period_nand2=50)
