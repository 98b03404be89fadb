"""Promise: parameters, timing, presets and the harness load without Amaranth, so that they load in a blink."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module", ["golden.attention", "hw.params", "hw.timing.processing", "hw.memory.rules", "hw.presets", "sim.cli"]
)
def test_loading_brings_no_hardware_description(module: str) -> None:
    program = (
        f"import sys, {module}; print(*sorted(m for m in sys.modules if m.split('.')[0] in ('amaranth', 'cocotb')))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""
