"""Rows of the exponential study without tools: accuracy from the golden model, areas that a test chooses."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from golden.exp.catalogue import UNITS
from golden.exp.statistics import measure
from sim.studies.exp_area import CLOCKS_NS
from sim.studies.exp_downstream import downstream

__all__ = ["study_row"]


def study_row(name, area_ge=1000.0, /, **changes):
    """Return the row of the unit ``name`` of the catalogue, with an area and any other change of the caller's."""
    spec = UNITS[name]
    results = spec.evaluate_codes(np.arange(1 << 16))
    delay = area_ge / 10
    pipelined = [
        {
            "clock_ns": clock,
            "clock_nand2": clock / 0.05,
            "registers": 2,
            "flip_flops": 9,
            "area_ge": 2 * area_ge / clock,
        }
        | {"delay_ns": clock, "delay_nand2": clock / 0.05}
        for clock in CLOCKS_NS
    ]
    row = {
        "name": name,
        "family": spec.family,
        "parameters": {**spec.parameters, "evaluation": spec.evaluation, "registers": spec.registers},
        "format": spec.fmt.name,
        "result_format": spec.result_fmt.name,
        "domain": spec.domain,
        "subnormals": spec.subnormals,
        **asdict(measure(results, spec.fmt, spec.domain, spec.result_fmt)),
        "equal_to_golden": True,
        "latency_cycles": spec.latency_cycles,
        "interval_cycles": spec.interval_cycles,
        "area_ge": area_ge,
        "area_um2": 7.2576 * area_ge,
        "cells": int(area_ge / 2),
        "flip_flops": 0,
        "delay_ns": delay * 0.05,
        "delay_nand2": delay,
        "results_per_nand2_per_ge": 1 / (delay * area_ge),
        "results_per_s_per_ge": 1e9 / (delay * 0.05 * area_ge),
        "pipelined": pipelined,
        "library": "a library",
        "library_sha256": "0" * 64,
        "yosys": "a Yosys",
        "abc_script": "area",
        **downstream(results, spec.fmt, spec.result_fmt),
        "verilog_sha256": "0" * 64,
        "provenance": {"area": {"class": "modelled", "parts": []}},
        "pareto": False,
    }
    return row | changes
