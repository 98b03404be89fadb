"""Promise: the parts of a design sum to what can be counted by hand, alike ones once, memories and boxes apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hw import synth_parts
from hw.area_rows import area_rows
from hw.area_split import split_area
from hw.liberty import read_library
from hw.presets.devices import DEVICE_PRESETS
from hw.synth import SynthesisError, synthesise
from hw.synth_parts import CellArea, ModuleArea, module_areas, sum_areas
from hw.verilog import generate
from hw.verilog_modules import VerilogModules
from tests.helpers.data import data_file

if TYPE_CHECKING:
    from pathlib import Path

LEAVES = """\
module \\top.left (a, b, o);
  input a;
  wire a;
  input b;
  wire b;
  output o;
  wire o;
  wire \\$1 ;
  assign \\$1  = a & b;
  assign o = ~ \\$1 ;
endmodule

module \\top.right (a, b, o);
  input a;
  wire a;
  input b;
  wire b;
  output o;
  wire o;
  wire \\$27 ;
  assign \\$27  = a & b;
  assign o = ~ \\$27 ;
endmodule

module \\top.store (clk, we, wa, ra, d, q);
  input clk;
  wire clk;
  input we;
  wire we;
  input [2:0] wa;
  wire [2:0] wa;
  input [2:0] ra;
  wire [2:0] ra;
  input [7:0] d;
  wire [7:0] d;
  output [7:0] q;
  wire [7:0] q;
  reg [7:0] words [7:0];
  always @(posedge clk) begin
    if (we)
      words[wa] <= d;
  end
  assign q = ~ words[ra];
endmodule
"""
TOP = """\
module top(clk, we, wa, ra, d, q, x);
  input clk;
  wire clk;
  input we;
  wire we;
  input [2:0] wa;
  wire [2:0] wa;
  input [2:0] ra;
  wire [2:0] ra;
  input [7:0] d;
  wire [7:0] d;
  output [7:0] q;
  wire [7:0] q;
  output [1:0] x;
  reg [1:0] x;
  wire l;
  wire r;
  \\top.left  left (
    .a(d[0]),
    .b(d[1]),
    .o(l)
  );
  \\top.right  right (
    .a(d[2]),
    .b(d[3]),
    .o(r)
  );
  \\top.store  store (
    .clk(clk),
    .we(we),
    .wa(wa),
    .ra(ra),
    .d(d),
    .q(q)
  );
  always @(posedge clk)
    x <= { l, r };
