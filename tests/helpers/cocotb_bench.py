"""The stream bench inside a cocotb test."""

from __future__ import annotations

import logging
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from tests.helpers.rtl import stream_words
from tests.helpers.streams import StreamBench, StreamWords

__all__ = ["ClockedBench", "CocotbBench"]


class ClockedBench(StreamBench):
    """The bench of the streams of one clock, on the two words that hold them."""

    def __init__(self, words: StreamWords, seed: int, *, driven: Any, seen: Any, clock: Any) -> None:
        super().__init__(words, seed)
        # Finding a signal by its name takes longer than writing it.
        self._write, self._read = driven, seen
        self._edge = RisingEdge(clock)
        self._written: int | None = None

    async def _step(self, driven: int) -> int:
        if driven != self._written:
            self._write.value = self._written = driven
        await self._edge
        return int(self._read.value)


class CocotbBench(ClockedBench):
    """The bench on the two words that :func:`tests.helpers.rtl.run_cocotb` puts around a unit. See :meth:`start`."""

    def __init__(self, dut: Any, seed: int) -> None:
        super().__init__(stream_words(), seed, driven=dut.bench_driven, seen=dut.bench_seen, clock=dut.clk)

    @classmethod
    async def start(cls, dut: Any) -> CocotbBench:
        """Start the clock, reset the unit and return its bench; the seed is the test's and is logged."""
        bench = cls(dut, cocotb.RANDOM_SEED)
        logging.getLogger("cocotb").info("stream bench seed %d", cocotb.RANDOM_SEED)
        Clock(dut.clk, 2, unit="ns", impl="gpi").start()
        await bench.reset()
        return bench
