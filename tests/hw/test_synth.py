"""Synthesis: areas and delays that can be counted by hand, and what is said of Verilog that can't be synthesised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from hw import synth
from hw.liberty import read_library
from hw.netlist import Instance, Netlist, NetlistError, evaluate
from hw.static_timing import analyse
from hw.synth import SynthesisError, mapped_netlist, synthesise
from tests.helpers.data import data_file

if TYPE_CHECKING:
    from pathlib import Path

GATE = "module top(input a, input b, output o); assign o = ~(a & b); endmodule\n"
REGISTER = """\
module top(input clk, input [3:0] d, output reg [3:0] q);
  always @(posedge clk) q <= d;
endmodule
"""
UNIT = 2 + 2 * 4 / 3  # one NAND2 delay in the unit of logical effort


@pytest.fixture(autouse=True)
def own_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path / "build"))


def test_one_nand2_is_one_gate_equivalent() -> None:
    result = synthesise(GATE, "top")
    assert (result.area_ge, result.cells, result.flip_flops) == (1, 1, 0)
    assert result.delay_nand2 == pytest.approx(1, abs=1e-3)  # it drives two of its like, as an output is taken to
    assert result.area_um2 is None
    assert result.delay_ns is None
    assert result.library == "nearkv_generic"
    assert result.yosys == "0.70"


def test_four_bit_register_is_four_flip_flops() -> None:
    result = synthesise(REGISTER, "top")
    assert (result.cells, result.flip_flops) == (4, 4)
    assert result.area_ge == pytest.approx(4 * 7.36 / 1.38, abs=2e-3)
    assert result.flip_flop_ge == result.area_ge
    # The clock edge to an output with the load of two NAND2 inputs; no logic before the next edge.
    assert result.delay_nand2 == pytest.approx(3.9, abs=1e-2)


@pytest.mark.parametrize("length", [1, 2, 9])
def test_delay_of_an_inverter_chain_is_that_of_its_stages(length: int) -> None:
    library = read_library()
    chain = Netlist({"a": [0]}, {"o": [length]}, [Instance("INV", {"A": i, "Y": i + 1}) for i in range(length)])
    # By logical effort: parasitic 1 and load 1 each, the last with the load of two NAND2 inputs.
    expected = (2 * (length - 1) + 1 + 2 * 4 / 3) / UNIT
    assert analyse(chain, library).delay == pytest.approx(expected, abs=1e-3)


def test_period_is_clock_to_output_logic_and_setup() -> None:
    library = read_library()
    flip_flops = [Instance("DFF", {"C": "clk", "D": 0, "Q": 1}), Instance("DFF", {"C": "clk", "D": 2, "Q": 3})]
    netlist = Netlist({"clk": ["clk"], "d": [0]}, {}, [*flip_flops, Instance("INV", {"A": 1, "Y": 2})])
    launch = 3.9 + (1 - 2 * 4 / 3) / UNIT
    assert analyse(netlist, library).delay == pytest.approx(launch + (1 + 0.8) / UNIT + 2.1, abs=1e-3)


def test_cache_gives_the_same_without_running(monkeypatch: pytest.MonkeyPatch) -> None:
    first = synthesise(GATE, "top")

    def refuse(*arguments: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr(synth, "_run", refuse)
    assert synthesise(GATE, "top") == first
    with pytest.raises(AssertionError):
        synthesise(GATE, "top", script="quick")


def test_netlist_computes_what_the_verilog_says() -> None:
    verilog = "module top(input [5:0] a, input [5:0] b, output [11:0] o); assign o = a * b; endmodule\n"
    library = read_library()
    a, b = (grid.ravel().astype(np.uint64) for grid in np.meshgrid(np.arange(64), np.arange(64)))
    for script in ("area", "quick", "sized", "flatter", "delay"):
        netlist = mapped_netlist(verilog, "top", library, script=script)
        assert np.array_equal(evaluate(netlist, library, {"a": a, "b": b})["o"], a * b)


@pytest.mark.parametrize(
    ("verilog", "message"),
    [
        ("module top(input a, output o); assign o = ; endmodule", "Yosys can't synthesise top: .*syntax error"),
        ("module other; endmodule", "Yosys can't synthesise top: ERROR: Module `top' not found"),
        (
            "module top(input a, output o); strange x(.a(a), .o(o)); endmodule",
            "Yosys can't synthesise top: ERROR: Module `\\\\strange' .* is not part of the design",
        ),
        (
            "module top(input e, input d, output reg q); always @* if (e) q = d; endmodule",
            "Yosys can't synthesise top: ERROR: FF .* cannot be legalized: D latches are not supported",
        ),
    ],
)
def test_refusals_hold_the_complaint_in_one_line(verilog: str, message: str) -> None:
    with pytest.raises(SynthesisError, match=message) as caught:
        synthesise(verilog, "top")
    assert "\n" not in str(caught.value)


def test_unknown_script_is_refused() -> None:
    with pytest.raises(ValueError, match="script must be one of area, quick, sized, flatter, delay, not 'fastest'"):
        synthesise(GATE, "top", script="fastest")


def test_cells_that_the_library_lacks_are_named() -> None:
    cells = {"x": {"type": "ODD", "connections": {}}, "y": {"type": "INV", "connections": {"A": [2], "Y": [3]}}}
    with pytest.raises(NetlistError, match=r"^library nearkv_generic has no cell for ODD$"):
        Netlist.from_yosys({"modules": {"top": {"cells": cells, "ports": {}}}}, "top", read_library())


def test_loops_have_no_timing() -> None:
    ring = Netlist({}, {"o": [1]}, [Instance("INV", {"A": 1, "Y": 2}), Instance("INV", {"A": 2, "Y": 1})])
    with pytest.raises(NetlistError, match="combinational loop"):
        analyse(ring, read_library())


def test_sg13g2_has_square_micrometres_and_nanoseconds() -> None:
    result = synthesise(GATE, "top", data_file("liberty", "sg13g2_typ.lib"))
    assert (result.area_ge, result.area_um2) == (1, 7.2576)
    assert result.delay_ns is not None
    assert result.delay_nand2 == pytest.approx(1, rel=0.2)  # the slower input and edge, not the mean
    assert result.delay_ns / result.delay_nand2 == pytest.approx(result.nand2_ns)
