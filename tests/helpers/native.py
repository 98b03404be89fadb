"""Runs a scenario on a unit made with Verilator inside this process: some fifty times as fast as Amaranth's simulator.

For what would take that one long; every unit meets it too, at one size at least.
"""

from __future__ import annotations

import asyncio
import ctypes
from functools import cache
from typing import TYPE_CHECKING

from hw.cosim import Port
from hw.native_arithmetic import NATIVE, native_cpp
from hw.verilate import SMALL_CODE, Harness, build_model
from hw.waves import traced, wave_file
from tests.helpers.bench_verilog import verilog_of, with_bench
from tests.helpers.streams import StreamBench, StreamWords

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from amaranth.lib.wiring import Component

__all__ = ["NativeBench", "run_native"]

_SHARED = ("-fPIC", "-fvisibility=hidden", "-fno-gnu-unique")
"""A library whose names stay its own: a process loads several models, and each has a ``Vtop``."""


class NativeBench(StreamBench):
    """The bench on a model that is a library of this process."""

    def __init__(self, library: Path, words: StreamWords, seed: int, wave: Path | None) -> None:
        super().__init__(words, seed)
        self._model = ctypes.CDLL(str(library))
        self._model.start(str(wave).encode() if wave else None)
        self._driven_bytes = _storage_bytes(words.driven_bits)
        self._seen = ctypes.create_string_buffer(_storage_bytes(words.seen_bits))
        self._cycle = self._model.cycle

    async def _step(self, driven: int) -> int:
        self._cycle(driven.to_bytes(self._driven_bytes, "little"), self._seen)
        return int.from_bytes(self._seen.raw, "little")

    def close(self) -> None:
        """End the waveform, if one is written."""
        self._model.finish()


def run_native(
    unit: type[Component],
    parameters: object,
    scenario: Callable[[StreamBench], Awaitable[None]],
    *,
    seed: int = 1,
) -> None:
    """Simulate ``unit(parameters)`` until ``scenario`` ends; it starts after a reset.

    Sums and products of floats are those of the machine, which ``tests/rtl/test_native_arithmetic.py`` holds equal.
    """
    verilog, top, words = with_bench(verilog_of(unit, parameters, platform=NATIVE), "dut")
    harness = _harness(native_cpp(verilog), _storage_bytes(words.driven_bits), _storage_bytes(words.seen_bits))
    wave = wave_file(top)
    bench = NativeBench(build_model(verilog, top, traced(harness) if wave else harness), words, seed, wave)

    async def started() -> None:
        await bench.reset()
        await scenario(bench)

    try:
        asyncio.run(started())
    finally:
        bench.close()


def _storage_bytes(bits: int) -> int:
    return Port("word", True, bits).storage_bytes


@cache
def _harness(functions: str, driven_bytes: int, seen_bytes: int) -> Harness:
    return Harness(
        source=functions + _LIBRARY.replace("@DRIVEN@", str(driven_bytes)).replace("@SEEN@", str(seen_bytes)),
        verilator_flags=SMALL_CODE,
        compile_flags=_SHARED,
        link_flags=("-shared", "-Wl,-Bsymbolic"),
    )


_LIBRARY = """\
// A model whose words are written before and read at each rising edge of the clock.
#include <cstdint>
#include <cstring>
#include <memory>

#include "Vtop.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

#define EXPORTED extern "C" __attribute__((visibility("default")))

double sc_time_stamp() { return 0; }

static std::unique_ptr<VerilatedContext> context;
static std::unique_ptr<Vtop> top;
#if VM_TRACE
static std::unique_ptr<VerilatedVcdC> trace;
#endif

static void clock(int level) {
    top->clk = level;
    top->eval();
#if VM_TRACE
    context->timeInc(1);
    trace->dump(context->time());
#endif
}

EXPORTED void start(const char *wave) {
    context = std::make_unique<VerilatedContext>();
    top = std::make_unique<Vtop>(context.get());
#if VM_TRACE
    context->traceEverOn(true);
    trace = std::make_unique<VerilatedVcdC>();
    top->trace(trace.get(), 99);
    trace->open(wave);
#else
    (void)wave;
#endif
}

EXPORTED void cycle(const char *driven, char *seen) {
    std::memcpy(&top->bench_driven, driven, @DRIVEN@);
    clock(0);
    std::memcpy(seen, &top->bench_seen, @SEEN@);
    clock(1);
}

EXPORTED void finish() {
#if VM_TRACE
    trace->close();
    trace.reset();
#endif
    top.reset();
    context.reset();
}
"""