endmodule
"""


@pytest.fixture
def own_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARKV_BUILD", str(tmp_path / "build"))


@pytest.mark.usefixtures("own_builds")
def test_parts_counted_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    library = read_library()
    found = module_areas(LEAVES + TOP, "top", library)
    assert [(area.path, area.module) for area in found] == [
        ("", "top"),
        ("/left", "\\top.left"),
        ("/right", "\\top.right"),
        ("/store", "\\top.store"),
    ]
    top, left, right, store = found
    nothing = CellArea(0, None, 0, 0)
    assert (top.logic.cells, top.logic.flip_flops, top.memory) == (2, 2, nothing)
    assert top.logic.area_ge == pytest.approx(2 * 7.36 / 1.38, abs=2e-3)
    # One NAND2 is one gate equivalent.
    assert left.logic == right.logic == CellArea(1, None, 1, 0)
    assert (store.logic.cells, store.logic.flip_flops) == (8, 0)  # the inverters behind the array
    assert store.memory.flip_flops == 64
    assert store.memory.area_ge > 64 * 7.36 / 1.38
    whole = sum_areas(part for area in found for part in (area.logic, area.memory))
    flat = synthesise(LEAVES + TOP, "top", library, script="quick")
    assert whole.flip_flops == flat.flip_flops == 66
    assert whole.area_ge == pytest.approx(flat.area_ge, rel=0.05)

    def refuse(*arguments: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr(synth_parts, "run_yosys", refuse)
    assert module_areas(LEAVES + TOP, "top", library) == found
    with pytest.raises(AssertionError):
        module_areas(LEAVES + TOP, "top", library, script="area")


@pytest.mark.usefixtures("own_builds")
def test_square_micrometres_of_a_library_that_has_them() -> None:
    (area,) = module_areas(LEAVES, "\\top.left", read_library(data_file("liberty", "sg13g2_typ.lib")))
    assert (area.logic.area_ge, area.logic.area_um2) == (1, 7.2576)


def test_alike_is_what_differs_in_numbers_alone() -> None:
    modules = VerilogModules.parse(LEAVES)
    assert modules.kind("\\top.left") == modules.kind("\\top.right") != modules.kind("\\top.store")
    other = VerilogModules.parse(LEAVES.replace("assign o = ~ \\$27 ;", "assign o = \\$27 ;"))
    assert other.kind("\\top.left") != other.kind("\\top.right")
    with pytest.raises(ValueError, match=r"^modules must have names of their own, not two \\top.left$"):
        VerilogModules.parse(LEAVES + LEAVES)


@pytest.mark.usefixtures("own_builds")
def test_refusals_are_one_line() -> None:
    library = read_library()
    with pytest.raises(SynthesisError, match=r"^top can't be synthesised: module \\top.left is not part"):
        module_areas(TOP, "top", library)
    with pytest.raises(SynthesisError, match=r"^Yosys can't synthesise 1 modules: .*syntax error") as caught:
        module_areas(LEAVES.replace("assign o = ~ \\$1 ;", "assign o = ;"), "\\top.left", library)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="script must be one of area, quick, sized, flatter, delay, not 'fastest'"):
        module_areas(LEAVES, "\\top.left", library, script="fastest")


def _area(path: str, module: str, logic: float, memory: float = 0) -> ModuleArea:
    return ModuleArea(path, module, CellArea(logic, None, 1, 0), CellArea(memory, None, int(memory), int(memory)))


def test_rows_hold_what_is_inside_them_and_has_no_row() -> None:
    areas = [
        _area("", "top", 1),
        _area("/link_0", "x", 10),
        _area("/link_0/fifo", "y", 0, 100),
        _area("/link_1", "z", 10, 4),
        _area("/glue", "g", 2),
        _area("/glue/unit", "unit", 1000),
        _area("/glue/unit/link_0", "a", 10000),
    ]
    rows = area_rows(areas, ["unit", "top"], ["link_0", "link_1"])
    assert [(row.name, row.count, row.total.area_ge, row.memory.area_ge) for row in rows] == [
        ("unit", 1, 11000, 0),
        ("top", 1, 3, 0),
        ("link", 2, 124, 104),
    ]
    assert rows[2].each_ge == 62
    assert sum(row.total.area_ge for row in rows) == 11127


def test_a_split_puts_arrays_apart_and_the_rest_by_place() -> None:
    areas = [
        _area("", "top", 1),
        _area("/array", "a", 10, 5),
        _area("/array/lane_0", "l", 100),
        _area("/other", "o", 4),
    ]
    split = split_area(areas, "processing")
    assert (split.datapath.area_ge, split.buffer.area_ge, split.control.area_ge) == (110, 5, 5)
    assert split.total.area_ge == 120
    assert split.share("buffer") == pytest.approx(5 / 120)
    with pytest.raises(ValueError, match=r"^modules of processing must be in one of array, softmax, none is$"):
        split_area(areas[:1], "processing")


@pytest.mark.parametrize("unit", ["processing", "reduction", "score_adder", "state_join"])
def test_parts_of_a_unit_sum_to_the_unit_flattened(unit: str) -> None:
    """What is lost across borders is below 5 %; the whole is kept by the tests of the area command."""
    source = generate(unit, "tiny")
    library = read_library()
    found = module_areas(source.text, source.top, library)
    whole = sum_areas(part for area in found for part in (area.logic, area.memory))
    flat = synthesise(source.text, source.top, library, script="quick")
    assert 0.99 * flat.area_ge < whole.area_ge < 1.05 * flat.area_ge
    assert flat.flip_flops <= whole.flip_flops < 1.02 * flat.flip_flops


def test_modules_of_a_device_are_counted_as_they_are_placed() -> None:
    """One channel of pam: 16 groups of 4 banks; counted in its text, without synthesis."""
    from hw.device_verilog import device_parts

    channel = DEVICE_PRESETS["pam"].channel
    part = device_parts("pam")[0]
    modules = VerilogModules.parse(part.text())
    placed = [name for _, name in synth_parts.placed_modules(modules, part.modules[-1].name)]
    counts = {module.name.removeprefix("nearkv_"): placed.count(module.name) for module in part.modules}
    banks = channel.organisation.banks_per_channel
    assert (banks, channel.groups) == (64, 16)
    assert counts == {
        "processing_enabled": banks,
        "state_join_enabled": channel.groups,
        "score_adder_enabled": channel.groups,
        "bank_group": channel.groups,
        "channel": 1,
    }
