"""Promise: modules that are alike become one, and those that differ in anything stay."""

from __future__ import annotations

import re

from hw.alike import merge_alike
from hw.conversion import convert
from hw.params import ReductionParams
from hw.units.reduction import ReductionUnit


def _module(name: str, *instances: tuple[str, str], wire: str = "a") -> str:
    places = "".join(f"  {module} {place} (\n    .a(a)\n  );\n" for module, place in instances)
    return f"module {name} (a);\n  input {wire};\n{places}endmodule\n"


def _names(verilog: str) -> list[str]:
    return re.findall(r"^module (\\\S+|\w+)", verilog, re.MULTILINE)


def test_alike_leaves_make_their_parents_alike() -> None:
    text = (
        _module("top", ("\\top.x ", "x"), ("\\top.y ", "y"), ("\\top.z ", "z"))
        + _module("\\top.x ", ("\\top.x.leaf ", "leaf"))
        + _module("\\top.x.leaf ")
        + _module("\\top.y ", ("\\top.y.leaf ", "leaf"))
        + _module("\\top.y.leaf ")
        + _module("\\top.z ", ("\\top.z.leaf ", "leaf"))
        + _module("\\top.z.leaf ", wire="[1:0] a")
    )
    merged = merge_alike(text)
    assert _names(merged) == ["top", "\\top.x", "\\top.x.leaf", "\\top.z", "\\top.z.leaf"]
    assert re.findall(r"^  (\S+) +(\w+) \(", merged, re.MULTILINE) == [
        ("\\top.x", "x"),
        ("\\top.x", "y"),
        ("\\top.z", "z"),
        ("\\top.x.leaf", "leaf"),
        ("\\top.z.leaf", "leaf"),
    ]


def test_numbers_of_the_writer_are_no_difference() -> None:
    helper = "  reg \\$auto$verilog_backend.cc:2355:dump_module${} = 0;\n"
    first, second, third = (
        f"module {name} (a);\n{''.join(map(helper.format, numbers))}endmodule\n"
        for name, numbers in (("b", (5, 6)), ("c", (17, 18)), ("d", (7,)))
    )
    top = _module("top", ("b", "x"), ("c", "y"), ("d", "z"))
    assert _names(merge_alike(top + first + second + third)) == ["top", "b", "d"]


def test_modules_with_parameters_and_text_without_modules_stay() -> None:
    cells = "module {} #(parameter WIDTH = 1) (a);\nendmodule\n"
    text = cells.format("one") + cells.format("two")
    assert merge_alike(text) == text
    assert merge_alike("") == ""


def test_every_placed_module_is_there_in_the_text_of_a_unit() -> None:
    text = convert(ReductionUnit(ReductionParams(head_dim=4, lanes=2, num_sources=2)), name="reduction")
    merged = merge_alike(text)
    names = _names(merged)
    assert len(names) == len(set(names)) < len(_names(text))
    placed = re.findall(r"^ +(\\\S+|\w+) +(?:\\\S+|\w+) +\($", merged, re.MULTILINE)
    assert set(names) == {"reduction", *placed}
