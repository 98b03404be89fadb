"""The reciprocal at Verilator's speed: corners, every power of two and its neighbours, and random operands."""

from __future__ import annotations

import numpy as np

from golden.formats import FP32
from hw.cosim import run_streams
from hw.timing.finish import reciprocal_interval_cycles, reciprocal_latency_cycles
from hw.units.reciprocal import Reciprocal
from hw.verilog import convert
from tests.helpers.floats import corner_codes, random_codes


def test_reciprocal_is_correctly_rounded():
    rng = np.random.default_rng(12)
    powers = FP32.to_codes(np.exp2(np.arange(-149, 128))).astype(np.int64)
    near = np.concatenate([powers + step for step in (-2, -1, 0, 1, 2)]).clip(0).astype(np.uint32)
    # Significands of one binade evenly, since they alone decide the digits, then anything.
    even = np.arange(0x3F800000, 0x40000000, 83, dtype=np.uint32)
    codes = np.concatenate((corner_codes(FP32), near, near | FP32.sign_mask, even, random_codes(FP32, 50_000, rng)))
    tags = np.arange(len(codes), dtype=np.uint64) % np.uint64(8)
    inputs = {"i": codes.astype(np.uint64) | tags << np.uint64(32)}
    run = run_streams(convert(Reciprocal(FP32, 3), name="reciprocal"), "reciprocal", inputs, {"o": len(codes)})

    found = np.array(run.streams["o"].payloads, dtype=np.uint64)
    with np.errstate(all="ignore"):
        expected = FP32.to_codes(np.float32(1) / FP32.from_codes(codes))
    wrong = np.flatnonzero(found != (expected.astype(np.uint64) | tags << np.uint64(32)))
    assert not wrong.size, (wrong.size, hex(codes[wrong[0]]), hex(found[wrong[0]]), hex(expected[wrong[0]]))
    assert set(np.diff(run.streams["i"].cycles).tolist()) == {reciprocal_interval_cycles(FP32)}
    delays = run.streams["o"].cycles - run.streams["i"].cycles
    assert set(delays.tolist()) == {reciprocal_latency_cycles(FP32)}
