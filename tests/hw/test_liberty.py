"""Liberty files: what is read of them, and the one line that says why one can't be used."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from hw.boolean import parse_function
from hw.liberty import GENERIC, LibertyError, read_library
from hw.libraries.generic import liberty_text
from tests.helpers.data import data_file

if TYPE_CHECKING:
    from pathlib import Path

FLIP_FLOP = """
  cell (REG) { area : 5; ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; }
    pin (D) { direction : input; capacitance : 1; } pin (CK) { direction : input; capacitance : 1; clock : true; }
    pin (Q) { direction : output; function : "IQ"; } }
"""
NAND2 = """
  cell (ND) { area : 4;
    pin (X1) { direction : input; capacitance : 1; } pin (X2) { direction : input; capacitance : 1; }
    pin (Z) { direction : output; function : "FUNCTION";
      timing () { related_pin : "X1 X2"; timing_sense : negative_unate;
        cell_rise (scalar) { values ("3"); } rise_transition (scalar) { values ("1"); }
        cell_fall (scalar) { values ("1"); } fall_transition (scalar) { values ("1"); } } } }
"""


def text(function: str = "!(X1&X2)", *, flip_flop: str = FLIP_FLOP) -> str:
    return f'library (small) {{ time_unit : "10ps";{NAND2.replace("FUNCTION", function)}{flip_flop}}}\n'


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "cells.lib"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "function",
    ["!(X1&X2)", "(X1*X2)'", "!(X1 X2)", "!X1|!X2", "X1' + X2'", "(!X2)+(!X1)", "!((X1)&(X2))", "1^(X1*X2)"],
)
def test_nand2_is_known_by_its_function(function: str, tmp_path: Path) -> None:
    library = read_library(written(tmp_path, text(function)))
    assert library.nand2.name == "ND"
    assert library.gate_area == 4
    assert library.nanoseconds == 0.01
    assert library.nand2_delay == 2  # the mean of 3 and 1
    assert library.cells["REG"].flip_flop == ("IQ", "IQN", "CK", "D")


@pytest.mark.parametrize("function", ["!(X1|X2)", "X1&X2", "!X1", "!(X1^X2)"])
def test_other_functions_are_no_nand2(function: str, tmp_path: Path) -> None:
    with pytest.raises(LibertyError, match="no NAND of two inputs"):
        read_library(written(tmp_path, text(function)))


def test_functions_bind_inversion_then_xor_then_and_then_or() -> None:
    # The truth tables by hand: bit i is the value where A, B, C are bits 0, 1, 2 of i.
    assert parse_function("A+B*C").truth_table("ABC") == 0b11101010
    assert parse_function("A B ^ C").truth_table("ABC") == 0b00101000
    assert parse_function("!A&B'").truth_table("AB") == 0b0001
    assert parse_function("0").truth_table("A") == 0
    assert parse_function("(A)").inputs == ("A",)
    for wrong in ("", "A &", "(A", "A ? B", ")"):
        with pytest.raises(ValueError, match="function must be an expression of pins"):
            parse_function(wrong)


def test_packed_and_crlf_files_are_the_same_library(tmp_path: Path) -> None:
    plain = read_library(written(tmp_path, text()))
    crlf = read_library(written(tmp_path, text().replace("\n", "\r\n")))
    packed = read_library(written(tmp_path, gzip.compress(text().encode())))
    assert plain.sha256 == crlf.sha256 == packed.sha256


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a liberty file: it has no library"),
        ("module top; endmodule", "not a liberty file: it has no library"),
        ("library (x) { cell (A) { area : 1;", "the file ends in the middle"),
        ("library (x) { } }", "not a liberty file: it closes a group that was not opened"),
        ("library (x) { }", "library x has no NAND of two inputs"),
        (text(flip_flop=""), "library small has no flip-flop"),
        (text().replace("area : 4", "area : four"), "a cell can't be read: could not convert"),
        (text().replace('"3"', '"3, 4"'), "table scalar must have 1 values, not 2"),
        (b"\x1f\x8bnothing", "can't be unpacked"),
    ],
)
def test_what_can_not_be_used_is_refused_in_one_line(content: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(LibertyError, match=r"^liberty file .*cells\.lib") as caught:
        read_library(written(tmp_path, content))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LibertyError, match=r"nowhere.lib can't be read: No such file"):
        read_library(tmp_path / "nowhere.lib")


def test_generic_library_is_what_its_generator_writes() -> None:
    assert GENERIC.read_text() == liberty_text()
    library = read_library()
    assert library.relative
    assert library.nand2.name == "NAND2"
    assert library.gate_area == 1
    assert library.nand2_delay == pytest.approx(1, abs=1e-4)
    # Figures of the public libraries by hand: XOR2 is 2 in one and 3.22/1.38 in the other.
    assert library.cells["XOR2"].area == pytest.approx((2 + 3.22 / 1.38) / 2, abs=1e-3)
    assert [cell.name for cell in library.cells.values() if cell.flip_flop] == ["DFF"]


def test_sg13g2() -> None:
    library = read_library(data_file("liberty", "sg13g2_typ.lib"))
    assert library.name == "sg13g2_stdcell_typ_1p20V_25C"
    assert library.nand2.name == "sg13g2_nand2_1"
    assert library.gate_area == 7.2576
    assert 0.04 < library.nand2_delay * library.nanoseconds < 0.07
    assert not library.relative
    assert len(library.cells) == 78
    assert not library.cells["sg13g2_fill_1"].usable
