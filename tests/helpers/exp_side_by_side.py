"""Several exponential units in one Verilated model, so that they share one build."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.cosim import run_streams
from hw.units.exp import ExpUnit
from tests.helpers.bench_verilog import verilog_of

if TYPE_CHECKING:
    from golden.exp.spec import ExpSpec
    from hw.cosim import StreamRecord

__all__ = ["run_every_code"]

_CODES = np.arange(1 << 16, dtype=np.uint16)


class _SideBySide(wiring.Component):
    """Units with streams of their own, numbered."""

    def __init__(self, specs: tuple[ExpSpec, ...]) -> None:
        self.specs = specs
        codes = stream.Signature(16)
        super().__init__({f"{end}{k}": flow(codes) for k in range(len(specs)) for end, flow in (("i", In), ("o", Out))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for k, spec in enumerate(self.specs):
            m.submodules[f"unit{k}"] = unit = ExpUnit(spec)
            wiring.connect(m, unit.i, wiring.flipped(getattr(self, f"i{k}")))
            wiring.connect(m, unit.o, wiring.flipped(getattr(self, f"o{k}")))
        return m


@cache
def run_every_code(specs: tuple[ExpSpec, ...]) -> dict[ExpSpec, tuple[StreamRecord, StreamRecord]]:
    """Return operands and results of each unit when it is offered all 65,536 codes in order without a stall."""
    count = len(specs)
    inputs, outputs = {f"i{k}": _CODES for k in range(count)}, {f"o{k}": _CODES.size for k in range(count)}
    streams = run_streams(verilog_of(_SideBySide, specs), "dut", inputs, outputs).streams
    return {spec: (streams[f"i{k}"], streams[f"o{k}"]) for k, spec in enumerate(specs)}
