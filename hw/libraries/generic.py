"""Writes ``nearkv_generic.lib``: a cell library of no process, in gate equivalents and NAND2 delays.

``python -m hw.libraries.generic`` writes the file beside this module; a test holds the two equal.

Areas are the means of the smallest cells of two public libraries, each divided by its own smallest NAND2:
IHP sg13g2 (``area`` in sg13g2_stdcell_typ_1p20V_25C.lib, NAND2 7.2576 um2) and SkyWater sky130_fd_sc_hd
(``SIZE`` in the cells' LEF files, NAND2 1.38 um wide, all cells equally high). Delays and input loads follow
the method of logical effort (Sutherland, Sproull, Harris, *Logical Effort*, 1999, tables 1.1 and 1.2): with
all gates of equal drive, an input of a gate is a load of its effort g, and its delay is p + load. The unit is
14/3 of the method's, the delay of a NAND2 that drives two of its like: 2 + 2 * 4/3.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["liberty_text"]

# name: function, inputs, area in sg13g2, in sky130 (None: has none), effort g, parasitic p
_GATES: dict[str, tuple[str, str, float | None, float | None, float, float]] = {
    "INV": ("!A", "A", 0.75, 1.0, 1, 1),
    "NAND2": ("!(A&B)", "AB", 1.0, 1.0, 4 / 3, 2),
    "NAND3": ("!(A&B&C)", "ABC", 1.25, 1.84 / 1.38, 5 / 3, 3),
    "NAND4": ("!(A&B&C&D)", "ABCD", 1.5, 2.3 / 1.38, 2, 4),
    "NOR2": ("!(A|B)", "AB", 1.0, 1.0, 5 / 3, 2),
    "NOR3": ("!(A|B|C)", "ABC", 1.25, 1.84 / 1.38, 7 / 3, 3),
    "NOR4": ("!(A|B|C|D)", "ABCD", 1.5, 2.3 / 1.38, 3, 4),
    "AOI21": ("!((A&B)|C)", "ABC", 1.25, 1.84 / 1.38, 2, 7 / 3),
    "OAI21": ("!((A|B)&C)", "ABC", 1.25, 1.84 / 1.38, 2, 7 / 3),
    "AOI22": ("!((A&B)|(C&D))", "ABCD", 1.4948, 2.76 / 1.38, 2, 4),
    "OAI22": ("!((A|B)&(C|D))", "ABCD", None, 2.3 / 1.38, 2, 4),
    "XOR2": ("A^B", "AB", 2.0, 3.22 / 1.38, 4, 4),
    "XNOR2": ("!(A^B)", "AB", 2.0, 3.22 / 1.38, 4, 4),
    # Two stages: the parasitic is the first gate's with an inverter as its load, and the inverter's own.
    "BUF": ("A", "A", 1.0, 1.0, 1, 3),
    "AND2": ("A&B", "AB", 1.25, 2.3 / 1.38, 4 / 3, 4),
    "OR2": ("A|B", "AB", 1.25, 2.3 / 1.38, 5 / 3, 4),
    "MUX2": ("(A&!S)|(B&S)", "ABS", 2.5, 4.14 / 1.38, 2, 6),
}

# The plain flip-flop of sky130 (7.36 um wide); sg13g2 has none without a reset. Clock to output (driving two NAND2
# inputs), setup and loads are those of sg13g2_dfrbp_1 over its NAND2's: 3.9, 2.1, and 0.9 (clock) and 0.6 (data).
_FLIP_FLOP_AREA = 7.36 / 1.38
_CLOCK_TO_OUTPUT = 3.9
_SETUP = 2.1
_CLOCK_LOAD, _DATA_LOAD = 0.9 * 4 / 3, 0.6 * 4 / 3
_UNIT = 2 + 2 * 4 / 3
_LOADS = (0.0, 100.0)

_HEADER = """\
/* Written by hw/libraries/generic.py, which says where each figure comes from.
   Areas are gate equivalents (NAND2 = 1); "1ns" stands for one NAND2 delay, that of a NAND2 driving two of its
   like; "1pf" stands for the input of an inverter. */
