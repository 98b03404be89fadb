"""The machine: units in Amaranth, their parameters, timing formulas and Verilog.

This package and ``hw.units`` load nothing on import, so that ``hw.params`` and ``hw.timing`` stay free of Amaranth.
"""
