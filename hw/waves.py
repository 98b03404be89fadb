"""Waveforms of Verilated runs: asked for by the environment, as a test that fails is run again to get one.

``NEARKV_WAVES`` names the folder that they go to. Without it no model is built for tracing, which costs half its speed.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hw.verilate import Harness

__all__ = ["TRACED_CYCLES", "WAVES_FOLDER", "runs_so_far", "traced", "wave_file"]

WAVES_FOLDER = "NEARKV_WAVES"
"""Environment variable that names the folder of waveforms."""

TRACED_CYCLES = 50_000
"""Cycles of a native run that its waveform shows, the first ones: a channel writes some 10 kB in each."""

_runs = 0


def wave_file(top: str) -> Path | None:
    """Return where the waveform of the run that begins goes, or None where none is asked for."""
    global _runs  # noqa: PLW0603
    _runs += 1
    named = os.environ.get(WAVES_FOLDER)
    if not named:
        return None
    folder = Path(named).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{len(list(folder.glob('*.vcd'))):03}-{top}.vcd"


def runs_so_far() -> int:
    """Return how many runs of Verilated models this process began."""
    return _runs


def traced(harness: Harness) -> Harness:
    """Return ``harness`` for a model that can write a waveform (VCD, which needs no library of the machine)."""
    return replace(
        harness,
        macros=(*harness.macros, "TRACE", "TRACE_VCD"),
        verilator_flags=(*harness.verilator_flags, "--trace-vcd"),
        runtime_sources=(*harness.runtime_sources, "verilated_vcd_c.cpp"),
    )