library (nearkv_generic) {
  define (relative_units, library, boolean);
  relative_units : true;
  delay_model : table_lookup;
  time_unit : "1ns";
  voltage_unit : "1V";
  current_unit : "1mA";
  pulling_resistance_unit : "1kohm";
  leakage_power_unit : "1nW";
  capacitive_load_unit (1, pf);
  nom_voltage : 1.0;
  nom_temperature : 25;
  nom_process : 1;
  default_max_transition : 1000;
  input_threshold_pct_rise : 50;
  input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50;
  output_threshold_pct_fall : 50;
  slew_lower_threshold_pct_rise : 20;
  slew_lower_threshold_pct_fall : 20;
  slew_upper_threshold_pct_rise : 80;
  slew_upper_threshold_pct_fall : 80;
  lu_table_template (linear) {
    variable_1 : input_net_transition;
    variable_2 : total_output_net_capacitance;
    index_1 ("0, 1000");
    index_2 ("0, 100");
  }
"""


def liberty_text() -> str:
    """Return the text of the library."""
    return _HEADER + "".join(_gate(name) for name in _GATES) + _flip_flop() + "}\n"


def _gate(name: str) -> str:
    function, inputs, *areas, effort, parasitic = _GATES[name]
    known = [area for area in areas if area is not None]
    positive = name in ("BUF", "AND2", "OR2")
    sense = "non_unate" if "X" in name else "positive_unate" if positive else "negative_unate"
    pins = "".join(f"    pin ({pin}) {{ direction : input; capacitance : {effort:.4f}; }}\n" for pin in inputs)
    arcs = "".join(_timing(pin, sense, parasitic / _UNIT) for pin in inputs)
    return (
        f"  cell ({name}) {{\n    area : {sum(known) / len(known):.3f};\n{pins}"
        f'    pin (Y) {{\n      direction : output; max_capacitance : 100; function : "{function}";\n'
        f"{arcs}    }}\n  }}\n"
    )


def _timing(pin: str, sense: str, intrinsic: float, kind: str = "combinational") -> str:
    row = ", ".join(f"{intrinsic + load / _UNIT:.4f}" for load in _LOADS)
    tables = "".join(
        f'        {table} (linear) {{ values ("{row}", "{row}"); }}\n'
        for table in ("cell_rise", "rise_transition", "cell_fall", "fall_transition")
    )
    return (
        f'      timing () {{\n        related_pin : "{pin}"; timing_sense : {sense}; timing_type : {kind};\n'
        f"{tables}      }}\n"
    )


def _flip_flop() -> str:
    constraint = "".join(
        f'        {edge}_constraint (scalar) {{ values ("{_SETUP}"); }}\n' for edge in ("rise", "fall")
    )
    return (
        f"  cell (DFF) {{\n    area : {_FLIP_FLOP_AREA:.3f};\n"
        '    ff (IQ, IQN) { clocked_on : "C"; next_state : "D"; }\n'
        f"    pin (C) {{ direction : input; clock : true; capacitance : {_CLOCK_LOAD:.4f}; }}\n"
        f"    pin (D) {{\n      direction : input; capacitance : {_DATA_LOAD:.4f};\n"
        f'      timing () {{\n        related_pin : "C"; timing_type : setup_rising;\n{constraint}      }}\n    }}\n'
        '    pin (Q) {\n      direction : output; max_capacitance : 100; function : "IQ";\n'
        + _timing("C", "non_unate", _CLOCK_TO_OUTPUT - 2 * 4 / 3 / _UNIT, "rising_edge")
        + "    }\n  }\n"
    )


if __name__ == "__main__":
    (Path(__file__).parent / "nearkv_generic.lib").write_text(liberty_text())
