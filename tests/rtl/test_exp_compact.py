"""The compact units' Verilog under Verilator: all 65,536 codes, bit for bit; all units in one build."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from golden.exp.compact_units import COMPACT_SPECS
from hw.cosim import run_streams
from hw.units.exp import ExpUnit
from hw.verilog import convert

CODES = np.arange(1 << 16, dtype=np.uint16)
SPECS = {
    **COMPACT_SPECS,
    "registers": COMPACT_SPECS["compact16-95"].replace(name="registers", evaluation="pipelined", registers=3),
}


class SideBySide(wiring.Component):
    """Several units with streams of their own."""

    def __init__(self, specs):
        self.specs = specs
        codes = stream.Signature(16)
        super().__init__({f"{end}{k}": flow(codes) for k in range(len(specs)) for end, flow in (("i", In), ("o", Out))})

    def elaborate(self, platform):
        m = Module()
        for k, spec in enumerate(self.specs):
            m.submodules[f"unit{k}"] = unit = ExpUnit(spec)
            wiring.connect(m, unit.i, wiring.flipped(getattr(self, f"i{k}")))
            wiring.connect(m, unit.o, wiring.flipped(getattr(self, f"o{k}")))
        return m


@pytest.fixture(scope="module")
def streams():
    verilog = convert(SideBySide(list(SPECS.values())), name="dut")
    count = len(SPECS)
    return run_streams(
        verilog, "dut", {f"i{k}": CODES for k in range(count)}, {f"o{k}": CODES.size for k in range(count)}
    ).streams


@pytest.mark.parametrize("name", SPECS)
def test_every_code(streams, name):
    k, spec = list(SPECS).index(name), SPECS[name]
    operands, results = streams[f"i{k}"], streams[f"o{k}"]
    assert np.array_equal(np.array(results.payloads, np.uint16), spec.evaluate_codes(CODES))
    assert set((results.cycles - operands.cycles).tolist()) == {spec.latency_cycles}
