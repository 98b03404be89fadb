"""The stream bench inside a cocotb test."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from tests.helpers.streams import Drive, Sample, StreamBench

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CocotbBench"]


class CocotbBench(StreamBench):
    """The bench on the streams that a unit's top-level ports show. Made by :meth:`start`."""

    def __init__(self, dut: Any, seed: int) -> None:
        # Verilator shows wires of the top module beside its ports; those of a stream come in threes.
        seen = [handle._name for handle in dut]
        valids = [match[1] for name in seen if (match := re.fullmatch(r"(\w+)__valid", name))]
        names = [name for name in valids if {f"{name}__ready", f"{name}__payload"} <= {*seen}]
        # Amaranth lists a module's inputs as `input`; cocotb does not show directions, so the harness passes them.
        inputs = set(cocotb.plusargs["inputs"].split(",")) if cocotb.plusargs.get("inputs") else set()
        super().__init__([n for n in names if n in inputs], [n for n in names if n not in inputs], seed)
        self._dut = dut
        self._valid = {name: getattr(dut, f"{name}__valid") for name in names}
        self._ready = {name: getattr(dut, f"{name}__ready") for name in names}
        self._payload = {name: getattr(dut, f"{name}__payload") for name in names}
        self._masks = {name: (1 << len(self._payload[name])) - 1 for name in names}
        self._edge = RisingEdge(dut.clk)
        self._driven: dict[str, int] = {}

    @classmethod
    async def start(cls, dut: Any) -> CocotbBench:
        """Start the clock, reset the unit and return its bench; the seed is the test's and is logged."""
        bench = cls(dut, cocotb.RANDOM_SEED)
        logging.getLogger("cocotb").info("stream bench seed %d", cocotb.RANDOM_SEED)
        Clock(dut.clk, 2, unit="ns", impl="gpi").start()
        await bench.reset()
        return bench

    async def _step(self, drive: Drive) -> Mapping[str, Sample]:
        # Each access of a signal costs more than a cycle of the model: write what changes, read what the unit drives.
        self._put("rst", self._dut.rst, int(drive.reset))
        for name, (valid, payload) in drive.offers.items():
            self._put(f"{name}__valid", self._valid[name], int(valid))
            self._put(f"{name}__payload", self._payload[name], payload & self._masks[name])
        for name, ready in drive.ready.items():
            self._put(f"{name}__ready", self._ready[name], int(ready))
        await self._edge
        samples = {}
        for name, (valid, payload) in drive.offers.items():
            ready = bool(self._ready[name].value)
            samples[name] = Sample(valid, ready, payload & self._masks[name] if valid else None)
        for name, ready in drive.ready.items():
            valid = bool(self._valid[name].value)
            samples[name] = Sample(valid, ready, int(self._payload[name].value) if valid else None)
        return samples

    def _put(self, name: str, handle: Any, value: int) -> None:
        if self._driven.get(name) != value:
            handle.value = self._driven[name] = value
