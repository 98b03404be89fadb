# amaranth: UnusedElaboratable=no
"""The finish unit at small sizes in Amaranth's simulator: the bit and the cycle contract, and bad arguments."""

from __future__ import annotations

import numpy as np
import pytest

from golden.formats import BF16, FP8_E4M3, FP16, FP32
from hw.params import FinishParams, ReductionParams
from hw.timing.finish import (
    cycles,
    interval_cycles,
    latency_cycles,
    predict,
    reciprocal_interval_cycles,
    reciprocal_latency_cycles,
)
from hw.units.finish import FinishUnit
from hw.units.reciprocal import Reciprocal
from tests.helpers.finish import back_to_back, one_slow_stream, random_run, reset_anywhere, zero_sums
from tests.helpers.floats import corner_codes, random_codes
from tests.helpers.pysim import run_pysim

_SIZES = {
    "two beats": FinishParams(head_dim=4, lanes=2, op_id_bits=3),
    "twenty beats": FinishParams(head_dim=40, lanes=2, op_id_bits=1),
    "bf16": FinishParams(head_dim=4, lanes=2, op_id_bits=2, output_format=BF16),
}


@pytest.fixture(params=_SIZES.values(), ids=_SIZES.keys())
def params(request):
    return request.param


def test_back_to_back(params):
    run_pysim(FinishUnit(params), lambda bench: back_to_back(bench, params, 4))


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.7), (0.7, 0.0), (0.4, 0.4)])
def test_stalls(params, idle, stall):
    run_pysim(FinishUnit(params), lambda bench: random_run(bench, params, 8, idle=idle, stall=stall, seed=7))


@pytest.mark.parametrize("slow", ["head", "body", "output"])
def test_one_slow_stream(slow):
    params = _SIZES["two beats"]
    run_pysim(FinishUnit(params), lambda bench: one_slow_stream(bench, params, slow))


def test_reset_anywhere():
    params = _SIZES["two beats"]
    run_pysim(FinishUnit(params), lambda bench: reset_anywhere(bench, params, [1, 9, 14, 16, 17, 31]))


def test_zero_sums():
    params = _SIZES["two beats"]
    run_pysim(FinishUnit(params), lambda bench: zero_sums(bench, params))


def test_timing_diagram_of_the_docstring():
    found = predict(_SIZES["two beats"], np.zeros(2, bool), [2, 2])
    assert found.head.tolist() == [0, 14]
    assert found.body.tolist() == [15, 16, 29, 30]
    assert found.output.tolist() == [17, 18, 31, 32]


@pytest.mark.parametrize("fmt", [FP32, FP16], ids=lambda fmt: fmt.name)
def test_reciprocal(fmt):
    """Corners, powers of two and random operands against NumPy's division, which is correctly rounded."""
    rng = np.random.default_rng(8)
    powers = fmt.to_codes(2.0 ** np.arange(-24, 16, 3.0))
    codes = np.concatenate((corner_codes(fmt), powers, random_codes(fmt, 100, rng)))
    with np.errstate(all="ignore"):
        expected = fmt.to_codes(fmt.dtype.type(1) / fmt.from_codes(codes))

    async def scenario(bench):
        bench.send("i", [int(code) | (number % 8) << fmt.bits for number, code in enumerate(codes)], idle=0.05)
        bench.stall("o", 0.05)
        await bench.until(o=len(codes))
        items = bench.items("o")
        assert [item & ((1 << fmt.bits) - 1) for item in items] == expected.tolist()
        assert [item >> fmt.bits for item in items] == [number % 8 for number in range(len(codes))]

    run_pysim(Reciprocal(fmt, 3), scenario)


def test_reciprocal_cycles():
    async def scenario(bench):
        bench.send("i", range(0x3F800000, 0x3F800005))
        await bench.until(o=5)
        assert set(np.diff(bench.trace("i").transfers).tolist()) == {reciprocal_interval_cycles(FP32)} == {14}
        assert bench.trace("o").transfers[0] - bench.trace("i").transfers[0] == reciprocal_latency_cycles(FP32) == 15

    run_pysim(Reciprocal(FP32, 1), scenario)


def test_closed_form_is_the_recurrence_without_stalls():
    for beats in (2, 8, 13, 14, 15, 32):
        params = FinishParams(head_dim=2 * beats, lanes=2)
        assert interval_cycles(params) == max(beats, 14)
        for sizes in ([beats], [1], [beats, 1], [1, beats], [beats] * 9, [beats, 2, beats, 1] * 3):
            empty = np.array(sizes) == 1
            found = predict(params, empty, sizes).output
            assert found.size == sum(sizes)
            assert found[-1] + 1 == cycles(params, sizes)
            assert found[0] == latency_cycles(params) == 17
            # A body of one beat takes as long as none.
            assert predict(params, ~empty & empty, sizes).output.tolist() == found.tolist()
        assert cycles(params, []) == 0
    params = FinishParams(head_dim=256, lanes=16)
    # 2, 8, 16 and 1 beats: an operation each 14, 14 and 16 cycles, then the last one's only beat.
    assert cycles(params, [2, 8, 16, 1]) == 17 + 14 + 14 + 16 + 1


def test_bad_arguments():
    with pytest.raises(TypeError, match="params must be a FinishParams, not ReductionParams"):
        FinishUnit(ReductionParams())
    for refused in (0, 9):
        message = f"beats must be from 1 to 8, not {refused}"
        with pytest.raises(ValueError, match=message):
            interval_cycles(FinishParams(), refused)
        with pytest.raises(ValueError, match=message):
            cycles(FinishParams(), [1, refused])
        with pytest.raises(ValueError, match=message):
            predict(FinishParams(), np.zeros(1, bool), [refused])
    with pytest.raises(ValueError, match="beats must have an entry for each of 2 operations, not 3"):
        predict(FinishParams(), np.zeros(2, bool), [1, 2, 3])
    with pytest.raises(ValueError, match=r"empty must be of shape \(operations,\), not \(2, 2\)"):
        predict(FinishParams(), np.zeros((2, 2), bool))
    with pytest.raises(TypeError, match="fmt must be a FloatFormat, not 32"):
        Reciprocal(32, 1)
    with pytest.raises(ValueError, match="fmt must be a format with an infinity, not 'fp8_e4m3'"):
        Reciprocal(FP8_E4M3, 1)
